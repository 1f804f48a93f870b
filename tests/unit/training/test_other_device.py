"""A whole run on a device that is not the CPU, with collectives that, as NCCL's, know tensors of that device only."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.accelerators import CPUAccelerator
from lightning.pytorch.callbacks import Callback, EarlyStopping
from lightning.pytorch.strategies import SingleDeviceStrategy

from softsearch.models.loss import CrossEntropy, SampledSoftmax
from softsearch.search.greedy import Greedy
from softsearch.training.callbacks.dashboard import Dashboard
from softsearch.training.callbacks.ema import Ema
from softsearch.training.callbacks.progress import Progress
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.callbacks.translate import TranslateValidation
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.faults.faulty_steps import FaultySteps
from softsearch.training.loggers.metrics_csv import MetricsFile
from tests.support.default_metrics import METRICS
from tests.support.other_device import DEVICE, other_device
from tests.support.small_run import fit


class Elsewhere(CPUAccelerator):
    """An accelerator whose device is the other one."""

    def setup_device(self, device: torch.device) -> None:
        assert device == DEVICE


class OneOfTwo(SingleDeviceStrategy):
    """A process that believes to be one of two: what it reduces comes back as it was, if it is on the device."""

    def __init__(self) -> None:
        super().__init__(device=DEVICE)
        self.world_size = 2
        self.reduced = 0

    def reduce(self, tensor: Any, *_: Any, **__: Any) -> Any:
        if isinstance(tensor, torch.Tensor):
            self.reduced += 1
            if tensor.device != DEVICE:
                raise RuntimeError(f"No backend type associated with device type {tensor.device.type}")
        return tensor


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")  # they are copied
@pytest.mark.parametrize(
    ("loss", "more", "options"),
    [
        (CrossEntropy(), lambda: [Ema(decay=0.9)], {"gradient_clip_val": 0.1, "gradient_clip_algorithm": "value"}),
        (SampledSoftmax(tau=20), list, {"gradient_clip_val": 1.0}),
    ],
    ids=["ema", "sampled"],
)
def test_a_run(tmp_path: Path, loss: CrossEntropy, more: Callable[[], list[Callback]], options: dict[str, Any]) -> None:
    run = tmp_path / "run"
    run.mkdir()

    def callbacks() -> list[Callback]:
        return [
            Throughput(),
            Progress(metric="val/bleu"),
            FaultySteps(folder=run),
            TranslateValidation(metrics=METRICS, search=Greedy(max_length_factor=1.0), samples_dir=run / "samples"),
            Dashboard(),
            EarlyStopping(monitor="val/bleu", mode="max", patience=10),
            *more(),
        ]

    options |= {"accelerator": Elsewhere(), "log_every_n_steps": 1, "loss": loss}
    strategy, again = OneOfTwo(), OneOfTwo()
    with other_device():
        for steps, one, resume in ((6, strategy, None), (7, again, run / "checkpoints" / "last.ckpt")):
            logger = MetricsFile(path=run / "metrics.csv")
            fit(tmp_path, run, *callbacks(), batches=steps, resume=resume, strategy=one, logger=logger, **options)
    assert strategy.reduced > 3 * 6  # in each step the tokens, the loss for the log, and whether to stop
    last = load_checkpoint(run / "checkpoints" / "last.ckpt")
    assert last["global_step"] == 7
    assert all(math.isfinite(float(weight.double().sum())) for weight in last["state_dict"].values())
