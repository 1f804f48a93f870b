"""The folder of a run: one training writes there, its config, and the state of the code."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NoReturn

import lightning
from lightning.pytorch.loggers import Logger
from omegaconf import OmegaConf

from softsearch.app.config.options import Train
from softsearch.app.config.validation import build
from softsearch.app.environment import code_state
from softsearch.app.train.devices import naming_lost_processes
from softsearch.app.train.parts import TrainParts
from softsearch.app.train.start import CHECKPOINTS, Start
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.preparation.cache_folder import lock
from softsearch.errors import ConfigError
from softsearch.files import METRICS
from softsearch.training.checkpoints.checkpoint_contents import SaveOrigin
from softsearch.training.loggers.wandb_run import closing_run, forget_id

log = logging.getLogger(__name__)


def check_folder(options: Train) -> None:
    """Refuses a folder with another run, unless this run resumes or overwrites it.

    Raises:
        ConfigError: there is such a run, or the options ask to continue it and to replace it.
    """
    folder = options.run_dir
    if options.overwrite and options.resume is not None:
        raise ConfigError(f"overwrite=true removes the run that resume={options.resume} continues; remove one of them")
    needed = [path for path in (options.resume, options.init.ckpt) if isinstance(path, Path)]
    is_inside = any(path.resolve().is_relative_to(folder.resolve()) for path in needed)
    if options.overwrite and is_inside:
        raise ConfigError(
            f"init={options.init.ckpt} is in the run that overwrite=true removes; set another hydra.run.dir"
        )
    continues = options.resume == "auto" or (options.resume is not None and is_inside)
    left = [path for pattern in (CHECKPOINTS, METRICS) for path in sorted(folder.glob(pattern))]
    if left and not options.overwrite and not continues:
        raise ConfigError(
            f"{folder} already has a run ({left[0].relative_to(folder)}); set hydra.run.dir=FOLDER to a new folder, "
            "resume=auto to continue that run, or overwrite=true to remove it"
        )


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keeps other trainings out of a run's folder until this one ends, on file systems that have locks.

    Raises:
        ConfigError: another training writes there.
    """

    def refuse() -> NoReturn:
        raise ConfigError(
            f"another training writes to {folder}; wait until it ends, or set hydra.run.dir=FOLDER to a new folder"
        )

    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder / ".lock", busy=refuse, missing=log.debug):
        yield


@contextmanager
def run_folder(parts: TrainParts, start: Start, data: ParallelDataModule) -> Iterator[lightning.Trainer]:
    """Locks the run's folder, and writes config, loggers and the state of the code; yields the trainer."""
    options, trainer = parts.options, parts.trainer
    trainer.callbacks.append(SaveOrigin(parts.record, data.tokenizers, data.source))  # type: ignore[attr-defined]  # set by a connector
    lock = only_run(options.run_dir) if trainer.is_global_zero else nullcontext()
    with lock, closing_run(), naming_lost_processes(trainer, options.run_dir):
        if options.resume is None:  # else the run continues with the files in its folder
            forget_id(options.run_dir)
        trainer.loggers = [build(node) for node in parts.loggers]
        if trainer.is_global_zero:
            start.clear()
            _describe(parts, trainer.loggers)
        yield trainer


def _describe(parts: TrainParts, loggers: list[Logger]) -> None:
    """Writes the config and the state of the code to the run's folder, to loggers and to the log."""
    OmegaConf.save(OmegaConf.create(parts.record), parts.options.run_dir / "config.yaml")
    git = code_state()
    if git["commit"]:
        log.info("commit %s%s", git["commit"], ", with changes" * git["dirty"])
    for logger in loggers:
        logger.log_hyperparams({**parts.record, "git": git})
