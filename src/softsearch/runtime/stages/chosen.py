"""The stages of a translation, chosen by its options, and those of installed packages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple

from softsearch.errors import ConfigError, summarize
from softsearch.runtime.options import kinds_with, option_of
from softsearch.runtime.stages.languages import LanguageStage
from softsearch.runtime.stages.stage import Searched, Stage
from softsearch.runtime.stages.table import ARGUMENTS, OPTIONS, STAGES

if TYPE_CHECKING:
    from softsearch.runtime.glossary import Wanted
    from softsearch.runtime.line_encoder import LineEncoder
    from softsearch.runtime.options import Search
    from softsearch.runtime.translation import Candidates, Lines, Part, Translation

ENTRY_POINTS = "softsearch.stages"  # installed packages add to them: name = "module:Class"
_HERE = "softsearch.runtime.stages"


@cache
def installed_stages() -> dict[str, type[Stage]]:
    """The stages that installed packages add, by name; read only for an option that is not one of ours, or for lists.

    Raises:
        ConfigError: a package's stage cannot be imported, is something else, or has an option of another stage.
    """
    from importlib.metadata import entry_points  # slow to import

    found: dict[str, type[Stage]] = {}
    for point in sorted(entry_points(group=ENTRY_POINTS)):
        package = point.dist.name if point.dist else "a package"
        what = f"stage {point.name} of {package} is {point.value}"
        try:
            stage = point.load()
        except Exception as error:  # third-party code may raise anything
            raise ConfigError(
                f"{what}, which cannot be imported ({summarize(error)}); install {package} again, or remove it"
            ) from error
        if not (isinstance(stage, type) and issubclass(stage, Stage) and stage.hints):
            raise ConfigError(f"{what}, expected a subclass of Stage with options; correct it, or remove {package}")
        taken = {*OPTIONS, *ARGUMENTS, *(name for other in found.values() for name in other.hints)}
        for name in stage.hints:
            if name in taken or kinds_with(option_of(name)):
                raise ConfigError(f"{what}, whose option {name} exists already; give it another name")
        found[point.name] = stage
    return found


@cache
def _of_core(place: str) -> type[Stage]:
    stage: type[Stage] = resolve_name(f"{_HERE}.{place}")
    return stage


def core_stages() -> dict[str, type[Stage]]:
    """The stages of the core that have options, by name, in the order in which lines pass them; imports them."""
    return {place.partition(":")[0]: _of_core(place) for place, options in STAGES.items() if options}


def every_stage() -> dict[str, type[Stage]]:
    """All stages by name, in the order in which lines pass them; imports them, and raises as ``installed_stages``.

    Those of packages come first: they get lines as given, and translations as returned.
    """
    return installed_stages() | {place.partition(":")[0]: _of_core(place) for place in STAGES}


def stage_of(option: str) -> type[Stage] | None:
    """The stage with an option; None for one of searches or an unknown one; raises as ``installed_stages``."""
    if option in OPTIONS:
        return _of_core(OPTIONS[option])
    if kinds_with(option):
        return None
    return next((stage for stage in installed_stages().values() if option in stage.hints), None)


def _place(stage: Stage) -> int:
    """A number by which stages are sorted."""
    places = [place.partition(":")[2] for place in STAGES]
    name = type(stage).__name__
    return places.index(name) if type(stage).__module__.startswith(_HERE) else -1


class Before(NamedTuple):
    """What the stages did before the search.

    Attributes:
        lines: the lines for the model.
        kept: what each stage needs afterwards.
    """

    lines: "Lines"
    kept: tuple[Any, ...]


@dataclass(frozen=True)
class Stages:
    """The stages of a translation, in the order in which lines pass them; translations pass them in reverse.

    Args:
        known: the stages; those that are off are the defaults of ``given`` alone.
    """

    known: tuple[Stage, ...] = (LanguageStage(),)

    @cached_property
    def chosen(self) -> tuple[Stage, ...]:
        """The stages that are on."""
        return tuple(stage for stage in self.known if stage.is_on)

    def given(self, options: Mapping[str, Any]) -> tuple["Stages", dict[str, Any]]:
        """Chooses stages by options, with those of these stages as defaults; also returns the other options.

        Raises:
            ConfigError: an option is of the wrong type or out of range.
            CorpusError: a file that an option names is wrong.
        """
        own: dict[type[Stage], dict[str, Any]] = {}
        others: dict[str, Any] = {}
        for name, value in options.items():
            if value is not None:
                stage = stage_of(name)
                (others if stage is None else own.setdefault(stage, {}))[name] = value
        if not own:
            return self, others
        if options.get("markup") and options.get("paragraphs"):  # not the lines are split, but the text in the tags
            markup, paragraphs = map(_of_core, (OPTIONS["markup"], OPTIONS["paragraphs"]))
            own[markup]["sentences"] = own.pop(paragraphs)["paragraphs"]
        old = {type(stage): stage for stage in self.known}
        return self.changed(*(replace(old.get(stage) or stage(), **values) for stage, values in own.items())), others

    def changed(self, *stages: Stage) -> "Stages":
        """Adds stages, or replaces those of their classes."""
        every = {type(stage): stage for stage in (*self.known, *stages)}
        return Stages(tuple(sorted(every.values(), key=_place)))

    def for_model(self, encoder: "LineEncoder") -> "Stages":
        """Adds what every translation by a model needs."""
        return self.changed(_of_core("symbols:SymbolStage")()) if encoder.tokenizers[0].reads_symbols else self

    def refuse(self, **given: object) -> None:
        """Refuses options, given by name with their values, that do not fit a stage.

        Raises:
            ConfigError: one of them is given.
        """
        for stage in self.chosen:
            for name in (name for name in stage.excludes if given.get(name) not in (None, False)):
                raise ConfigError(f"{stage.name} and {name} cannot be combined: {name} is per sentence; leave one out")

    def before(self, lines: "Lines", encoder: "LineEncoder") -> Before:
        """Lets each stage change the lines; raises as `Stage.before`."""
        kept: list[Any] = []
        for stage in self.chosen:
            lines, own = stage.before(lines, encoder)
            kept.append(own)
        return Before(lines, tuple(kept))

    def require(self, sources: "list[list[Part]]") -> "list[list[Part]]":
        """Finds what the translation of each part of each line must contain; raises as `Stage.require`."""
        if not self.finds:
            return sources
        return [[part._replace(wanted=self.wanted(part.text)) for part in line] for line in sources]

    @property
    def finds(self) -> bool:
        """Tells whether a stage can require something of translations."""
        return any(type(stage).require is not Stage.require for stage in self.chosen)

    def wanted(self, text: str) -> "Wanted | None":
        """Finds what a translation must contain, of all stages; parts to copy that overlap or touch are one."""
        found = [wanted for stage in self.chosen if (wanted := stage.require(text)) is not None]
        if len(found) < 2:
            return found[0] if found else None
        from softsearch.text.keep import joined

        kept = joined(text, [(each.begin, each.end) for wanted in found for each in wanted.kept])
        return found[0]._replace(terms=tuple(term for wanted in found for term in wanted.terms), kept=tuple(kept))

    @property
    def without_finders(self) -> "Stages":
        """The stages that require nothing of translations."""
        return Stages(tuple(stage for stage in self.chosen if type(stage).require is Stage.require))

    def search(self, strategy: "Search") -> "Search":
        """Lets each stage change the search; raises as `Stage.search`."""
        for stage in self.chosen:
            strategy = stage.search(strategy)
        return strategy

    def written(self, candidates: "Candidates", searched: Searched) -> "Candidates":
        """Lets each stage change the translations of parts; raises as `Stage.written`."""
        for stage in self.chosen:
            candidates = stage.written(candidates, searched)
        return candidates

    @property
    def of_model(self) -> "Stages":
        """The stages that change the translations of parts."""
        return Stages(tuple(stage for stage in self.chosen if type(stage).written is not Stage.written))

    @property
    def changes_translations(self) -> bool:
        """Tells whether a stage changes the translations of lines."""
        return any(type(stage).after is not Stage.after for stage in self.chosen)

    def after(self, translations: "list[Translation]", kept: Sequence[Any]) -> "list[Translation]":
        """Lets each stage change the translations of the lines."""
        for stage, own in zip(reversed(self.chosen), reversed(kept), strict=True):
            translations = stage.after(translations, own)
        return translations


NO_STAGES = Stages(())
