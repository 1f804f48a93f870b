"""The checks that a GPU is to pass, on the CPU."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

GPU = Path(__file__).parents[2] / "benchmarks" / "gpu"


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(GPU / script), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_checks_some_models_and_a_resumed_run() -> None:
    done = run("check.py", "--device", "cpu", "--models", "rnnsearch", "nematus", "--runs", "mixed precision, resumed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| ok |") == 2 * 3 + 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("script", ["check.py", "speed.py"])
def test_says_that_there_is_no_gpu(script: str) -> None:
    done = run(script)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no GPU" in done.stderr


def test_measures_on_a_cpu() -> None:
    done = run("speed.py", "--device", "cpu", "--tiny", "--models", "transformer_base")
    assert done.returncode == 0, done.stderr
    assert "| transformer_base | " in done.stdout
