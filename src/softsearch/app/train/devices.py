"""The trainer and its processes: devices, checks at the start, the shared folder, and lost processes."""

import copy
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning
import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch.accelerators import CUDAAccelerator, MPSAccelerator
from lightning.pytorch.callbacks import Callback
from omegaconf import OmegaConf
from torch.distributed import DistError

from softsearch.app.config.options import Train
from softsearch.app.config.resolvers import fast_bfloat16
from softsearch.app.config.validation import build
from softsearch.errors import ConfigError, SoftsearchError, summarize
from softsearch.training.callbacks.time_limit import TimeLimit, parse_duration
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from softsearch.training.lightning_internals import cluster_environment

log = logging.getLogger(__name__)
_VARIABLES = ("NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
_DELAY = 60.0  # seconds until network file systems show what another node has written


def build_trainer(options: Train, callbacks: list[Callback]) -> lightning.Trainer:
    """Builds the trainer, without loggers.

    Raises:
        ConfigError: an option is wrong, a job of a sweep (-m) would have several processes, or the device cannot
            compute in this precision.
    """
    accelerator = options.trainer.accelerator
    if accelerator in ("gpu", "cuda", "mps") and not (CUDAAccelerator.is_available() or MPSAccelerator.is_available()):
        raise ConfigError(
            f"trainer.accelerator is {accelerator!r}, but PyTorch finds no GPU; set trainer=cpu (softsearch "
            "doctor prints the devices)"
        )
    node, limits = copy.deepcopy(options.trainer), []
    if (max_time := OmegaConf.to_container(node, resolve=True).get("max_time")) is not None:  # type: ignore[union-attr]
        limits, node.max_time = [TimeLimit(parse_duration(max_time))], None
    trainer: lightning.Trainer = build(
        node, callbacks=[OneFolder(options.run_dir), *limits, *callbacks], logger=False, plugins=[AtomicCheckpointIO()]
    )
    _share(trainer, build(options.batching).share(trainer.world_size))
    if trainer.world_size > 1 and HydraConfig.get().mode == RunMode.MULTIRUN:
        raise ConfigError(
            f"-m with {trainer.world_size} processes per job: each of them would run the whole sweep; use softsearch "
            "sweep, which starts each trial as a separate command, or set trainer.devices=1"
        )
    check_start(trainer)
    device = trainer.strategy.root_device.type
    if device == "mps" and str(trainer.precision).startswith("64"):
        raise ConfigError(
            f"trainer.precision={trainer.precision} needs float64, which Apple's GPUs do not have; set trainer=cpu or "
            "a lower precision"
        )
    if device == "cpu" and str(trainer.precision).startswith("bf16") and not fast_bfloat16("cpu"):
        log.warning(
            "this processor has no bfloat16 and emulates it slowly; remove trainer.precision to train in float32"
        )
    if device == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, for products in float32
    return trainer


def _share(trainer: lightning.Trainer, share: int) -> None:
    """Makes each process train for ``share`` canonical ones: options that count batches count those of one of them."""
    trainer.accumulate_grad_batches *= share
    for name in ("val_check_interval", "limit_train_batches"):
        value = getattr(trainer, name)
        if isinstance(value, int):
            setattr(trainer, name, value * share)


def check_start(trainer: lightning.Trainer) -> None:
    """Checks that the processes were started as ``trainer.devices`` and ``trainer.num_nodes`` say.

    Raises:
        ConfigError: they were not, and would wait for each other or train separately.
    """
    environment, nodes = cluster_environment(trainer), trainer.num_nodes
    if isinstance(environment, LightningEnvironment):
        missing = [name for name in _VARIABLES if name not in os.environ]
        if nodes > 1 and missing:
            raise ConfigError(
                f"trainer.num_nodes is {nodes}, but {', '.join(missing)} are not set; start the command on every node "
                "with srun or torchrun, or with NODE_RANK=0, 1, ..., the first node's MASTER_ADDR=HOST, and a free "
                "MASTER_PORT=PORT there"
            )
        if environment.node_rank() >= nodes:
            raise ConfigError(
                f"NODE_RANK is {environment.node_rank()}, but trainer.num_nodes is {nodes}; set trainer.num_nodes to "
                "the number of nodes, or unset NODE_RANK"
            )
    elif environment is not None and trainer.world_size > 1:
        try:
            environment.validate_settings(trainer.num_devices, nodes)
        except ValueError as error:
            raise ConfigError(
                f"trainer.devices={trainer.num_devices} and trainer.num_nodes={nodes} do not match the processes "
                f"that were started ({summarize(error)}); set them to the processes per node and the number of nodes"
            ) from error


class OneFolder(Callback):
    """Ends a training before its first step if its processes do not share a folder."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir

    def setup(self, trainer: lightning.Trainer, *_: Any, **__: Any) -> None:
        """Looks for the config written by the first process.

        Raises:
            ConfigError: there is none.
        """
        own = str(self.run_dir.absolute())
        first = trainer.strategy.broadcast(own)
        deadline = time.monotonic() + _DELAY * (own == first)
        while not (self.run_dir / "config.yaml").is_file():
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"the run's folder of process {trainer.global_rank} is {own}, but the config.yaml that the first "
                    f"process wrote to {first} is not there; set hydra.run.dir=FOLDER to a folder that all nodes share"
                )
            time.sleep(1.0)


@contextmanager
def naming_lost_processes(trainer: lightning.Trainer, run_dir: Path) -> Iterator[None]:
    """Context of a training that reports in one line if another process has ended.

    Raises:
        SoftsearchError: the connection to another process is lost.
    """
    try:
        yield
    except RuntimeError as error:
        if trainer.world_size == 1 or not (isinstance(error, DistError) or "gloo" in str(error)):
            raise
        reason = (
            re.sub(r"^\[\S+\] ", "", str(error)).partition(". ")[0].splitlines()[0]
        )  # without the file name that gloo puts first
        raise SoftsearchError(
            f"process {trainer.global_rank} lost the connection to another process; see that one's output for the "
            f"cause ({reason}); continue with resume=auto hydra.run.dir={run_dir}"
        ) from error
