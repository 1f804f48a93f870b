"""Training from a config, as prose: data, model, trainer, fit, test."""

import logging
import os
from pathlib import Path
from typing import Any

import lightning
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.pytorch.callbacks import ModelCheckpoint
from omegaconf import DictConfig, OmegaConf

from softsearch.app.build import build_data, build_model, load_vectors
from softsearch.app.instantiate import build, check, plain
from softsearch.app.results import report
from softsearch.errors import CheckpointError, ConfigError
from softsearch.training.allocator import keep_compiled_kernels, keep_freed_memory
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.checkpoint_io import AtomicCheckpointIO
from softsearch.training.evaluation import evaluate
from softsearch.training.module import TranslationModule
from softsearch.training.saved import SaveOrigin, read_saved

log = logging.getLogger(__name__)
GIVEN = {"model": ("src_vocab_size", "tgt_vocab_size")}  # arguments that come from the data, not from YAML


def train(config: DictConfig) -> None:
    """Trains a model and tests its best checkpoint; everything ends up in the run's folder.

    Raises:
        SoftsearchError: something is wrong with the config, the data or the checkpoint to resume from.
    """
    _prepare_process()
    resolved = plain(config)
    for name, node in resolved.items():
        check(node, name, given=GIVEN.get(name, ()))
    run_dir = Path(config.run_dir)
    checkpoint = _checkpoint_to_resume(config.resume, run_dir)
    lightning.seed_everything(config.seed, verbose=False)

    data = build_data(config)
    data.prepare_data()
    tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
    model = build_model(config.model, *(t.vocab_size for t in tokenizers))
    if checkpoint is None:
        load_vectors(config.vectors, model, tokenizers)
    module = TranslationModule(
        model=model, loss=build(config.loss), optimizer=build(config.optimizer), scheduler=build(config.scheduler)
    )
    search = build(config.search)
    callbacks = [build(callback) for callback in config.callbacks.values()]
    loggers = [build(logger) for logger in config.logger.values()]
    trainer: lightning.Trainer = build(
        config.trainer,
        callbacks=[*callbacks, SaveOrigin(resolved, tokenizers)],
        logger=loggers,
        plugins=[AtomicCheckpointIO()],
    )
    _refuse_sweep_of_processes(trainer)
    if trainer.is_global_zero:
        _open_folder(run_dir, resolved, new=checkpoint is None)
    log.info("%s with %s parameters", config.name, f"{sum(p.numel() for p in model.parameters()):,}")
    if checkpoint is not None:
        log.info("continuing from %s", checkpoint)
    trainer.fit(module, datamodule=data, ckpt_path=checkpoint)

    if any(isinstance(c, ModelCheckpoint) and c.monitor and c.best_model_path for c in callbacks):
        model.load_state_dict(read_saved(run_dir / "checkpoints" / "best.ckpt").weights)
    model.to(trainer.strategy.root_device)
    training = {k: v for c in callbacks if isinstance(c, Throughput) for k, v in c.summary.items()}
    split = "test" if "test" in data.prepared.splits else "val"
    source = data.source
    tested = evaluate(
        model,
        tokenizers,
        search,
        data.lines(split),
        text_form=source.text_form,
        tgt_lang=source.tgt_lang,
    )
    for logger in loggers:
        logger.log_metrics({f"{split}/{k}": v for k, v in tested.scores.values.items()}, trainer.global_step)
        logger.finalize("success")
    report(run_dir, split, tested, training)
    if trainer.world_size > 1:
        trainer.strategy.barrier()


def _prepare_process() -> None:
    """Sets up memory and logging, before PyTorch allocates and Lightning speaks."""
    keep_freed_memory()
    keep_compiled_kernels()
    for name in ("lightning.pytorch", "lightning.fabric"):  # what it says there, our own log says better
        logging.getLogger(name).setLevel(logging.WARNING)
    if int(os.environ.get("LOCAL_RANK", "0")):  # set by Lightning in the processes that it starts
        logging.getLogger("softsearch").setLevel(logging.WARNING)


def _refuse_sweep_of_processes(trainer: lightning.Trainer) -> None:
    """Lightning starts its processes with the command line of this one, and with it the whole sweep.

    Raises:
        ConfigError: this is a job of a sweep, and has several processes.
    """
    if trainer.world_size > 1 and HydraConfig.get().mode == RunMode.MULTIRUN:
        raise ConfigError(
            f"a sweep (-m) with {trainer.world_size} processes for each job: Lightning's processes would each run the "
            "whole sweep; sweep with trainer.devices=1, or start one command for each job"
        )


def _open_folder(run_dir: Path, config: dict[str, Any], *, new: bool) -> None:
    """Keeps the config; a new run in an old folder does not continue the old one's figures."""
    run_dir.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(OmegaConf.create(config), run_dir / "config.yaml")
    if new:
        (run_dir / "metrics.csv").unlink(missing_ok=True)


def _checkpoint_to_resume(resume: str | None, run_dir: Path) -> Path | None:
    """The checkpoint that ``resume`` asks for.

    Raises:
        CheckpointError: it does not exist.
    """
    if resume is None:
        return None
    if resume == "auto":
        last = run_dir / "checkpoints" / "last.ckpt"
        return last if last.is_file() else None
    if not Path(resume).is_file():
        raise CheckpointError(f"resume={resume}: no such file; give a checkpoint's path, auto or null")
    return Path(resume)
