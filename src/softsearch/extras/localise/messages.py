"""The messages of many catalogs as pairs of text for a model, each text once, with what was left out and why."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from softsearch.errors import ConfigError, CorpusError
from softsearch.extras.localise import icu
from softsearch.extras.localise.accelerators import markers_of, take_off
from softsearch.extras.localise.catalog import Catalog, language_of
from softsearch.extras.localise.opening import is_catalog, open_catalog
from softsearch.text.parts import mask_pair

if TYPE_CHECKING:
    import regex

_MIN_LETTERS, _MIN_SHARE = 100, 0.25  # share of letters of its script in the translations of any language
_SHOWN = 5
_NOT_ASKED = "obsolete, empty or not to be translated"


@dataclass
class Messages:
    """Pairs of a language pair's catalogs.

    Args:
        src_lang: the source's language, by the catalogs unless it is given.
        tgt_lang: the target's language, likewise.
        pairs: source and target with symbols and without accelerators, and the catalog's number; equal pairs once.
        left_out: numbers of messages by the reason.
    """

    src_lang: str = ""
    tgt_lang: str = ""
    pairs: list[tuple[str, str, int]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def add(self, catalog: Catalog, path: Path, number: int) -> None:
        """Adds the translated messages of a catalog.

        Raises:
            ConfigError: its languages differ from those before.
        """
        self._check_languages(catalog, path)
        for source, target in self._texts(catalog):
            masked = mask_pair(source, target)
            pair = ("", "") if masked is None else (" ".join(masked[0].split()), " ".join(masked[1].split()))
            reason = (
                ("same text on both sides" if source == target else "")
                or ("other placeholders or tags than the source" if masked is None else "")
                or ("repeated" if pair in self._seen else "")
            )
            if reason:
                self.left_out[reason] += 1
            else:
                self._seen.add(pair)
                self.pairs.append((*pair, number))

    def _texts(self, catalog: Catalog) -> Iterator[tuple[str, str]]:
        """Yields the texts of messages, those in the branches of plurals and selects on their own."""
        for source, target in self._translated(catalog):
            found = icu.pairs(icu.read(source), icu.read(target))
            if found is None:
                self.left_out["other plurals or selects than the source"] += 1
            elif len(found) == 1:
                yield found[0]
            else:
                yield from (pair for pair in found if pair[0] != pair[1])

    def _translated(self, catalog: Catalog) -> Iterator[tuple[str, str]]:
        """Yields translated texts without accelerators, and counts the other messages."""
        states = (entry.state for entry in catalog.entries if entry.state != "translated")
        self.left_out.update(_NOT_ASKED if state == "left out" else state for state in states)
        pairs = catalog.pairs()
        markers = markers_of(pairs, declared=catalog.marker)
        for source, target in pairs:
            yield take_off(source, markers).text, take_off(target, markers).text

    def _check_languages(self, catalog: Catalog, path: Path) -> None:
        for key, found in (("src_lang", catalog.src_lang), ("tgt_lang", catalog.tgt_lang)):
            code, before = found.replace("_", "-"), getattr(self, key)
            if code and before and language_of(code) != language_of(before):
                raise ConfigError(
                    f"{path} says that its {key} is {code!r}, but that of the others, or data.{key}, is {before!r}; "
                    "leave it out, or give each language its pattern: data.train='{de,fr}/**/*.po'"
                )
            setattr(self, key, before or code)


def expanded(pattern: str) -> list[str]:
    """Returns the patterns that braces stand for, as in a shell: ``de/*.po`` and ``fr/*.po`` for ``{de,fr}/*.po``."""
    match = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    begin, end = pattern[: match.start()], pattern[match.end() :]
    return [each for word in match[1].split(",") for each in expanded(f"{begin}{word.strip()}{end}")]


def found_files(patterns: str | Sequence[str]) -> list[Path]:
    """Returns the catalogs that patterns such as ``{de,fr}/**/*.po``, names and folders stand for, sorted.

    Raises:
        CorpusError: a pattern names none.
    """
    files: dict[Path, None] = {}
    for pattern in [each for one in listed(patterns) for each in expanded(one)]:
        whole = Path(pattern).expanduser()
        named = (
            whole.rglob("*") if whole.is_dir() else Path(whole.anchor or ".").glob(str(whole.relative_to(whole.anchor)))
        )
        found = sorted(path for path in named if path.is_file() and (is_catalog(path) or not whole.is_dir()))
        if not found:
            raise CorpusError(
                f"{pattern!r} names no catalog; expected files, folders, or patterns such as 'de/**/*.po'"
            )
        files |= dict.fromkeys(found)
    return list(files)


def listed(patterns: str | Sequence[str]) -> Sequence[str]:
    """Returns patterns as a list."""
    return [patterns] if isinstance(patterns, str) else patterns


def read_messages(files: Iterable[Path], src_lang: str = "", tgt_lang: str = "") -> Messages:
    """Returns the translated messages of catalogs; raises as ``open_catalog`` and ``Messages.add``."""
    messages = Messages(src_lang, tgt_lang)
    for number, path in enumerate(files):
        messages.add(open_catalog(path, src_lang), path, number)
    return messages


def check_script(messages: Messages, paths: Sequence[Path], letters: "regex.Pattern[str]") -> str | None:
    """Checks that translations are in the script of their language; some catalogs have few words of it.

    Args:
        messages: those of a language.
        paths: its catalogs.
        letters: of its script.

    Returns:
        A warning about catalogs without any of these letters, if there are some.

    Raises:
        CorpusError: most letters are others.
    """
    counts = [Counter[bool]() for _ in paths]
    for _, target, number in messages.pairs:
        counts[number].update(letters.match(char) is not None for char in target if char.isalpha())
    total = sum(counts, Counter[bool]())
    if total.total() >= _MIN_LETTERS and total[True] < _MIN_SHARE * total.total():
        raise CorpusError(
            f"{paths[0]} says that it is in {messages.tgt_lang!r}, but {total[False]:,} of {total.total():,} letters "
            "of the translations in it, and in those with it, are of other scripts; correct its header, or leave it out"
        )
    odd = [path for path, own in zip(paths, counts, strict=True) if own.total() >= _MIN_LETTERS and not own[True]]
    names = ", ".join(map(str, odd[:_SHOWN]))
    return f"no letters of {messages.tgt_lang!r} in {len(odd)} catalogs: {names}" if odd else None
