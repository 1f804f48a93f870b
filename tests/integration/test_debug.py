"""Short runs that test a setup: one batch through every stage, the same batch again, and rising rates."""

from pathlib import Path

import pytest

from tests.support.commands import SMALL, run

pytestmark = pytest.mark.day

OPTIONS = [word for word in SMALL if not word.startswith(("trainer.", "experiment=", "callbacks.curves="))]


def test_fast_goes_through_every_stage(tmp_path: Path) -> None:
    done = run("train.py", *OPTIONS, "debug=fast", f"hydra.run.dir={tmp_path / 'run'}", f"cache_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    for name in ("checkpoints/best.ckpt", "bundle/manifest.json", "samples/step-1.txt", "curves.png", "metrics.json"):
        assert (tmp_path / "run" / name).is_file(), name
    assert (tmp_path / "run" / "test.hypotheses.txt").read_text().count("\n") == 8  # of 20
    assert "ONNX and PyTorch differ by at most" in done.stdout
    assert "unused nodes" not in done.stderr  # which onnx_ir tells


def test_lr_draws_and_suggests_without_a_test(tmp_path: Path) -> None:
    options = (*OPTIONS, "debug=lr", "trainer.max_steps=40", "batching.batches=2", "callbacks.lr_range.lowest=1e-4")
    done = run("train.py", *options, f"hydra.run.dir={tmp_path / 'run'}", f"cache_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert "try optimizer.lr=" in done.stderr
    assert "in 2 batches per process" in done.stderr
    assert (tmp_path / "run" / "lr.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "run" / "metrics.json").exists()
