"""Options of the core's commands (``configs/COMMAND.yaml``), with their types and ranges.

``softsearch.app.config.validation.read_options`` reads them from a config before the lab is imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

from omegaconf import DictConfig

from softsearch.commands import named
from softsearch.doors import public_name
from softsearch.ranges import MAX_SRC_TOKENS, MIN_SRC_TOKENS, AtLeastOne, Count, NotNegative, Range, Seed
from softsearch.search.options import Average as EnsembleAverage

Part = DictConfig  # the choice of a config group; build() checks it against the constructor that it names
Parts = Mapping[str, Part | None]  # several choices by name; null turns one off
Paths = Path | list[Path] | None
Trust = tuple[str, ...] | str  # packages whose classes a checkpoint may name


def library_hints(function: Any) -> Mapping[str, Any]:
    """Returns types and ranges that a library's annotations lack, and those of options that we add."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    return _LIBRARY_HINTS.get(public_name(name), {})


def options_of(command: str) -> Any:
    """Returns the dataclass of a command's options; None for a command that reads its config itself."""
    found = named(command)
    return resolve_name(found.options) if found is not None and found.options else None


class Section:
    """Base of options that belong together under one key."""


@dataclass(frozen=True, kw_only=True)
class Vectors(Section):
    """Files of pretrained embeddings."""

    src: Path | None
    tgt: Path | None


@dataclass(frozen=True, kw_only=True)
class Init(Section):
    """A trained checkpoint to start from, and what to take from it."""

    ckpt: Path | None = None
    vocabulary: Literal["keep", "grow", "own"] = "keep"
    parts: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Train:
    """Options of ``train``."""

    data: Part
    tokenizer: Part
    batching: Part
    noise: Part
    model: Part
    loss: Part
    method: Part
    metric: Parts
    optimizer: Part
    scheduler: Part
    search: Part
    trainer: Part
    callbacks: Parts
    logger: Parts
    name: str
    seed: Seed
    compile: bool
    cuda_graphs: bool
    monitor: str
    test: bool | AtLeastOne = True
    resume: Literal["auto"] | Path | None
    overwrite: bool
    init: Init
    freeze: tuple[str, ...]
    adapter: Part | None = None
    vectors: Vectors
    trust: Trust = ()
    run_dir: Path
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class CountNGrams(Train):
    """Options of ``count``."""


@dataclass(frozen=True, kw_only=True)
class Prepare(Train):
    """Options of ``prepare``."""

    processes: AtLeastOne | None
    part: str | None
    store: str | None


@dataclass(frozen=True, kw_only=True)
class Shortlist(Section):
    """Limits of the target vocabulary per sentence."""

    frequent: AtLeastOne | None
    translations: AtLeastOne


@dataclass(frozen=True, kw_only=True)
class Guard(Section):
    """Text on which an adapted model may lose only a limited amount."""

    old: tuple[Path, ...] | None
    max_loss: NotNegative


@dataclass(frozen=True, kw_only=True)
class Systems:
    """Options that name systems and a text, for ``evaluate``, ``score`` and ``tune``."""

    data: Part | None = None
    ckpt: Paths
    bundle: Paths
    average: AtLeastOne | None
    split: str
    trust: Trust = ()
    run_dir: Path
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Evaluate(Systems):
    """Options of ``evaluate``."""

    search: Part
    metric: Parts
    hyp: Paths
    ensemble: EnsembleAverage | None
    weights: list[float] | Path | None
    language_model: Path | None
    language_model_weight: float
    members: bool
    test: tuple[Path, ...] | None
    sentences: AtLeastOne | None
    shortlist: Shortlist
    replace_unknown: str | None
    against: Path | None
    guard: Guard
    overlap: bool | Literal["near"]
    curve: list[str | int] | None
    alignments: bool
    alignment_units: Literal["words", "pieces"]
    heatmaps: Count | list[AtLeastOne]
    traces: Count | list[AtLeastOne]
    gold: Path | None
    gold_first: Literal[0, 1]
    table: Path | None


@dataclass(frozen=True, kw_only=True)
class Score(Systems):
    """Options of ``score``."""

    ensemble: Literal["log_probs", "probs"] | None  # not unnormalised scores, which are not probabilities
    weights: list[float] | None
    src: Path | None
    tgt: Path | None
    tokens: bool


@dataclass(frozen=True, kw_only=True)
class Export:
    """Options of ``export``."""

    search: Part
    format: Part
    ckpt: Path
    average: AtLeastOne | None = None
    out: Path
    overwrite: bool = False
    report: Path | None = None
    max_src_tokens: Annotated[int, Range(MIN_SRC_TOKENS, MAX_SRC_TOKENS)] = 512
    shortlist: AtLeastOne | None = None
    precision: Literal["float32", "fp16", "int8"] = "float32"
    max_bleu_loss: NotNegative = 0.5
    val: tuple[Path, Path] | None = None
    trust: Trust = ()
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """Options of ``dictionary``."""

    ckpt: Path
    average: AtLeastOne | None
    out: Path
    pairs: AtLeastOne | None
    trust: Trust = ()
    cache_dir: Path


@dataclass(frozen=True, kw_only=True)
class Average:
    """Options of ``average``."""

    run: Path | None
    last: AtLeastOne
    ckpt: list[Path] | None
    out: Path | None
    trust: Trust = ()


_AtLeastMinusOne = Annotated[int, Range(-1)]  # -1 means "no limit" or "all"
_Limit = Count | Annotated[float, Range(0, 1)] | None
_EARLY_STOPPING = {"patience": Count, "min_delta": NotNegative, "log_rank_zero_only": bool}

# Ranges for the arguments of library classes, by full class name; their own annotations have at most types.
_LIBRARY_HINTS: Mapping[str, Mapping[str, Any]] = {
    "lightning.pytorch.trainer.trainer.Trainer": {
        "max_steps": _AtLeastMinusOne,
        "min_steps": Count | None,
        "max_epochs": _AtLeastMinusOne | None,
        "min_epochs": Count | None,
        "num_nodes": Annotated[int, Range(1, 4096)],
        "devices": list[Count] | str | Annotated[int, Range(-1, 4096)],
        "num_sanity_val_steps": _AtLeastMinusOne | None,
        "val_check_interval": AtLeastOne | Annotated[float, Range(0, 1, open_low=True)] | str | None,
        "check_val_every_n_epoch": AtLeastOne | None,
        "log_every_n_steps": AtLeastOne,
        "gradient_clip_val": NotNegative | None,
        "accumulate_grad_batches": AtLeastOne,
        "limit_train_batches": _Limit,
        "limit_val_batches": _Limit,
        "limit_test_batches": _Limit,
        "reload_dataloaders_every_n_epochs": Count,
        "checkpoint_activations": bool,  # our own, not passed to Lightning's class
    },
    "sacrebleu.metrics.chrf.CHRF": {"char_order": AtLeastOne, "word_order": Count, "beta": AtLeastOne},
    "lightning.pytorch.callbacks.early_stopping.EarlyStopping": _EARLY_STOPPING,
    "softsearch.training.EarlyStopping": _EARLY_STOPPING,
}
