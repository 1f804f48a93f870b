"""Terms of a glossary that translations must contain, and text that they copy unchanged."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from softsearch.errors import ConfigError
from softsearch.option import Option
from softsearch.ranges import Range
from softsearch.runtime.stages.stage import Stage

if TYPE_CHECKING:
    from softsearch.runtime.glossary import Glossary, Wanted
    from softsearch.text.keep import Keep

MAX_BONUS = 1000  # nats


@dataclass(frozen=True, kw_only=True, eq=False)
class TermStage(Stage):
    """Finds terms and text to copy; the searches of `Translator` see that translations contain them.

    Raises:
        CorpusError: the file of the glossary cannot be read, or a term is wrong.
        ConfigError: an option is of the wrong type or out of range, or a pattern is not a regular expression.
    """

    glossary: Annotated[
        Path | str | Mapping[str, str] | object | None,  # or a Glossary, whose import takes time
        Option(
            "translations must contain these terms: a file of lines SOURCE<TAB>TARGET (or CSV), or TARGET|TARGET "
            "for alternatives, and optionally <TAB>case (as written) or <TAB>part (also inside words)",
            {"ten": "zehn"},
            metavar="FILE",
        ),
    ] = None
    glossary_bonus: Annotated[
        Annotated[float, Range(0, MAX_BONUS)] | None,
        Option("prefer translations with the terms by X nats each, instead of requiring them", 2.0),
    ] = None
    keep: Annotated[
        tuple[str, ...],
        Option("copy what this regular expression matches unchanged", [r"\bACME \w+"], metavar="PATTERN"),
    ] = ()
    keep_usual: Annotated[
        bool,
        Option(
            "copy addresses, file names, numbers, `code`, tags and placeholders such as {name} and %1$s unchanged", True
        ),
    ] = False
    served: Mapping[str, str] | None = None  # if ``keep`` is from strangers, see `Keep`

    def __post_init__(self) -> None:
        from softsearch.runtime.glossary import open_glossary
        from softsearch.text.keep import Keep

        if isinstance(self.keep, Keep):
            raise ConfigError(
                "keep is a Keep, expected a list of regular expressions: for Keep([PATTERN], usual=True) write "
                "keep=[PATTERN], keep_usual=True"
            )
        glossary = None if self.glossary is None else open_glossary(cast("Glossary", self.glossary))
        object.__setattr__(self, "glossary", None)
        super().__post_init__()
        object.__setattr__(self, "glossary", glossary)
        object.__setattr__(self, "keep", tuple(self.keep))
        _ = self.kept  # wrong patterns are refused here

    @cached_property
    def kept(self) -> "Keep | None":
        """What finds text to copy."""
        from softsearch.text.keep import Keep

        return Keep(self.keep, usual=self.keep_usual, served=self.served) if self.keep or self.keep_usual else None

    @property
    def is_on(self) -> bool:
        """Tells whether there is something to find."""
        return self.glossary is not None or self.kept is not None

    def require(self, text: str) -> "Wanted":
        """Finds terms and text to copy; no terms are searched in the latter.

        Raises:
            InputError: a pattern takes too long.
        """
        from softsearch.runtime.glossary import Wanted

        kept, rest = self.kept.find(text) if self.kept else [], text
        for each in kept:
            rest = rest[: each.begin] + "\0" * len(each.text) + rest[each.end :]
        terms = cast("Glossary", self.glossary).find(rest) if self.glossary is not None else []
        return Wanted(tuple(term._replace(bonus=self.glossary_bonus) for term in terms), tuple(kept))
