"""The figures of a run's speed."""

from pathlib import Path

from softsearch.training.callbacks.throughput import Throughput
from tests.unit.training.small_run import fit


def test_a_resumed_run_counts_on(tmp_path: Path) -> None:
    first, second = Throughput(), Throughput()
    run = tmp_path / "run"
    fit(tmp_path, run, first)
    fit(tmp_path, run, second, resume=run / "checkpoints" / "last.ckpt")  # which has no step left to do
    names = (
        "train/tokens_per_second",
        "train/seconds",
        "train/elapsed_seconds",
        "train/padding_efficiency",
        "train/steps",
    )
    assert {name: second.summary[name] for name in names} == {name: first.summary[name] for name in names}
    assert first.summary["train/tokens_per_second"] > 0
    assert first.summary["train/elapsed_seconds"] > first.summary["train/seconds"]  # there was a validation
