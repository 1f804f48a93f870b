"""FSDP without a GPU, in two processes: gradients, their norms, validation by search, checkpoints, lost processes."""

import csv
import json
import math
import subprocess
from pathlib import Path

import pytest
import torch
from torch import Tensor

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.integration.fsdp_on_cpu import STEPS
from tests.support.commands import ROOT, SERVER, SMALL
from tests.support.small_run import assert_same_bits, small_data
from tests.support.small_runs import assert_validate_as_trained, export_in

pytestmark = pytest.mark.day

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


def train(run: Path, *options: str, faults: str = "{}") -> subprocess.CompletedProcess[str]:
    """Trains with the command, in two processes unless ``options`` say otherwise."""
    small = [option for option in SMALL if not option.startswith("trainer=")]
    sharded = ("optimizer=adam", "trainer=fsdp", "trainer.accelerator=cpu", "trainer.devices=2", "resume=auto")
    places = (f"hydra.run.dir={run}", f"cache_dir={run.parent / 'cache'}")
    env = {"PYTHONPATH": str(ROOT), "FAULTS": faults}
    return SERVER.run([SCRIPT, *small, *sharded, *options, *places], env=env)


def assert_equal_states(found: dict[int, dict[str, Tensor]], expected: dict[int, dict[str, Tensor]]) -> None:
    """Compares the moments of two checkpoints."""
    assert found.keys() == expected.keys()
    for number, moments in expected.items():
        for name, tensor in moments.items():
            assert torch.equal(found[number][name], tensor), f"{name} of parameter {number}"


def test_muon_is_refused(tmp_path: Path) -> None:
    done = train(tmp_path / "run", "optimizer=muon", "trainer.devices=1")
    assert (done.returncode, "optimizer=muon needs whole matrices" in done.stderr) == (2, True), done.stderr


@pytest.mark.multiprocess
def test_two_processes_accumulate_save_and_resume_with_frozen_weights(tmp_path: Path) -> None:
    options = "trainer.precision=bf16-mixed", "trainer.accumulate_grad_batches=2", "freeze=[embeddings]", "test=false"
    for steps in (4, 8):
        done = train(tmp_path / "run", *options, f"trainer.max_steps={steps}")
        assert done.returncode == 0, done.stderr
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")["global_step"] == 8
    done = train(tmp_path / "run", *options, "trainer=cpu")
    assert "optimizer_states.0 has other parameters than this model" in done.stderr


@pytest.mark.nightly  # by day the one above saves and resumes
@pytest.mark.multiprocess
@pytest.mark.timeout(900)
def test_a_run_that_lost_a_process_continues_as_if_it_had_not_and_exports_the_whole_model(tmp_path: Path) -> None:
    options = "model.encoder.dropout=0.3", "optimizer.lr=0.02", "search=greedy"
    done = train(tmp_path / "whole", *options)
    assert done.returncode == 0, done.stderr
    done = train(tmp_path / "run", *options, faults=json.dumps({1: {6: "exit"}}))
    assert (done.returncode, "lost the connection" in done.stderr) == (1, True), done.stderr
    done = train(tmp_path / "run", *options)
    assert (done.returncode, "continuing from" in done.stderr) == (0, True), done.stderr
    found, expected = (tmp_path / run / "checkpoints" / "last.ckpt" for run in ("run", "whole"))
    assert_same_bits(found, expected)
    assert_equal_states(*(load_checkpoint(path)["optimizer_states"][0]["state"] for path in (found, expected)))
    assert load_checkpoint(found.with_name("best.ckpt"))["global_step"] == 8
    export_in(tmp_path)
    systems = (f"ckpt={tmp_path}/run/checkpoints/best.ckpt", f"bundle={tmp_path}/bundle")
    assert_validate_as_trained(tmp_path, tmp_path / "run", *systems)
