"""Signals, in a run of this process, and SLURM's queue."""

import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.faults import preemption
from softsearch.training.faults.preemption import Preemption, _requeue
from tests.support.small_run import Terminate, files, fit


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """A run that is terminated leaves its handlers to the end of the process."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_a_finished_run_gives_the_signals_back(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    fit(tmp_path, tmp_path / "run", batches=2)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


@pytest.mark.parametrize(("kill", "saved"), [(2, ["last.ckpt"]), (3, ["best.ckpt", "last.ckpt", "step-4.ckpt"])])
def test_a_validation_that_is_due_is_done_before(kill: int, saved: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        fit(tmp_path, tmp_path / "run", Terminate(kill))
    assert ended.value.code == 143
    assert files(tmp_path / "run") == saved
    last = load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")
    assert last["global_step"] == last["ParallelDataModule"]["batches_trained"] == kill + 1


@pytest.mark.parametrize(
    ("milliseconds", "asked"), [(0, [1, 2, 52, 102]), (125, [1, 2, 10, 18, 26]), (3000, [1, 2, 3, 4, 5, 6])]
)
def test_several_processes_ask_each_other_about_once_a_second(
    milliseconds: int, asked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The other process is told of SIGTERM just before the last question."""
    found, step = list[int](), 0
    monkeypatch.setattr("time.monotonic", lambda: 1000 + step * milliseconds / 1000)

    def reduce(told: Tensor, reduce_op: str) -> Tensor:
        found.append(step)
        return torch.maximum(told, torch.tensor([15 if step == asked[-1] else 0, -50]))

    strategy = SimpleNamespace(root_device=torch.device("cpu"), reduce=reduce)
    trainer = SimpleNamespace(world_size=2, strategy=strategy)
    callback, stopped = Preemption(path=tmp_path / "last.ckpt"), list[int]()
    monkeypatch.setattr(f"{preemption.__name__}.is_accumulating", lambda _: False)
    monkeypatch.setattr(f"{preemption.__name__}.validates_next", lambda _: False)
    monkeypatch.setattr(f"{preemption.__name__}.log_step_metrics", lambda _: None)
    monkeypatch.setattr(callback, "_stop", lambda _, number: stopped.append(number))
    for step in range(1, asked[-1] + 1):  # noqa: B007 - the clock reads it
        callback.on_train_batch_end(trainer)  # type: ignore[arg-type]
    assert (found, stopped) == (asked, [15])


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only program on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID", raising=False)
    return tmp_path / "scontrol"


def write(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_job_is_requeued_by_its_number(scontrol: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    write(scontrol, f'echo "$@" > {scontrol}.calls')
    _requeue()
    assert Path(f"{scontrol}.calls").read_text() == "requeue 17\n"
    assert "requeued SLURM job 17" in caplog.text


def test_a_job_of_an_array_by_the_number_of_its_task(scontrol: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(scontrol, f'echo "$@" > {scontrol}.calls')
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "12")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    _requeue()
    assert Path(f"{scontrol}.calls").read_text() == "requeue 12_3\n"


def test_a_job_that_cannot_be_requeued_is_told(scontrol: Path, caplog: pytest.LogCaptureFixture) -> None:
    _requeue()
    assert "17 is not requeued: scontrol is not on PATH" in caplog.text
    write(scontrol, "echo no such job >&2; exit 1")
    _requeue()
    assert "17 is not requeued: no such job" in caplog.text
