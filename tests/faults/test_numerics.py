"""Faults of single steps."""

import json
import logging
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback

from softsearch.errors import SoftsearchError
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.faults.faulty_steps import MAX_EXHAUSTED_STEPS, MAX_NONFINITE_STEPS, FaultySteps
from tests.support.faulty_trainings import TWO_CPU_PROCESSES, TwoProcesses, rows, train
from tests.support.injected import LOSSES, Inject
from tests.support.small_run import Terminate, assert_same_bits, fit

MEMORY = {"forward-memory", "backward-memory"}


class Record(Callback):
    """Keeps weights, optimizer's state and rate after each batch; [-1] is before the first."""

    def __init__(self) -> None:
        self.weights: dict[int, list[torch.Tensor]] = {}
        self.states: dict[int, list[torch.Tensor]] = {}
        self.rates: list[float] = []

    def on_train_start(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        self.keep(trainer, pl_module, -1)

    def on_train_batch_end(self, trainer: lightning.Trainer, pl_module: Any, *_: Any) -> None:
        self.keep(trainer, pl_module, len(self.rates))
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    def keep(self, trainer: lightning.Trainer, pl_module: Any, batch: int) -> None:
        state = trainer.optimizers[0].state
        self.weights[batch] = [p.detach().clone() for p in pl_module.parameters()]
        self.states[batch] = [value.clone() for p in pl_module.parameters() for value in state[p].values()]

    def moved(self, since: int, until: int) -> bool:
        """Whether a weight or anything in the optimizer has changed."""
        before, after = (self.weights[at] + self.states[at] for at in (since, until))
        return len(before) != len(after) or not all(map(torch.equal, before, after))


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING)
    return caplog


@pytest.mark.parametrize("kind", sorted(LOSSES))
def test_one_faulty_step_is_skipped_and_counted(kind: str, tmp_path: Path, quiet: pytest.LogCaptureFixture) -> None:
    """Fault: a loss or a gradient that is NaN or infinite, or a step that runs out of memory.

    Effect: the step is skipped and counted; weights and optimizer stay as they were.
    """
    record, healthy, faulty = Record(), Record(), FaultySteps(folder=tmp_path)
    trainer = fit(tmp_path, tmp_path / "run", record, faulty, Inject({3: kind}), batches=6)
    fit(tmp_path, tmp_path / "healthy", healthy, batches=6)
    assert [record.moved(batch - 1, batch) for batch in range(6)] == [True, True, True, False, True, True]
    assert record.rates == healthy.rates
    assert trainer.global_step == 6
    assert all(bool(tensor.isfinite().all()) for tensor in record.weights[5])
    counts = (0, 1) if kind in MEMORY else (1, 0)
    assert tuple(faulty.summary().values()) == counts
    [warning] = [r.getMessage() for r in quiet.records if "skipped" in r.getMessage()]
    assert "step 4 is skipped" in warning
    assert "batch 3" in warning
    assert "10 pairs" in warning
    assert not list(tmp_path.glob("nonfinite-*"))


@pytest.mark.day
@pytest.mark.parametrize("kind", ["nan", "forward-memory", "backward-memory"])
@pytest.mark.parametrize("place", [3, 4, 5])
def test_a_fault_drops_its_whole_window_of_accumulation(kind: str, place: int, tmp_path: Path) -> None:
    record, faulty = Record(), FaultySteps(folder=tmp_path)
    fit(tmp_path, tmp_path / "run", record, faulty, Inject({place: kind}), batches=12, accumulate=3)
    assert [record.moved(end - 3, end) for end in (2, 5, 8, 11)] == [True, False, True, True]
    assert not record.moved(5, 7), "the third window goes over the end of the epoch, which has 7 batches"
    assert sum(faulty.summary().values()) == 1


@pytest.mark.parametrize("kill", [2, 3, 4])
def test_a_resumed_run_skips_and_counts_the_same(kill: int, tmp_path: Path) -> None:
    faults = {3: "nan", 4: "forward-memory", 6: "nan"}
    whole = FaultySteps(folder=tmp_path)
    fit(tmp_path, tmp_path / "whole", whole, Inject(faults))
    with pytest.raises(SystemExit):
        fit(tmp_path, tmp_path / "run", FaultySteps(folder=tmp_path), Inject(faults), Terminate(kill))
    last, resumed = tmp_path / "run" / "checkpoints" / "last.ckpt", FaultySteps(folder=tmp_path)
    assert load_checkpoint(last)["global_step"] == kill + 1
    fit(tmp_path, tmp_path / "run", resumed, Inject(faults), resume=last)
    assert_same_bits(last, tmp_path / "whole" / "checkpoints" / "last.ckpt")
    assert resumed.summary() == whole.summary() == {"train/nonfinite_steps": 2, "train/out_of_memory_steps": 1}


