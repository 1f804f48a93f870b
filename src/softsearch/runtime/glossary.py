"""Required contents of translations: glossary terms found in the sentences, and text to copy.

A line of a glossary file is ``source<TAB>target`` or ``source<TAB>target<TAB>kind``; alternatives of the target are
separated by ``|``. Kinds: ``word`` (the default) matches whole words in any case; ``case`` matches whole words in this
case; ``part`` also matches inside longer words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn
from unicodedata import category

from softsearch.errors import ConfigError, CorpusError
from softsearch.ranges import Range
from softsearch.search.options import check_option
from softsearch.search.terms import Term, joins
from softsearch.text.corpus import is_blank, read_lines
from softsearch.text.keep import Keep, Kept

KINDS = ("word", "case", "part")
MAX_BONUS = 1000  # nats


class Glossary:
    """Terms with their translations.

    Args:
        rows: source, target and, if it is not ``word``, kind of each term; empty rows are skipped.
        origin: the file, or the option, for messages.

    Raises:
        CorpusError: a row is empty, of an unknown kind, has control characters, or has a source that another row has.
    """

    def __init__(self, rows: Iterable[Sequence[str]], origin: str = "glossary") -> None:
        self.origin = origin
        # Text for each term, not an object, so that a million terms fit into a small host.
        self._targets: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        for number, row in enumerate(rows, 1):
            if not row:
                continue
            source, target, *rest = row if 2 <= len(row) <= 3 else self._refuse(number, f"{len(row)} columns", row)
            kind = rest[0] if rest else "word"
            if kind not in KINDS:
                self._refuse(number, f"the kind {kind!r:.40}", row)
            try:
                source, translations = " ".join(source.split()), target.replace("|", " ").strip()
            except (AttributeError, TypeError):
                self._refuse(number, "something other than text", row)
            is_plain = bool(source and translations) and (source + target).isprintable()
            if not (is_plain or (_is_text(source) and _is_text(target.replace("|", "")))):
                self._refuse(number, "an empty term or a control character", row)
            key = source if kind == "case" else source.casefold()
            if self._targets[kind].setdefault(key, target) != target:
                raise CorpusError(
                    f"{origin}:{number} has {source!r:.60} again with another translation; write all of them on one "
                    "line, separated by |"
                )
        self._longest = {kind: max(map(len, terms), default=0) for kind, terms in self._targets.items()}

    def _refuse(self, number: int, found: str, row: Sequence[str]) -> NoReturn:
        raise CorpusError(
            f"{self.origin}:{number} has {found} in {'<TAB>'.join(map(str, row))!r:.80}; expected a source term, a "
            f"tab, its translation or several separated by |, and optionally a tab and one of {', '.join(KINDS)}"
        )

    def find(self, text: str) -> list[Term]:
        """The terms in a sentence, from left to right; if several begin at one place, the longest."""
        text = " ".join(text.split())
        edges = {0, len(text)} | {at for at in range(1, len(text)) if not (joins(text[at - 1]) and joins(text[at]))}
        found: dict[tuple[str, str], int] = {}
        at = 0
        while at < len(text):
            if match := self._longest_at(text, at, edges):
                found[match] = found.get(match, 0) + 1
                at += len(match[1])
            else:
                at += 1
        return [self._term(kind, source, count) for (kind, source), count in found.items()]

    def _longest_at(self, text: str, at: int, edges: set[int]) -> tuple[str, str] | None:
        """The kind and the text of the longest term that begins at an index of a text."""
        whole = ("case", "word") if at in edges else ()
        kinds = [kind for kind in (*whole, "part") if self._targets[kind]]
        longest = max((self._longest[kind] for kind in kinds), default=0)
        for end in range(min(len(text), at + longest), at, -1):
            source = text[at:end]
            for kind in kinds:
                if (end in edges or kind == "part") and self._key(kind, source) in self._targets[kind]:
                    return kind, source
        return None

    def _key(self, kind: str, source: str) -> str:
        return source if kind == "case" else source.casefold()

    def _term(self, kind: str, source: str, count: int) -> Term:
        target = self._targets[kind][self._key(kind, source)]
        alternatives = (" ".join(each.split()) for each in target.split("|"))
        return Term(tuple(each for each in alternatives if not is_blank(each)), count, kind != "part", source)


def _is_text(text: str) -> bool:
    """Tells whether a text is not blank and has no control characters; joiners, soft hyphens and spaces are text."""
    return not is_blank(text) and all(each.isprintable() or category(each) in ("Cf", "Zs") for each in text)


GlossaryLike = Glossary | Mapping[str, str] | Path | str


def open_glossary(glossary: GlossaryLike) -> Glossary:
    """A glossary from a file, or, for whole words, from a mapping of source terms to translations.

    Raises:
        CorpusError: the file cannot be read, or a term is wrong.
        ConfigError: it is something else.
    """
    if isinstance(glossary, Glossary):
        return glossary
    if isinstance(glossary, Mapping):
        return Glossary(glossary.items())
    if not isinstance(glossary, Path | str):
        raise ConfigError(
            f"glossary is {glossary!r:.60} ({type(glossary).__name__}), expected a file, translations by term "
            "({'term': 'translation'}), or a Glossary"
        )
    lines = read_lines(Path(glossary))
    return Glossary((line.split("\t") if line.strip() else () for line in lines), str(glossary))


class Wanted(NamedTuple):
    """Terms and text to copy, found in a text and required in its translation."""

    terms: tuple[Term, ...] = ()
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True, eq=False)
class Control:
    """The required contents of translations.

    Args:
        glossary: the terms.
        bonus: nats by which translations with a term rank higher; None if they must contain the terms.
        keep: finds text to copy.
    """

    glossary: Glossary | None = None
    bonus: float | None = None
    keep: Keep | None = None

    def find(self, text: str) -> Wanted:
        """The required contents of a text's translation; no terms are searched in text to copy.

        Raises:
            InputError: a pattern takes too long.
        """
        kept, rest = self.keep.find(text) if self.keep else [], text
        for each in kept:
            rest = rest[: each.begin] + "\0" * len(each.text) + rest[each.end :]
        terms = self.glossary.find(rest) if self.glossary else []
        return Wanted(tuple(term._replace(bonus=self.bonus) for term in terms), tuple(kept))


def with_control(
    control: Control | None, glossary: GlossaryLike | None, bonus: float | None, keep: Keep | None
) -> Control | None:
    """A control from the given options, with those of ``control`` as defaults; None if nothing is required.

    Raises:
        CorpusError: the file of the glossary cannot be read, or a term is wrong.
        ConfigError: one of them is something else.
    """
    check_option("glossary_bonus", bonus, Annotated[float, Range(0, MAX_BONUS)] | None)
    if not isinstance(keep, Keep | None):
        raise ConfigError(f"keep is {keep!r:.60} ({type(keep).__name__}), expected Keep([PATTERN, ...])")
    old = control or Control()
    changed = Control(
        glossary=old.glossary if glossary is None else open_glossary(glossary),
        bonus=old.bonus if bonus is None else bonus,
        keep=old.keep if keep is None else keep,
    )
    return changed if changed.glossary is not None or changed.keep is not None else None
