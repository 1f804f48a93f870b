"""``train``: trains and tests a model from a config."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import lightning
from lightning.pytorch.callbacks import LambdaCallback
from lightning.pytorch.loggers import Logger
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.build import build_model, check_attention, with_weights
from softsearch.app.config.options import Train
from softsearch.app.config.processes import launched_rank
from softsearch.app.config.validation import build
from softsearch.app.environment import code_state
from softsearch.app.train.devices import naming_lost_processes
from softsearch.app.train.parts import TrainParts, adapt, build_parts
from softsearch.app.train.start import Fresh, Start, check_folder, only_run, prepare_data
from softsearch.app.train.summary import best_saver, final_test, log_start, print_end
from softsearch.data.datamodule import ParallelDataModule
from softsearch.errors import ConfigError
from softsearch.models.interface import Seq2Seq
from softsearch.training.checkpoints.checkpoint_contents import SaveOrigin, read_contents
from softsearch.training.checkpoints.folder import BEST
from softsearch.training.loggers.wandb_run import closing_run, finish_run, forget_id

log = logging.getLogger(__name__)


def train(config: DictConfig) -> None:
    """Trains a model and tests its best checkpoint; writes everything to the run's folder.

    Parts that need no data are built first, so that mistakes in the config are found at once.

    Raises:
        SoftsearchError: something is wrong with the config, the data or the checkpoint to resume from.
    """
    _quieten_lightning()
    parts = build_parts(config)
    start = choose_start(parts.options)
    lightning.seed_everything(parts.options.seed, verbose=False)
    data = prepare_data(parts.make_data(tokenizer=start.tokenizers()), parts.record["data"], parts.trainer.world_size)
    parts = parts.monitoring(data, config)
    model = start.model(data, parts.record["model"])
    module = parts.module(model, data)
    search = check_attention(parts.make_search(data.tokenizers), model)
    if parts.exports_bundle:
        parts.rehearse_export(model, data)
    adapt(parts.options, model)
    with _run(parts, start, data) as trainer:
        # When all processes have started, because each then has its share of the threads.
        trainer.callbacks.append(LambdaCallback(on_fit_start=lambda *_: log_start(parts.options, trainer, model)))  # type: ignore[attr-defined]
        start.fit(parts, module, data)
        model = (_best_model(parts) or model).to(trainer.strategy.root_device)
        show = final_test(parts, data, model, search)
        if parts.exports_bundle:
            parts.log_bundle(data)
        finish_run()  # before our tables, because W&B prints its own
        if trainer.is_global_zero:
            show()
            print_end(parts.options, parts.record, model, trainer)
        trainer.strategy.barrier()


def choose_start(options: Train) -> Start:
    """Chooses how the run starts: Fresh, Adapted or Resumed.

    Raises:
        ConfigError: the options contradict each other, or the folder has another run.
        CheckpointError: a checkpoint cannot be read.
    """
    check_folder(options)
    if options.init.ckpt is not None:
        from softsearch.app.train.init import Adapted, check_init

        check_init(options)
    elif options.init.vocabulary != "keep" or options.init.parts is not None:
        raise ConfigError(
            "init.vocabulary and init.parts select what to take from a run, but there is none; set init=RUN"
        )
    if options.resume is not None:
        from softsearch.app.train.resume import Resumed, checkpoint_to_resume

        if (checkpoint := checkpoint_to_resume(options.resume, options.run_dir)) is not None:
            return Resumed(options, checkpoint)
    return Fresh(options) if options.init.ckpt is None else Adapted(options)


@contextmanager
def _run(parts: TrainParts, start: Start, data: ParallelDataModule) -> Iterator[lightning.Trainer]:
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


def _best_model(parts: TrainParts) -> Seq2Seq | None:
    """Returns a new model with the weights of the best checkpoint, if there is one: FSDP has split the trained model.

    It is built from the config, because a checkpoint may not name the user's classes.
    """
    saver: Any = best_saver(parts.trainer)
    if saver is None or not saver.best_model_path:
        return None
    best = read_contents(parts.options.run_dir / "checkpoints" / BEST)
    return with_weights(build_model(parts.options.model, best.tokenizers), best)


def _quieten_lightning() -> None:
    """Silences messages that our log repeats, and the logs of all processes except the first."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("lightning.pytorch.profilers").setLevel(logging.INFO)  # results of trainer.profiler
    warnings.filterwarnings("ignore", "The number of training batches")  # per epoch, but the log counts steps
    if int(os.environ.get("LOCAL_RANK", "0")) or launched_rank(os.environ):  # LOCAL_RANK is set by Lightning
        logging.getLogger("softsearch").setLevel(logging.WARNING)
