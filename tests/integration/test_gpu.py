"""The trainers and precisions that need a GPU, trained, saved, tested and evaluated."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.support.commands import ROOT, SMALL

pytestmark = [pytest.mark.day, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own, because those of the fork server see no GPU."""
    return subprocess.run(
        [sys.executable, ROOT / "src" / script, *options], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "options",
    [
        ("trainer=gpu", "trainer.precision=bf16-mixed"),
        ("trainer=gpu", "trainer.precision=16-mixed"),
        ("trainer=gpu", "trainer.precision=32-true"),
        ("trainer=ddp", "trainer.precision=bf16-mixed"),
        ("trainer=fsdp", "trainer.precision=bf16-mixed"),
        ("trainer=fsdp", "trainer.precision=bf16-mixed", "trainer.accumulate_grad_batches=2"),
    ],
    ids=" ".join,
)
def test_trains_saves_resumes_and_evaluates(tmp_path: Path, options: tuple[str, ...]) -> None:
    small = [*(option for option in SMALL if not option.startswith("trainer")), "optimizer=adam"]  # FSDP refuses Muon
    places = (f"hydra.run.dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}", "trainer.val_check_interval=4")
    for steps in (4, 8):
        done = run("train.py", *small, *options, f"trainer.max_steps={steps}", "resume=auto", *places)
        assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert figures["train/steps"] == 8
    assert math.isfinite(figures["test/loss"])
    done = run(
        "evaluate.py", f"ckpt={tmp_path / 'run' / 'checkpoints' / 'best.ckpt'}", f"cache_dir={tmp_path / 'cache'}"
    )
    assert done.returncode == 0, done.stderr
