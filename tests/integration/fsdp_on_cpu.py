"""FSDP on the CPU: python fsdp_on_cpu.py key=value ... is src/train.py with faults.

FOLDER MODEL [key=value ...] trains with two processes and frozen embeddings and leaves metrics.csv in the folder.
"""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import lightning.pytorch.strategies.fsdp
import torch
import torch.distributed.fsdp
from lightning.pytorch.strategies import FSDPStrategy
from torch import nn
from torch.distributed.fsdp import FullOptimStateDictConfig, FullStateDictConfig, StateDictType

from softsearch.app.train.model import freeze
from softsearch.search.greedy import Greedy
from softsearch.training.callbacks.checkpoints import FinalValidation
from softsearch.training.callbacks.dashboard import Dashboard
from softsearch.training.callbacks.exact_resume import ExactResume
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.callbacks.translate import TranslateValidation
from softsearch.training.faults.faulty_steps import FaultySteps
from softsearch.training.loggers.metrics_csv import MetricsFile
from tests.support.default_metrics import METRICS
from tests.support.injected import train
from tests.support.small_run import small_data, small_module, small_trainer

STEPS = 6


class OnCpu(torch.distributed.fsdp.FullyShardedDataParallel):
    """PyTorch's class on the CPU."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"device_id": torch.device("cpu")})


class Sharded(FSDPStrategy):
    """Lightning's class, which requires a GPU unless it is subclassed."""


def whole(module: nn.Module, *, rank0_only: bool = True, **_: Any) -> AbstractContextManager[Any]:
    """Lightning's function, without moves to the CPU: what is there already is not copied, but then freed or reused."""
    weights = FullStateDictConfig(rank0_only=rank0_only)
    state = FullOptimStateDictConfig(rank0_only=rank0_only, offload_to_cpu=False)
    return OnCpu.state_dict_type(module, StateDictType.FULL_STATE_DICT, weights, state)


def main(folder: Path, *model: str) -> None:
    """Trains with two processes."""
    throughput, data = Throughput(), small_data(folder)
    callbacks = [
        throughput,
        ExactResume(seed=1),
        FaultySteps(folder=folder),
        TranslateValidation(metrics=METRICS, search=Greedy(max_length_factor=1.0), samples_dir=folder / "samples"),
        Dashboard(),
        FinalValidation(),
    ]
    options: dict[str, Any] = {"logger": MetricsFile(path=folder / "metrics.csv"), "log_every_n_steps": 1}
    options |= {"strategy": Sharded(), "devices": 2, "gradient_clip_val": 1.0}
    module = small_module(data, *model)
    freeze(module.model, ["embeddings"])
    small_trainer(STEPS, callbacks, **options).fit(module, datamodule=data)
    assert throughput.summary()["train/steps"] == STEPS


if __name__ == "__main__":
    torch.distributed.fsdp.FullyShardedDataParallel = OnCpu  # type: ignore[misc]
    lightning.pytorch.strategies.fsdp._get_full_state_dict_context = whole  # type: ignore[assignment]
    if "=" in sys.argv[1]:
        lightning.pytorch.strategies.FSDPStrategy = Sharded  # type: ignore[misc]
        train()
    else:
        main(Path(sys.argv[1]), *sys.argv[2:])
