"""Filters and cleaning of parallel text: lines are decoded, pairs are kept or dropped, and everything is counted."""

import logging
import re
import unicodedata
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from softsearch.errors import CorpusError
from softsearch.ranges import Positive, Range, Share
from softsearch.text.corpus import LineError, RawPairs, decode_line, is_blank, read_raw
from softsearch.text.sentence_end import sentence_end

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_MAX_CHARS = 10_000  # per line of training text
_REPEATED = re.compile(r"(\S.{2,99})(?: *\1){2,}")  # three times in a row, as in OpusFilter's RepetitionFilter
_BRACKETS = str.maketrans("（）［］｛｝", "()[]{}")
_DIGIT = re.compile(r"\d")  # in any script
_log = logging.getLogger(__name__)


class Letters(Protocol):
    """A compiled pattern of one letter, from ``re`` or ``regex``."""

    @property
    def pattern(self) -> str:
        """The pattern as text."""

    def findall(self, string: str, /) -> list[str]:
        """Returns all such letters in a text."""


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Optional filters that drop and count training pairs; validation and test keep every line.

    Args:
        on_error: ``raise`` an error for a line that is not UTF-8, or ``skip`` its pair.
        identical: drop pairs whose source and target are the same text.
        max_ratio: drop pairs whose longer side has more than this many times the characters of the shorter.
        duplicates: drop pairs that occurred before, in the same corpus or an earlier one.
        min_numbers: drop pairs if less than this share of both sides' digits from 1 to 9 agrees, in order
            (NonZeroNumeralsFilter of OpusFilter, Aulamo et al. 2020, 2020.acl-demos.20); 1 requires equal digits.
        brackets: drop pairs whose sides differ in the number of (, ), [, ], { or }, full-width ones included.
        repeats: drop pairs with a side that repeats three or more characters three times in a row.
        min_script: drop pairs with a side on which less than this share of the letters belongs to its language's
            script.
        end_punctuation: drop pairs that end differently: with a full stop, a question mark, an exclamation mark, a
            colon, or none of them.
        max_length_z: drop pairs whose difference in characters deviates by more than this many standard deviations from
            the usual one in their corpus (``mark_unusual``).
    """

    on_error: Literal["raise", "skip"] = "raise"
    identical: bool = False
    max_ratio: Annotated[float, Range(1)] | None = None
    duplicates: bool = False
    min_numbers: Share | None = None
    brackets: bool = False
    repeats: bool = False
    min_script: Share | None = None
    end_punctuation: bool = False
    max_length_z: Positive | None = None

    def reason(self, src: str, tgt: str, letters: Sequence[Letters] = ()) -> str:
        """Returns why a single pair with text on both sides is dropped; "" if it is kept.

        ``letters`` are patterns of the letters of both languages, for ``min_script``.
        """
        shorter, longer = sorted((len(src), len(tgt)))
        reasons = {
            "untranslated": self.identical and src == tgt,
            "unequal": self.max_ratio is not None and longer > shorter * self.max_ratio,
            "numbers": self.min_numbers is not None and _digits_agree(src, tgt) < self.min_numbers,
            "brackets": self.brackets and _brackets(src) != _brackets(tgt),
            "repeats": self.repeats and (_is_repetitive(src) or _is_repetitive(tgt)),
            "script": self.min_script is not None and _least_share(letters, (src, tgt)) < self.min_script,
            "punctuation": self.end_punctuation and sentence_end(src) != sentence_end(tgt),
        }
        return next((name for name, applies in reasons.items() if applies), "")


def _digits_agree(src: str, tgt: str) -> float:
    """Returns the share of digits that agree, in order; 1 if neither side has any."""
    return SequenceMatcher(None, non_zero_digits(src), non_zero_digits(tgt), autojunk=False).ratio()


def non_zero_digits(text: str) -> str:
    """Returns the digits of a text, in any script, as 1 to 9."""
    digits = "".join(_DIGIT.findall(text))
    return (digits if digits.isascii() else "".join(str(unicodedata.decimal(char)) for char in digits)).replace("0", "")


def _brackets(text: str) -> list[int]:
    return list(map(text.translate(_BRACKETS).count, "()[]{}"))


def _is_repetitive(text: str) -> bool:
    """Returns whether ``_REPEATED`` is found; it is tried only where three characters occur a third time."""
    triples = list(zip(text, text[1:], text[2:], strict=False))
    if len(set(triples)) > len(triples) - 2:
        return False
    frequent = {triple for triple, count in Counter(triples).items() if count > 2}
    return any(_REPEATED.match(text, place) for place, triple in enumerate(triples) if triple in frequent)


def _least_share(letters: Iterable[Letters], texts: Iterable[str]) -> float:
    """Returns the lower of the sides' shares of letters in their language's script; 1 without letters."""
    sides = ((len(own.findall(text)), sum(map(str.isalpha, text))) for own, text in zip(letters, texts, strict=True))
    return min(own / every if every else 1.0 for own, every in sides)


NO_FILTERS = Filters()


def _count(what: str) -> Any:
    """A field that counts pairs, with its description."""
    return field(default=0, metadata={"what": what})


@dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """Counts of pairs; a finding on one side or on both counts once."""

    src: Path
    tgt: Path
    lines: int
    kept: int
    empty: int = _count("with an empty side")  # on one side or both; dropped, unless empty lines are kept
    over_long: int = _count("over-long")  # dropped
    invalid: int = _count("not UTF-8")  # dropped, and only with on_error="skip"
    untranslated: int = _count("dropped for the same text on both sides")  # by Filters.identical
    unequal: int = _count("dropped for unequal lengths")  # by Filters.max_ratio
    repeated: int = _count("dropped as duplicates")  # by Filters.duplicates
    numbers: int = _count("dropped for numbers that do not match")  # by Filters.min_numbers
    brackets: int = _count("dropped for unequal brackets")  # by Filters.brackets
    repeats: int = _count("dropped for repetitions")  # by Filters.repeats
    script: int = _count("dropped for letters of another script")  # by Filters.min_script
    punctuation: int = _count("dropped for different punctuation at the end")  # by Filters.end_punctuation
    unusual: int = _count("dropped for unusual lengths")  # by Filters.max_length_z
    cleaned: int = _count("with a byte order mark or carriage returns removed")  # at the line's end
    lone_cr: int = _count("with a carriage return inside, now a space")  # kept
    control: int = _count("with control characters")  # or line separators; kept unchanged
    identical: int = _count("with the same text on both sides")  # kept

    def findings(self) -> dict[str, int]:
        """Returns the non-zero counts by description."""
        counts = {count.metadata["what"]: getattr(self, count.name) for count in fields(self) if count.metadata}
        return {what: count for what, count in counts.items() if count}

    def summary(self) -> str:
        """Returns one line: the files, the pairs kept and the findings."""
        findings = "".join(f"; {count:,} {what}" for what, count in self.findings().items())
        return f"{self.src} | {self.tgt}: {self.kept:,} of {self.lines:,} pairs kept{findings}"

    def check(self) -> None:
        """Warns if both sides seem to be the same.

        Raises:
            CorpusError: no pair is left.
        """
        if not self.kept:
            raise CorpusError(
                f"no usable pair in {self.summary()}; expected text on both sides that data.filters accept; check "
                "the files and the filters"
            )
        if self.src.samefile(self.tgt):
            _log.warning("source and target are the same file, %s; check the two paths", self.src)
        elif (self.identical + self.untranslated) * 2 > self.kept + self.untranslated:
            _log.warning("source and target are mostly the same text, check the two paths: %s", self.summary())


class CleanPairs(NamedTuple):
    """The text of the kept pairs."""

    src: list[str]
    tgt: list[str]
    numbers: list[int]  # line number of each pair in both files, from 1
    counts: Counter[str]  # keyed by the fields of CorpusReport


@dataclass(frozen=True, kw_only=True)
class Cleaner:
    """Decodes raw lines, drops pairs (never single lines), and counts findings.

    Chunks are independent: they may be cleaned in different processes.
    """

    src: Path  # for messages, like tgt
    tgt: Path
    keep_empty: bool = False  # keep every line, as test sets require: nothing is dropped, unreadable lines are errors
    filters: Filters = NO_FILTERS
    letters: Sequence[Letters] = ()  # patterns for both languages, see Filters.reason

    def __call__(self, raw: RawPairs) -> CleanPairs:
        """Returns the text of the kept pairs.

        Raises:
            CorpusError: a line cannot be read, and dropping its pair is not allowed.
        """
        clean = CleanPairs([], [], [], Counter(lines=len(raw.src)))
        for number, (src_line, tgt_line) in enumerate(zip(raw.src, raw.tgt, strict=True), start=raw.number):
            src, tgt = _decode(src_line, self.src, number), _decode(tgt_line, self.tgt, number)
            reason = self._reason(src, tgt)
            clean.counts.update(_findings(src, tgt, reason))
            if self.keep_empty or not reason:
                clean.src.append(src.text)
                clean.tgt.append(tgt.text)
                clean.numbers.append(number)
        if self.keep_empty:
            del clean.counts["over_long"]  # longer than _MAX_CHARS, and kept
        return clean

    def _reason(self, src: "_Line", tgt: "_Line") -> str:
        """Returns why a pair is dropped; "" if it is kept."""
        errors = [line.error for line in (src, tgt) if line.error]
        for error in errors:
            if self.keep_empty or (error.problem == "invalid" and self.filters.on_error == "raise"):
                raise error
        if errors:
            return errors[0].problem
        if is_blank(src.text) or is_blank(tgt.text):
            return "empty"
        if max(len(src.text), len(tgt.text)) > _MAX_CHARS:
            return "over_long"
        return "" if self.keep_empty else self.filters.reason(src.text, tgt.text, self.letters)


class ParallelCorpus(NamedTuple):
    """Aligned lines: ``src[i]`` and ``tgt[i]`` are a pair, from line ``numbers[i]`` (from 1) of both files."""

    src: list[str]
    tgt: list[str]
    numbers: list[int]
    report: CorpusReport


class CorpusStream:
    """Aligned lines of two files as ``read_parallel`` reads them, a few thousand pairs at a time.

    ``report`` is complete when all have been read.

    Raises:
        CorpusError: while it is read, as ``read_parallel``.
    """

    def __init__(
        self, src: Path, tgt: Path, *, keep_empty: bool = False, on_error: Literal["raise", "skip"] = "raise"
    ) -> None:
        self._clean = Cleaner(src=src, tgt=tgt, keep_empty=keep_empty, filters=Filters(on_error=on_error))
        self.report = CorpusReport(src=src, tgt=tgt, lines=0, kept=0)

    def __iter__(self) -> Iterator[CleanPairs]:
        """Yields the next pairs."""
        src, tgt = self._clean.src, self._clean.tgt
        kept, counts = 0, Counter[str]()
        for chunk in map(self._clean, read_raw(src, tgt)):
            kept += len(chunk.src)
            counts.update(chunk.counts)
            yield chunk
        self.report = CorpusReport(src=src, tgt=tgt, kept=kept, **counts)
        self.report.check()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yields single pairs."""
        for chunk in self:
            yield from zip(chunk.src, chunk.tgt, strict=True)