def test_five_in_a_row_end_the_run_and_leave_the_batch(tmp_path: Path) -> None:
    """Fault: five such losses or gradients in a row.

    Effect: the batch is written to a file, and the run ends with exit code 1.
    """
    faults = dict.fromkeys(range(2, 2 + MAX_NONFINITE_STEPS), "nan")
    record, run = Record(), tmp_path / "run"
    with pytest.raises(SoftsearchError, match=r"not finite in 5 steps in a row, the last of them step 7.*step-7\.json"):
        fit(tmp_path, run, record, FaultySteps(folder=run), Inject(faults))
    assert not record.moved(1, 5)
    [path] = run.glob("*.json")
    assert path.name == "nonfinite-batch-step-7.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    [batch] = written["batches"]
    assert (written["step"], batch["batch"], batch["loss"]) == (7, 6, "nan")
    corpus = [(tmp_path / f"train.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "de")]
    pairs = list(zip(*corpus, strict=True))
    assert len(batch["pairs"]) == 10
    assert all((pair["source"], pair["target"]) in pairs for pair in batch["pairs"])
    assert all(len(pair["src_tokens"]) > 1 for pair in batch["pairs"])


@pytest.mark.day
@pytest.mark.parametrize("kind", ["nan", "forward-memory"])
def test_fewer_in_a_row_do_not_end_it(kind: str, tmp_path: Path) -> None:
    most = MAX_EXHAUSTED_STEPS if kind in MEMORY else MAX_NONFINITE_STEPS
    faults = {batch: kind for batch in range(12) if batch % most}
    faulty = FaultySteps(folder=tmp_path)
    assert fit(tmp_path, tmp_path / "run", faulty, Inject(faults)).global_step == 12
    assert sum(faulty.summary().values()) == len(faults)


def test_three_without_memory_end_the_run(tmp_path: Path) -> None:
    """Fault: three steps in a row run out of memory. Effect: the run ends."""
    faults = {2: "backward-memory", 3: "forward-memory", 4: "forward-memory"}
    with pytest.raises(SoftsearchError, match=r"memory ran out in 3 steps in a row.*10 pairs.*batching\.tokens"):
        fit(tmp_path, tmp_path / "run", FaultySteps(folder=tmp_path), Inject(faults))


class FullInOptimizer(Callback):
    """Uses up the memory before the optimizer's sixth step."""

    def on_before_zero_grad(self, trainer: lightning.Trainer, pl_module: Any, optimizer: torch.optim.Optimizer) -> None:
        if trainer.global_step == 5:
            raise torch.OutOfMemoryError("CUDA out of memory")


def test_memory_that_runs_out_in_the_optimizer_ends_the_run(tmp_path: Path) -> None:
    """Fault: memory runs out in the optimizer. Effect: the run ends with an error."""
    with pytest.raises(SoftsearchError, match=r"memory ran out in the optimizer of step 6 on process 0.*10 pairs"):
        fit(tmp_path, tmp_path / "run", FullInOptimizer())


@pytest.mark.day
@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
def test_what_one_process_meets_all_skip(two_processes: TwoProcesses) -> None:
    """Fault: one of several processes meets one of these faults. Effect: all processes skip the step."""
    run = two_processes.folder / "whole"
    metrics = json.loads((run / "metrics.json").read_text())
    assert (metrics["train/nonfinite_steps"], metrics["train/out_of_memory_steps"]) == (2, 2)
    counts = [row["train/nonfinite_steps"] for row in rows(run) if row["train/loss"]]
    assert [float(count) for count in counts] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    weights = load_checkpoint(run / "checkpoints" / "last.ckpt")["state_dict"]
    assert all(bool(tensor.isfinite().all()) for tensor in weights.values())
    assert "process 1, its batch 3: loss nan, 10 pairs" in two_processes.output


@pytest.mark.day
@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
def test_memory_that_runs_out_in_a_backward_pass_ends_all_processes(tmp_path: Path) -> None:
    """Fault: one of several processes runs out of memory in a backward pass.

    Effect: all processes end; `resume=auto` continues from the last checkpoint.
    """
    done = train(tmp_path, "run", "trainer=ddp", faults={1: {6: "backward-memory"}}, timeout=120)
    assert done.returncode != 0
    assert "error: memory ran out in the backward pass of step 7 on process 1" in done.stderr
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")["global_step"] == 5
