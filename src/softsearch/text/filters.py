"""Which pairs a training corpus does without, besides those that say nothing."""

from dataclasses import dataclass
from typing import Literal

from softsearch.errors import ConfigError
from softsearch.text.option_checks import require_bool, require_choice


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What is dropped from the training side, and counted; validation and test keep every line.

    Args:
        on_error: whether a line that is not UTF-8 is an error, or ``skip`` drops its pair.
        identical: drop pairs whose source and target are the same text.
        max_ratio: drop pairs whose longer side has more than this many characters for each one of the shorter.
        duplicates: drop pairs that have come before, in the same corpus or an earlier one.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    on_error: Literal["raise", "skip"] = "raise"
    identical: bool = False
    max_ratio: float | None = None
    duplicates: bool = False

    def __post_init__(self) -> None:
        """Checks the options."""
        require_choice("data.filters.on_error", self.on_error, ("raise", "skip"))
        require_bool("data.filters.identical", self.identical)
        require_bool("data.filters.duplicates", self.duplicates)
        ratio: object = self.max_ratio  # whatever YAML had
        if ratio is not None and (isinstance(ratio, bool) or not isinstance(ratio, int | float) or not ratio >= 1):
            raise ConfigError(
                f"data.filters.max_ratio is {ratio!r}, expected null or a number of at least 1; "
                "change data.filters.max_ratio"
            )

    def reason(self, src: str, tgt: str) -> Literal["", "untranslated", "unequal"]:
        """Why a pair whose sides both have text is dropped, if it is."""
        if self.identical and src == tgt:
            return "untranslated"
        shorter, longer = sorted((len(src), len(tgt)))
        return "unequal" if self.max_ratio is not None and longer > shorter * self.max_ratio else ""
