"""Weights that processes share out among them (FSDP), together again where a model is used outside a training step."""

from collections.abc import Iterator
from contextlib import contextmanager

import lightning
from lightning.pytorch.strategies import FSDPStrategy
from torch.distributed.fsdp import FullyShardedDataParallel


@contextmanager
def whole_weights(trainer: lightning.Trainer) -> Iterator[None]:
    """Each process has all weights inside; all of them must enter. Costs nothing where weights are not shared out."""
    wrapped = trainer.strategy.model
    if isinstance(trainer.strategy, FSDPStrategy) and wrapped is not None:
        with FullyShardedDataParallel.summon_full_params(wrapped, writeback=False):
            yield
    else:
        yield
