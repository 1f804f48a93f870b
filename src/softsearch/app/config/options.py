"""The options of each command, as ``configs/COMMAND.yaml`` has them, with their types and ranges.

:func:`softsearch.app.config.validation.read_options` makes them of a config, before anything of the lab is imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from omegaconf import DictConfig

from softsearch.ranges import AtLeastOne, Count, Range, Seed
from softsearch.runtime.manifest import MAX_SRC_TOKENS, MIN_SRC_TOKENS
from softsearch.search.ensemble import Average as EnsembleAverage

Part = DictConfig  # what a config group has chosen: for build(), checked against the constructor that it names
Parts = Mapping[str, Part | None]  # several by name; null leaves one out
Paths = Path | list[Path] | None


class Section:
    """Base of keys that belong together."""


@dataclass(frozen=True, kw_only=True)
class Vectors(Section):
    """Files of pretrained embeddings."""

    src: Path | None
    tgt: Path | None


@dataclass(frozen=True, kw_only=True)
class Train:
    """Of src/train.py."""

    data: Part
    tokenizer: Part
    batching: Part
    model: Part
    loss: Part
    method: Part
    optimizer: Part
    scheduler: Part
    search: Part
    trainer: Part
    callbacks: Parts
    logger: Parts
    name: str
    seed: Seed
    resume: Literal["auto"] | Path | None
    vectors: Vectors
    run_dir: Path
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Prepare(Train):
    """Of src/prepare.py."""

    processes: AtLeastOne | None


@dataclass(frozen=True, kw_only=True)
class Shortlist(Section):
    """Of words that may come in a translation."""

    frequent: AtLeastOne | None
    translations: AtLeastOne


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Of src/evaluate.py."""

    data: Part | None = None
    search: Part
    ckpt: Paths
    bundle: Paths
    ensemble: EnsembleAverage | None
    weights: list[float] | Path | None
    language_model: Path | None
    language_model_weight: float
    members: bool
    average: AtLeastOne | None
    split: str
    test: tuple[Path, Path] | None
    shortlist: Shortlist
    replace_unknown: Path | None
    against: Path | None
    overlap: bool
    curve: list[str | int] | None
    alignments: bool
    alignment_units: Literal["words", "pieces"]
    heatmaps: Count | list[AtLeastOne]
    gold: Path | None
    gold_first: Literal[0, 1]
    run_dir: Path
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Score:
    """Of src/score.py."""

    data: Part | None = None
    ckpt: Paths
    bundle: Paths
    ensemble: EnsembleAverage | None
    weights: list[float] | None
    average: AtLeastOne | None
    split: str
    src: Path | None
    tgt: Path | None
    tokens: bool
    run_dir: Path
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Tune:
    """Of src/tune.py."""

    data: Part | None = None
    search: Part
    ckpt: Paths
    bundle: Paths
    language_model: Path | None
    ensemble: EnsembleAverage
    weights: list[float] | None
    language_model_weight: float
    searches: AtLeastOne
    sentences: AtLeastOne | None
    average: AtLeastOne | None
    split: str
    test: tuple[Path, Path] | None
    run_dir: Path
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Export:
    """Of src/export.py."""

    search: Part
    ckpt: Path
    average: AtLeastOne | None = None
    out: Path
    report: Path | None = None
    max_src_tokens: Annotated[int, Range(MIN_SRC_TOKENS, MAX_SRC_TOKENS)] = 512
    shortlist: AtLeastOne | None = None
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """Of src/dictionary.py."""

    ckpt: Path
    average: AtLeastOne | None
    out: Path
    pairs: AtLeastOne | None
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Average:
    """Of src/average.py."""

    run: Path | None
    last: AtLeastOne
    ckpt: list[Path] | None
    out: Path | None


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Of src/compare.py."""

    runs: Path | list[Path]
    split: str
    run_dir: Path


OPTIONS: Mapping[str, type] = {  # of src/sweep.py: softsearch.app.sweep.study.Plan, which its config names
    "train": Train,
    "prepare": Prepare,
    "evaluate": Evaluate,
    "score": Score,
    "tune": Tune,
    "export": Export,
    "dictionary": Dictionary,
    "average": Average,
    "compare": Compare,
}
