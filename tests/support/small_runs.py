"""Small runs of any models, started in this process, for tests that need several of them side by side."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import export
from softsearch.app.train.train import train

OPTIONS = (
    "data.train_size=400", "data.val_size=12", "data.test_size=12", "tokenizer.vocab_size=150", "batching.tokens=1024",
    "optimizer.lr=0.02", "scheduler.warmup_steps=5", "trainer=cpu", "trainer.precision=32-true",
    "trainer.max_steps=30", "trainer.val_check_interval=30", "trainer.log_every_n_steps=5", "callbacks.curves=null",
    "search=greedy", "search.max_length_factor=1",
)  # fmt: skip
SIZES = {
    "dim": 16, "hidden_dim": 16, "maxout_dim": 16, "d_ff": 16, "num_layers": 1, "dropout": 0.0,
}  # fmt: skip


PICTURES = (  # a budget for models of generated pictures
    "model.decoder.hidden_dim=64", "tokenizer=word", "batching.tokens=1024", "optimizer.lr=0.01",
    "scheduler.warmup_steps=20", "trainer=cpu", "trainer.max_steps=80", "trainer.val_check_interval=80",
    "loss.smoothing=0", "resume=null",
)  # fmt: skip


def configure(command: str, *options: str) -> DictConfig:
    """The config of a command."""
    return composed(command, *options)


def shrink(node: DictConfig, sizes: Mapping[str, float]) -> None:
    """Makes a model no larger than ``sizes``."""
    for key, value in node.items():
        if isinstance(value, DictConfig):
            shrink(value, sizes)
        elif key in sizes and value:
            node[key] = min(value, sizes[str(key)])


def train_in(home: Path, *options: str, sizes: Mapping[str, float] | None = None) -> None:
    """Trains a model, no larger than ``sizes``, in ``home/run``."""
    config = configure("train", *options, f"run_dir={home}/run", f"cache_dir={home}/cache")
    shrink(config.model, sizes or {})
    train(config)


def export_in(home: Path, form: str = "bundle") -> None:
    """Exports the best checkpoint of ``home/run`` as ``home/bundle``, or in another format."""
    words = (f"ckpt={home}/run/checkpoints/best.ckpt", f"out={home}/{form}", f"format={form}")
    export(read_options(configure("export", *words, f"cache_dir={home}/cache"), Export))


def evaluate_in(home: Path, *options: str) -> dict[str, Any]:
    """The report of systems of ``home``, written to ``home/report``."""
    evaluate(configure("evaluate", *options, f"run_dir={home}/report", f"cache_dir={home}/cache"))
    report: dict[str, Any] = json.loads((home / "report" / "report.json").read_text(encoding="utf-8"))
    return report


def evaluate_alike(home: Path, *options: str) -> None:
    """Checks that the best checkpoint of ``home/run`` and ``home/bundle`` have the BLEU of the run's test."""
    systems = (f"ckpt={home}/run/checkpoints/best.ckpt", f"bundle={home}/bundle")
    report = evaluate_in(home, *systems, *options)
    metrics = json.loads((home / "run" / "metrics.json").read_text())
    assert metrics["test/bleu"] > 10
    assert [system["scores"]["bleu"]["value"] for system in report["systems"]] == [metrics["test/bleu"]] * 2
    assert report["warnings"] == []


def assert_validate_as_trained(home: Path, run: Path, *systems: str) -> None:
    """Checks that systems, each in one process, have the loss, BLEU and chrF of a run's last validation.

    Metrics are logged in float32, and the loss is a mean of means there.
    """
    report = evaluate_in(home, *systems, "split=val", "search=greedy")
    with (run / "metrics.csv").open(newline="") as file:
        logged = [row for row in csv.DictReader(file) if row["val/loss"]][-1]
    for system in report["systems"]:
        assert system["nll"] == pytest.approx(float(logged["val/loss"]), rel=1e-6)
        for name in ("bleu", "chrf"):
            assert system["scores"][name]["value"] == pytest.approx(float(logged[f"val/{name}"]), rel=1e-6)


def configure_run(home: Path, name: str, *options: str) -> DictConfig:
    """The config of a run in ``home``, whose corpus is that of all runs there."""
    folders = (f"run_dir={home / name}", f"cache_dir={home}")
    config = configure("train", *OPTIONS, f"name={name}", *folders, *options)
    shrink(config.model, SIZES)
    return config


def export_run(home: Path, name: str) -> None:
    """Makes the ``bundle`` of a run."""
    options = (f"ckpt={ckpt(home, name)}", f"out={bundle(home, name)}", f"cache_dir={home}")
    export(read_options(configure("export", *options), Export))


def ckpt(home: Path, name: str) -> str:
    """The best checkpoint of a run."""
    return str(home / name / "checkpoints" / "best.ckpt")


def bundle(home: Path, name: str) -> str:
    """The bundle of a run."""
    return str(home / "exports" / name)


def lines(home: Path, file: str = "val.en") -> list[str]:
    """The lines of a file of the corpus."""
    return next(home.glob(f"spellout-*/{file}")).read_text(encoding="utf-8").splitlines()


def evaluated(home: Path, *options: str) -> dict[str, Any]:
    """The report of an evaluation on the validation set."""
    common = ("split=val", "overlap=false", f"cache_dir={home}", f"run_dir={home / 'report'}")
    evaluate(configure("evaluate", *common, *options))
    report: dict[str, Any] = json.loads((home / "report" / "report.json").read_text(encoding="utf-8"))
    return report
