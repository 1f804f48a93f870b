"""Required contents of translations: glossary terms found in the sentences, and text to copy.

A row of a glossary is a source term, its translations, separated by ``|``, and a kind. Kinds: ``word`` (the default)
matches whole words in any case; ``case`` matches whole words in this case; ``part`` also matches inside longer words.
Terms and sentences are compared as models read them (``softsearch.text.reading``).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, NoReturn
from unicodedata import category

from softsearch.errors import ConfigError, CorpusError
from softsearch.runtime.glossary_file import read_rows
from softsearch.search.terms import Term, joins
from softsearch.text.corpus import is_blank
from softsearch.text.keep import Kept
from softsearch.text.reading import as_read

KINDS = ("word", "case", "part")
_STEM = 64  # characters of a longer term that a text is searched for first


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
        self._lengths: dict[str, dict[str, list[int]]] = {kind: {} for kind in KINDS}  # of the terms with a stem
        for number, row in enumerate(rows, 1):
            if not row:
                continue
            source, target, *rest = row if 2 <= len(row) <= 3 else self._refuse(number, f"{len(row)} columns", row)
            kind = rest[0] if rest else "word"
            if kind not in KINDS:
                self._refuse(number, f"the kind {kind!r:.40}", row)
            try:
                translations = target.replace("|", " ").strip()
                is_plain = bool(source.strip() and translations) and (source + target).isprintable()
                is_text = is_plain or (_is_text(" ".join(source.split())) and _is_text(target.replace("|", "")))
            except (AttributeError, TypeError):
                self._refuse(number, "something other than text", row)
            read = as_read(source).text
            if not (is_text and read):
                self._refuse(number, "an empty term or a control character", row)
            key = read if kind == "case" else read.casefold()
            if self._targets[kind].setdefault(key, target) != target:
                raise CorpusError(
                    f"{origin}:{number} has {source!r:.60} again with another translation; write all of them on one "
                    "line, separated by |, or, where terms differ only in upper and lower case, end the lines of both "
                    "in a file with a tab and case"
                )
        for kind, terms in self._targets.items():
            for stem, length in {(_stem(term), len(term)) for term in terms}:
                self._lengths[kind].setdefault(stem, []).append(length)
            for lengths in self._lengths[kind].values():
                lengths.sort(reverse=True)

    def _refuse(self, number: int, found: str, row: Sequence[str]) -> NoReturn:
        raise CorpusError(
            f"{self.origin}:{number} has {found} in {'<TAB>'.join(map(str, row))!r:.80}; expected a source term, a "
            f"tab, its translation or several separated by |, and optionally a tab and one of {', '.join(KINDS)}; to "
            "leave out other columns of a file, type: cut -f1,2 FILE > NEW (with commas: cut -d, -f1,2 FILE > NEW)"
        )

    def find(self, text: str) -> list[Term]:
        """The terms in a sentence, from left to right; if several begin at one place, the longest."""
        text = as_read(text).text
        places = _Places(text)
        found: dict[tuple[str, str], int] = {}
        at = 0
        while at < len(text):
            if match := self._longest_at(places, at):
                kind, end = match
                found[kind, text[at:end]] = found.get((kind, text[at:end]), 0) + 1
                at = end
            else:
                at += 1
        return [self._term(kind, source, count) for (kind, source), count in found.items()]

    def _longest_at(self, places: "_Places", at: int) -> tuple[str, int] | None:
        """The kind and the end of the longest term that begins at an index of a text."""
        kinds = [kind for kind in (*(("case", "word") if at in places.edges else ()), "part") if self._targets[kind]]
        found = [(kind, end) for kind in kinds if (end := self._end(kind, places, at))]
        return max(found, key=lambda match: match[1], default=None)  # of equally long ones, the first kind

    def _end(self, kind: str, places: "_Places", at: int) -> int:
        """The end of the longest term of a kind that begins at an index of a text, or 0."""
        text, begin = (places.text, at) if kind == "case" else (places.folded, places.begins[at])
        for stem in (text[begin : begin + _STEM], ""):
            for length in self._lengths[kind].get(stem, ()):
                end = begin + length if kind == "case" else places.indices.get(begin + length, -1)
                is_edge = end in places.edges or (kind == "part" and end > 0)
                if is_edge and text[begin : begin + length] in self._targets[kind]:
                    return end
        return 0

    def _term(self, kind: str, source: str, count: int) -> Term:
        target = self._targets[kind][source if kind == "case" else source.casefold()]
        alternatives = (" ".join(each.split()) for each in target.split("|"))
        return Term(tuple(each for each in alternatives if not is_blank(each)), count, kind != "part", source)


class _Places:
    """A text in both forms that terms are compared with, and where words may begin and end.

    Attributes:
        text: with upper and lower case.
        folded: without; a character may have become several.
        begins: for each index of the text, that of the folded text; the length at the end.
        indices: for each of these, the index of the text.
        edges: indices of the text at which no word goes on.
    """

    def __init__(self, text: str) -> None:
        self.text, self.folded = text, text.casefold()
        self.begins = list(accumulate((len(character.casefold()) for character in text), initial=0))
        self.indices = {begin: at for at, begin in enumerate(self.begins)}
        inside = (at for at in range(1, len(text)) if not (joins(text[at - 1]) and joins(text[at])))
        self.edges = {0, len(text), *inside}


def _stem(term: str) -> str:
    """The beginning of a long term, which is looked up before its lengths are tried; "" for all others."""
    return term[:_STEM] if len(term) > _STEM else ""


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
    return Glossary(read_rows(Path(glossary)), str(glossary))


class Wanted(NamedTuple):
    """Terms and text to copy, found in a text and required in its translation."""

    terms: tuple[Term, ...] = ()
    kept: tuple[Kept, ...] = ()
