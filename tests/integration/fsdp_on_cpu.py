"""Two processes of the CPU train with FSDP: python fsdp_on_cpu.py FOLDER MODEL [key=value], leaving metrics.csv there.

The embeddings are frozen. PyTorch can shard over processes of the CPU, but cannot assemble a checkpoint there, so none
is saved.
"""

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed.fsdp
from lightning.pytorch.strategies import FSDPStrategy

from softsearch.app.train.init import freeze
from softsearch.search.greedy import Greedy
from softsearch.training.callbacks.checkpoints import FinalValidation
from softsearch.training.callbacks.dashboard import Dashboard
from softsearch.training.callbacks.exact_resume import ExactResume
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.callbacks.translate import TranslateValidation
from softsearch.training.faults.faulty_steps import FaultySteps
from softsearch.training.loggers.metrics_csv import MetricsFile
from tests.unit.evaluation.default_metrics import METRICS
from tests.unit.training.small_run import small_data, small_module, small_trainer

STEPS = 6


class OnCpu(torch.distributed.fsdp.FullyShardedDataParallel):
    """PyTorch's class on the CPU."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"device_id": torch.device("cpu")})


class Sharded(FSDPStrategy):
    """Lightning's class, which requires a GPU unless it is subclassed."""


def main(folder: Path, *model: str) -> None:
    """Trains."""
    torch.distributed.fsdp.FullyShardedDataParallel = OnCpu  # type: ignore[misc]
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
    assert throughput.summary["train/steps"] == STEPS


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
