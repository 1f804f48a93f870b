"""Everything that uses private names of Lightning; no other file may.

tests/architecture/test_internals.py looks for each of them, so that it shows if a release lacks one.
"""

from collections.abc import Callable
from typing import Any

import lightning
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.pytorch.callbacks import WeightAveraging
from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.trainer.connectors import checkpoint_connector
from torch.optim.swa_utils import AveragedModel

RESTORING_FILE = checkpoint_connector.__file__  # its functions restore_... read the training state of a checkpoint


def cluster_environment(trainer: lightning.Trainer) -> ClusterEnvironment | None:
    """Returns the launcher of the processes, also for a single process, where the strategy has none."""
    return trainer._accelerator_connector.cluster_environment


def is_accumulating(trainer: lightning.Trainer) -> bool:
    """Tells whether the batch ends without an optimizer step, so that a checkpoint would lose its gradients."""
    return trainer.fit_loop.epoch_loop._should_accumulate()


def is_last_batch(trainer: lightning.Trainer) -> bool:
    """Tells whether the batch is the last of its epoch."""
    return trainer.fit_loop.epoch_loop._num_ready_batches_reached()


def validates_next(trainer: lightning.Trainer) -> bool:
    """Tells whether a validation follows the batch."""
    fetcher = trainer.fit_loop._data_fetcher
    return fetcher is not None and trainer.fit_loop.epoch_loop._should_check_val_fx(fetcher)


def logged_step(trainer: lightning.Trainer) -> int:
    """Returns the step under which scalars, figures and tables are logged; the first is 1."""
    return trainer.fit_loop.epoch_loop._batches_that_stepped + 1


def count_from_one(trainer: lightning.Trainer) -> None:
    """Logs scalars under ``logged_step``; Lightning counts from 0, unlike its progress bar and checkpoints."""
    connector = trainer._logger_connector
    log: Callable[..., None] = connector.log_metrics

    def log_metrics(metrics: dict[str, Any], step: int | None = None) -> None:
        if step is None:
            metrics, step = {"epoch": trainer.current_epoch} | metrics, logged_step(trainer)
        log(metrics, step)

    connector.log_metrics = log_metrics  # type: ignore[method-assign]


def log_step_metrics(trainer: lightning.Trainer) -> None:
    """Logs the metrics of a step, because Lightning would log them after the hook that may end the run."""
    trainer._logger_connector.on_batch_end()
    trainer._logger_connector.update_train_step_metrics()


def wandb_arguments(logger: WandbLogger) -> dict[str, Any]:
    """Returns the arguments with which the logger will call ``wandb.init``."""
    return logger._wandb_init


def average_model(callback: WeightAveraging) -> AveragedModel | None:
    """Returns the callback's averaged copy of the module; None before the setup."""
    return callback._average_model


def swap_weights(callback: WeightAveraging, pl_module: lightning.LightningModule) -> None:
    """Exchanges the weights of the module and of its average."""
    callback._swap_models(pl_module)
