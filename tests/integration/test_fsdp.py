"""FSDP without a GPU: gradients, their norms, validation by search, over two processes; checkpoints of a single one."""

import csv
import json
import math
from pathlib import Path

import pytest

from tests.integration.commands import ROOT, SERVER, SMALL
from tests.integration.fsdp_on_cpu import STEPS
from tests.unit.training.small_run import small_data

SCRIPT = str(ROOT / "tests" / "integration" / "fsdp_on_cpu.py")


@pytest.mark.multiprocess
@pytest.mark.parametrize("model", [("rnnsearch",), ("pointer_generator", "loss=class_factored")], ids=" ".join)
def test_two_processes_share_the_weights(model: tuple[str, ...], tmp_path: Path) -> None:
    small_data(tmp_path)  # before there are two that would make it
    done = SERVER.run([SCRIPT, str(tmp_path), *model], env={"PYTHONPATH": str(ROOT)}, timeout=120)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(1, STEPS + 1))
    assert {row["grad_norm/embeddings"] for row in rows} == {"0.0"}  # they are frozen
    for part in ("encoder", "attention", "decoder", "output", "total"):
        assert all(0 < float(row[f"grad_norm/{part}"]) < math.inf for row in rows), part
    assert [row["step"] for row in rows if row["val/bleu"]] == ["4", str(STEPS)]
    assert float(rows[-1]["train/loss"]) < float(rows[0]["train/loss"])


@pytest.mark.parametrize(("optimizer", "message"), [("adam", ""), ("muon", "optimizer=muon needs whole matrices")])
def test_a_process_accumulates_saves_and_resumes(tmp_path: Path, optimizer: str, message: str) -> None:
    small = [option for option in SMALL if not option.startswith("trainer=")]
    options = (f"optimizer={optimizer}", "trainer=fsdp", "trainer.accelerator=cpu", "trainer.devices=1", "resume=auto")
    mixed = ("trainer.precision=bf16-mixed", "trainer.accumulate_grad_batches=2")
    places = (f"hydra.run.dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}")
    for steps in (4, 8):
        done = SERVER.run([SCRIPT, "train.py", *small, *options, *mixed, f"trainer.max_steps={steps}", *places])
        assert (done.returncode == 0, message in done.stderr) == (not message, True), done.stderr
    if not message:
        assert json.loads((tmp_path / "run" / "metrics.json").read_text())["train/steps"] == 8
