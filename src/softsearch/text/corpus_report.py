"""The report on a parallel corpus that was read: counts of kept, dropped and unusual pairs."""

import logging
from dataclasses import dataclass
from pathlib import Path

from softsearch.errors import CorpusError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """Counts of pairs; a finding on either side or on both counts once."""

    src: Path
    tgt: Path
    lines: int
    kept: int
    empty: int = 0  # one side or both; dropped, unless empty lines are kept
    over_long: int = 0  # dropped
    invalid: int = 0  # not UTF-8; dropped, and only with on_error="skip"
    untranslated: int = 0  # dropped by Filters.identical
    unequal: int = 0  # dropped by Filters.max_ratio
    repeated: int = 0  # dropped by Filters.duplicates
    cleaned: int = 0  # a byte order mark or the carriage return of a line's end was removed
    lone_cr: int = 0  # kept: a carriage return inside became a space
    control: int = 0  # kept as they are: control characters or line separators inside
    identical: int = 0  # kept: source and target are the same text

    def findings(self) -> dict[str, int]:
        """The counts that are not zero, by their descriptions."""
        counts = (
            (self.empty, "with an empty side"),
            (self.over_long, "over-long"),
            (self.invalid, "not UTF-8"),
            (self.untranslated, "dropped for the same text on both sides"),
            (self.unequal, "dropped for unequal lengths"),
            (self.repeated, "dropped for having come before"),
            (self.cleaned, "with a byte order mark or carriage returns removed"),
            (self.lone_cr, "with a carriage return inside, now a space"),
            (self.control, "with control characters"),
            (self.identical, "with the same text on both sides"),
        )
        return {what: count for count, what in counts if count}

    def summary(self) -> str:
        """Returns one line: the files, the pairs kept and the findings."""
        findings = "".join(f"; {count} {what}" for what, count in self.findings().items())
        return f"{self.src} | {self.tgt}: {self.kept} of {self.lines} pairs kept{findings}"

    def check(self) -> None:
        """Warns if the two sides seem to be the same; CorpusError if no pair is left."""
        if not self.kept:
            raise CorpusError(
                f"no usable pair in {self.summary()}; expected text on both sides that data.filters let pass, look at "
                "the files and the filters"
            )
        if self.src.samefile(self.tgt):
            _log.warning("source and target are the same file, %s; check the two paths", self.src)
        elif (self.identical + self.untranslated) * 2 > self.kept + self.untranslated:
            _log.warning("source and target are mostly the same text, check the two paths: %s", self.summary())
