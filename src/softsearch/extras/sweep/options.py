"""Options of ``tune`` and ``compare``, as in their YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from softsearch.app import Part, Systems
from softsearch.ranges import AtLeastOne
from softsearch.search.parts import Average

Values = list[str | bool | float]  # values to choose from


@dataclass(frozen=True, kw_only=True)
class Tune(Systems):
    """Options of ``tune``."""

    search: Part
    language_model: Path | None
    ensemble: Average
    weights: list[float] | None
    language_model_weight: float
    searches: AtLeastOne
    space: Mapping[str, Values | Mapping[str, Values | Mapping[str, Values]]]
    sweep: Part
    sentences: AtLeastOne | None
    test: tuple[Path, Path] | None


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Options of ``compare``."""

    runs: Path | list[Path]
    split: str
    rank_by: str | None
    table: Path | None
    run_dir: Path
