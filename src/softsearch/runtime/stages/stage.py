"""A stage of a translation: an optional step with options of its own, such as markup or glossary terms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from softsearch.option import CheckedOptions, option

if TYPE_CHECKING:
    from softsearch.runtime.glossary import Wanted
    from softsearch.runtime.line_encoder import LineEncoder
    from softsearch.runtime.options import Search
    from softsearch.runtime.system import System
    from softsearch.runtime.translation import Candidates, Lines, Part, Translation
    from softsearch.search.interface import Sentences
    from softsearch.search.terms import Terms

# Where translations are asked for: the command, its prompt, Python, routes of the server, and the browser page.
Surface = Literal["command", "prompt", "python", "translate", "stream", "libretranslate", "page"]


class Searched(NamedTuple):
    """What a search was given and what it found, for the stages that need the model once more.

    Attributes:
        system: the model.
        strategy: the search.
        parts: what was translated: lines, or parts of them.
        prefixes: the ids that the translations of each part must begin with, if any must.
        terms: the terms that they must contain, if any must.
        workers: threads to use.
    """

    system: "System"
    strategy: "Search"
    parts: "Sequence[Part]"
    prefixes: "Sentences | None"
    terms: "Sequence[Terms | None] | None"
    workers: int

    @property
    def src(self) -> "Sentences":
        """The token ids of each part."""
        return [part.ids for part in self.parts]


@dataclass(frozen=True, kw_only=True)
class Stage(CheckedOptions):
    """Base of stages: a frozen dataclass whose fields are the options, with types, ranges and descriptions.

    A stage takes part in a translation if one of its options is given. Lines pass ``before``, a search passes
    ``search``, the translations of what fits into the model at once pass ``written``, and those of the lines ``after``.
    Each method returns what it is given unless a stage overrides it. A server calls ``written`` in another process
    than the rest, so stages are pickled.

    An option is a field ``Annotated[type, Option(help, example)]``, with a ``Range`` if it is a number. It
    is a keyword of `Translator.translate`, a flag of ``softsearch translate`` and a field of ``POST /translate``.

    Raises:
        ConfigError: an option is of the wrong type or out of range.
    """

    excludes: ClassVar[Sequence[str]] = ()  # options of other stages or of ``translate`` that do not fit
    unavailable: ClassVar[Mapping[Surface, str]] = {}  # why its options are not there

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.hints = {name: hint for name, hint in cls.hints.items() if option(hint).help}

    @property
    def name(self) -> str:
        """The first of its options, for messages."""
        return next(iter(self.hints))

    @property
    def is_on(self) -> bool:
        """Tells whether an option has another value than its default."""
        return any(getattr(self, each.name) != each.default for each in fields(self) if each.name in self.hints)

    @property
    def is_slow(self) -> bool:
        """Tells whether it takes so long that a server lets one line at a time pass."""
        return False

    def before(self, lines: "Lines", encoder: "LineEncoder") -> "tuple[Lines, Any]":
        """Changes lines before they are encoded by ``encoder``; also returns what ``after`` needs.

        Raises:
            SoftsearchError: a line is wrong, or the model cannot do it.
        """
        return lines, None

    def require(self, text: str) -> "Wanted | None":
        """Finds what the translation of a part of a line must contain."""
        return None

    def search(self, strategy: "Search") -> "Search":
        """Changes the search, or refuses it.

        Raises:
            ConfigError: it does not fit.
        """
        return strategy

    def written(self, candidates: "Candidates", searched: Searched) -> "Candidates":
        """Changes the translations of each part, with the model at hand.

        Raises:
            ConfigError: the model cannot do it.
        """
        return candidates

    def after(self, translations: "list[Translation]", kept: Any) -> "list[Translation]":
        """Changes the translations of lines; ``kept`` is what ``before`` returned."""
        return translations
