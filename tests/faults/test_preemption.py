"""Runs that are terminated or lose a process."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.commands import ROOT
from tests.support.faulty_trainings import INJECTED, TWO_CPU_PROCESSES, Faults, TwoProcesses, arguments, rows, train
from tests.support.small_run import assert_same_bits

SLURM = {
    "SLURM_JOB_ID": "4242",
    "SLURM_JOB_NAME": "train",
    "SLURM_NTASKS": "1",
    "SLURM_NTASKS_PER_NODE": "1",
    "SLURM_NNODES": "1",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
}
SCONTROL = """#!/bin/sh
echo "$@" >> {calls}
"""


def last(run: Path) -> Path:
    return run / "checkpoints" / "last.ckpt"


def with_signals(faults: Faults, *signals: tuple[int, int]) -> Faults:
    """The faults, and SIGTERM at some processes' batches."""
    together = {rank: dict(batches) for rank, batches in faults.items()}
    for rank, batch in signals:
        together[rank][batch] = f"sigterm {together[rank].get(batch, '')}"
    return together


# One process at the end of an epoch, all at a step with a validation; and at steps that are skipped.
@pytest.mark.day
@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
def test_terminated_processes_save_end_and_resume(two_processes: TwoProcesses) -> None:
    """Fault: SIGTERM to a run, to one of its two processes or to both.

    Effect: all save a checkpoint at the next step and end with exit code 143; resuming is exact.
    """
    folder, faults, _ = two_processes
    for step, signals in ((4, [(1, 3)]), (5, [(0, 4), (1, 4)])):
        killed = train(folder, "run", "trainer=ddp", faults=with_signals(faults, *signals))
        assert killed.returncode == 143, killed.stderr
        assert "Traceback" not in killed.stderr
        assert load_checkpoint(last(folder / "run"))["global_step"] == step
    resumed = train(folder, "run", "trainer=ddp", faults=faults)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_bits(last(folder / "run"), last(folder / "whole"))
    assert rows(folder / "run") == rows(folder / "whole")


@pytest.mark.day
@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({1: {2: "exit"}}, id="second", marks=pytest.mark.nightly),
        pytest.param({0: {2: "exit"}, 1: {2: "hang"}}, id="first"),
    ],
)
def test_a_process_that_dies_ends_the_other(faults: Faults, tmp_path: Path) -> None:
    """Fault: one of several processes dies. Effect: the others end."""
    command = [sys.executable, INJECTED, *arguments(tmp_path, "run", "trainer=ddp")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "FAULTS": json.dumps(faults)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    now = time.time()  # both are gone, because nothing holds the pipes any more
    assert done.returncode != 0
    told = re.search(r"exits at ([\d.]+)", done.stderr)
    assert told, done.stderr
    assert now - float(told[1]) < 30


@pytest.mark.day
def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    """Fault: a second signal. Effect: the process ends at once; no half-written file stays."""
    done = train(tmp_path, "run", faults={0: {2: "sigint sigterm hang"}}, timeout=120)
    assert done.returncode == 143
    assert not last(tmp_path / "run").exists()


def test_ctrl_c_saves_and_slurm_requeues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: Ctrl-C, or SLURM's signal before the time limit.

    Effect: the run saves and ends with exit code 130, or is requeued.
    """
    every = "trainer.log_every_n_steps=3"  # the second start ends between two lines of the log
    whole = train(tmp_path, "whole", every)
    assert whole.returncode == 0, whole.stderr
    run = tmp_path / "run"
    killed = train(tmp_path, "run", every, faults={0: {2: "sigint"}})
    assert killed.returncode == 130, killed.stderr
    assert load_checkpoint(last(run))["global_step"] == 3

    calls, stub = tmp_path / "calls", tmp_path / "bin" / "scontrol"
    stub.parent.mkdir()
    stub.write_text(SCONTROL.format(calls=calls))
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(stub.parent), prepend=":")
    requeued = train(tmp_path, "run", every, faults={0: {4: "sigusr1"}}, **SLURM)
    assert requeued.returncode == 138, requeued.stderr
    assert load_checkpoint(last(run))["global_step"] == 5
    assert calls.read_text() == "requeue 4242\n"
    assert not list(run.glob("hpc_ckpt_*"))  # Lightning's, of the middle of a step

    again = train(tmp_path, "run", every, **SLURM)
    assert again.returncode == 0, again.stderr
    assert_same_bits(last(run), last(tmp_path / "whole"))
    assert rows(run) == rows(tmp_path / "whole")
    assert calls.read_text() == "requeue 4242\n"
