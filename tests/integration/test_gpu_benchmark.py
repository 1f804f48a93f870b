"""The checks that a GPU is to pass, on the CPU."""

import subprocess

import pytest
import torch

from tests.integration.commands import ROOT, SERVER


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    return SERVER.run([str(ROOT / "benchmarks" / "gpu" / script), *options])


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
