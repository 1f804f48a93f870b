"""FSDP without a GPU: gradients, their clipping and norms, and validation by search, over two processes."""

import csv
import math
from pathlib import Path

import pytest

from tests.integration.commands import ROOT, SERVER
from tests.integration.fsdp_on_cpu import STEPS
from tests.unit.training.small_run import small_data

pytestmark = pytest.mark.multiprocess


@pytest.mark.parametrize("model", [("rnnsearch",), ("pointer_generator", "loss=class_factored")], ids=" ".join)
def test_two_processes_share_the_weights(model: tuple[str, ...], tmp_path: Path) -> None:
    small_data(tmp_path)  # before there are two that would make it
    script = ROOT / "tests" / "integration" / "fsdp_on_cpu.py"
    variables = {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = SERVER.run([str(script), str(tmp_path), *model], env=variables, timeout=120)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(1, STEPS + 1))
    assert {row["grad_norm/embeddings"] for row in rows} == {"0.0"}  # they are frozen
    for part in ("encoder", "attention", "decoder", "output", "total"):
        assert all(0 < float(row[f"grad_norm/{part}"]) < math.inf for row in rows), part
    assert [row["step"] for row in rows if row["val/bleu"]] == ["4", str(STEPS)]
    assert float(rows[-1]["train/loss"]) < float(rows[0]["train/loss"])