def read_parallel(
    src: Path, tgt: Path, *, keep_empty: bool = False, on_error: Literal["raise", "skip"] = "raise"
) -> ParallelCorpus:
    """Reads two files whose n-th lines are translations of each other.

    Pairs are dropped, never single lines: those with a blank side, with a side over 10,000 characters and, with
    ``on_error="skip"``, with a side that is not UTF-8. The report counts them. With ``keep_empty`` nothing is dropped,
    as test sets require, and unreadable lines are errors.

    Raises:
        CorpusError: a file cannot be read, the line counts differ, or no pair is left.
    """
    stream = CorpusStream(src, tgt, keep_empty=keep_empty, on_error=on_error)
    src_lines, tgt_lines, numbers = list[str](), list[str](), list[int]()
    for chunk in stream:
        src_lines.extend(chunk.src)
        tgt_lines.extend(chunk.tgt)
        numbers.extend(chunk.numbers)
    return ParallelCorpus(src_lines, tgt_lines, numbers, stream.report)


class _Line(NamedTuple):
    text: str
    cleaned: bool = False
    lone_cr: bool = False
    error: LineError | None = None


def _decode(raw: bytes, path: Path, number: int) -> _Line:
    try:
        text = decode_line(raw, str(path), number)
    except LineError as error:
        return _Line("", error=error)
    cleaned = raw.endswith(b"\r") or BOM_UTF8 in raw
    return _Line(text.replace("\r", " "), cleaned=cleaned, lone_cr="\r" in text)


def _findings(src: _Line, tgt: _Line, reason: str) -> list[str]:
    """Returns the names of the counts that a pair increments."""
    holds = {
        reason: bool(reason),
        "cleaned": src.cleaned or tgt.cleaned,
        "lone_cr": src.lone_cr or tgt.lone_cr,
        "control": _CONTROL.search(src.text) or _CONTROL.search(tgt.text),
        "identical": not reason and src.text == tgt.text,
    }
    return [name for name, value in holds.items() if value]
