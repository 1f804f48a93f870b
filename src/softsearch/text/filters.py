"""Optional filters that drop training pairs."""

from dataclasses import dataclass
from typing import Annotated, Literal

from softsearch.ranges import Range


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of the training side, which counts what they drop; validation and test keep every line.

    Args:
        on_error: whether a line that is not UTF-8 is an error, or ``skip`` drops its pair.
        identical: drop pairs whose source and target are the same text.
        max_ratio: drop pairs whose longer side has more than this many characters for each one of the shorter.
        duplicates: drop pairs that have come before, in the same corpus or an earlier one.
    """

    on_error: Literal["raise", "skip"] = "raise"
    identical: bool = False
    max_ratio: Annotated[float, Range(1)] | None = None
    duplicates: bool = False

    def reason(self, src: str, tgt: str) -> Literal["", "untranslated", "unequal"]:
        """Why a pair whose sides both have text is dropped; "" if it is kept."""
        if self.identical and src == tgt:
            return "untranslated"
        shorter, longer = sorted((len(src), len(tgt)))
        return "unequal" if self.max_ratio is not None and longer > shorter * self.max_ratio else ""
