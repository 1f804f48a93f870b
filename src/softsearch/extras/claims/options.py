"""Options of ``reproduce`` and ``history``, as in their YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from softsearch.app import Section
from softsearch.ranges import AtLeastOne


@dataclass(frozen=True, kw_only=True)
class Trainings:
    """Options of commands that train several models."""

    overrides: tuple[str, ...]
    multi30k: Path | None
    jobs: AtLeastOne
    dry_run: bool
    runs_dir: Path
    run_dir: Path
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Reproduce(Trainings):
    """Options of ``reproduce``."""

    claim: str | tuple[str, ...]
    scale: Literal["quick", "cpu", "gpu", "paper", "smallest"]
    publish: Path | None
    missing: bool


@dataclass(frozen=True, kw_only=True)
class PageFacts(Section):
    """Text of a page, and facts about its models by name."""

    title: str
    text: str
    models: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Budget(Section):
    """Options of all trainings, and of single trainings by model."""

    common: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]

    def run(self, model: str) -> tuple[str, ...]:
        """Returns the options of a model's training."""
        return (f"model={model}", *self.common, *self.options.get(model, ()))


@dataclass(frozen=True, kw_only=True)
class History(Trainings):
    """Options of ``history``."""

    about: PageFacts
    models: tuple[str, ...] | None
    budget: Budget
    out: Path
