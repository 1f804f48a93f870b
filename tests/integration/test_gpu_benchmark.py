"""The checks that a GPU is to pass, on the CPU."""

import subprocess

import pytest
import torch

from tests.support.commands import ROOT, SERVER

pytestmark = pytest.mark.day


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    return SERVER.run([str(ROOT / "benchmarks" / "gpu" / script), *options])


@pytest.mark.parametrize("runs", [[], pytest.param(["mixed precision, resumed"], marks=pytest.mark.nightly)], ids=len)
def test_checks_a_model_and_a_resumed_run(runs: list[str]) -> None:
    done = run("check.py", "--device", "cpu", "--models", "rnnsearch", "--runs", *runs)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| ok |") == 5 + len(runs)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("script", ["check.py", "speed.py"])
def test_says_that_there_is_no_gpu(script: str) -> None:
    done = run(script)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no GPU" in done.stderr


@pytest.mark.nightly
def test_measures_on_a_cpu() -> None:
    done = run("speed.py", "--device", "cpu", "--tiny", "--models", "transformer_base")
    assert done.returncode == 0, done.stderr
    assert "| transformer_base | " in done.stdout
