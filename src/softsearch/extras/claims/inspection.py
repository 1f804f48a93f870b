"""Measures of finished runs from their models and logs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.build import untrained_model
from softsearch.app.results import read_metrics
from softsearch.app.systems.open import open_systems
from softsearch.app.train_process import logged_values
from softsearch.evaluation import TorchStepFunction
from softsearch.evaluation.test_set import HeldOutText, read_split
from softsearch.extras.claims.measures import Runs, chosen, evaluated
from softsearch.extras.claims.verdict import Row
from softsearch.runtime.system import System
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from softsearch.training.checkpoints.folder import checkpoint_file


@dataclass(frozen=True, kw_only=True)
class ModelMeasure:
    """Rows computed by a function of models.

    Args:
        rows: a function of a run as a system with that name, its test set and the cache folder.
        runs: names of the runs; null for all.
        seeds: seeds of these runs; null for all.
        weights: ``trained``, or ``initial`` for a new model with the run's config and seed.
        translator: a run of the claim; the function gets the translations of its test set, with the same seed, as
            option ``translations``.
    """

    rows: Callable[..., Iterable[Row]]
    runs: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    weights: Sequence[Literal["initial", "trained"]] = ("trained",)
    translator: str | None = None

    def __call__(self, runs: Runs) -> list[Row]:
        """Opens each run."""
        found = []
        for run, seed, folder in _each(runs, self.runs):
            if self.seeds is not None and seed not in self.seeds:
                continue
            system, text, config = _opened(run, folder)
            rows = self.rows
            if self.translator is not None:
                (translated,) = evaluated([runs[self.translator][seed]], ()).systems
                rows = partial(rows, translations=translated.hypotheses)
            for weights in self.weights:
                inspected = system
                if weights == "initial":
                    torch.manual_seed(seed)
                    model = untrained_model(read_contents(checkpoint_file(folder))).eval()
                    inspected = replace(system, step_fn=TorchStepFunction(model))
                labels: Row = {"run": run, "seed": seed, "weights": weights}
                found += [labels | row for row in rows(inspected, text, Path(config.cache_dir))]
        return found


@dataclass(frozen=True, kw_only=True)
class SeedMeasure:
    """Rows computed by a function of the models of a run, one for each seed.

    Args:
        rows: a function of the systems, their test set and the cache folder.
        runs: names of the runs; null for all.
    """

    rows: Callable[[Sequence[System], HeldOutText, Path], Iterable[Row]]
    runs: Sequence[str] | None = None

    def __call__(self, runs: Runs) -> list[Row]:
        """Opens the models of each run."""
        found: list[Row] = []
        for run, seeds in chosen(runs, self.runs).items():
            opened = [_opened(run, folder) for folder in seeds.values()]
            _, text, config = opened[0]
            systems = [system for system, _, _ in opened]
            found += [{"run": run} | row for row in self.rows(systems, text, Path(config.cache_dir))]
        return found


def _opened(run: str, folder: Path) -> tuple[System, HeldOutText, DictConfig]:
    """Opens a run as a system with that name, its test set and its config."""
    config = OmegaConf.load(folder / "config.yaml")
    assert isinstance(config, DictConfig)
    (opened,) = open_systems(str(folder), None, None)
    assert isinstance(opened.step_fn, TorchStepFunction)
    model = opened.step_fn.model.cpu()  # where the functions create tensors
    system = replace(opened, name=run, step_fn=TorchStepFunction(model))
    text = read_split(system.source, "test", Path(config.cache_dir), "train on data with one")
    return system, text.joined(system.tokenizers[1]), config


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A row per run with logged values, and the ``perplexity`` on its test set.

    Args:
        final: columns for values in ``metrics.json``, such as ``{bleu: test/bleu}``.
        largest: columns for the largest value of a column in ``metrics.csv``.
        config: columns for options of the run, such as ``{pairs: data.train_size}``.
        runs: names of the runs; null for all.
    """

    final: Mapping[str, str] | None = None
    largest: Mapping[str, str] | None = None
    config: Mapping[str, str] | None = None
    runs: Sequence[str] | None = None

    def __call__(self, runs: Runs) -> list[Row]:
        """Reads each run's files."""
        rows = []
        for run, seed, folder in _each(runs, self.runs):
            final, config = read_metrics(folder), OmegaConf.load(folder / "config.yaml")
            row: Row = {"run": run, "seed": seed, "perplexity": math.exp(min(final["test/loss"], 700))}
            row |= {name: final[key] for name, key in (self.final or {}).items()}
            for name, key in (self.largest or {}).items():
                row[name] = max(value for _, value in logged_values(folder, key))
            rows.append(row | {name: OmegaConf.select(config, key) for name, key in (self.config or {}).items()})
        return rows


def _each(runs: Runs, names: Sequence[str] | None) -> list[tuple[str, int, Path]]:
    return [(run, *item) for run, seeds in chosen(runs, names).items() for item in seeds.items()]
