"""Training from a config, as prose: data, model, trainer, fit, test."""

import logging
import os
from pathlib import Path
from typing import Any

import lightning
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.build import build_data, build_model, check_attention, load_vectors, with_weights
from softsearch.app.config.command import CONFIGS
from softsearch.app.config.instantiate import build
from softsearch.app.config.validation import check, plain
from softsearch.app.export import export, recommended_search
from softsearch.app.results import report
from softsearch.app.systems.reranking import build_search
from softsearch.app.train.git_state import git_state
from softsearch.app.train.rehearsal import rehearse
from softsearch.app.train.resume import compare, restoring
from softsearch.errors import CheckpointError, ConfigError
from softsearch.evaluation.inference import evaluate
from softsearch.models.interface import Seq2Seq
from softsearch.training.callbacks.dashboard import Dashboard
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.checkpoints.checkpoint_contents import SaveOrigin, read_contents
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from softsearch.training.checkpoints.folder import BEST, LAST, load_resumable, newest_resumable
from softsearch.training.cpu_memory import keep_compiled_kernels, keep_freed_memory
from softsearch.training.faults.faulty_steps import FaultySteps
from softsearch.training.loggers.tables_and_images import log_folder
from softsearch.training.loggers.wandb_run import closing_run, forget_id
from softsearch.training.module import TranslationModule
from softsearch.training.run_folder import read_metrics

log = logging.getLogger(__name__)
GIVEN = {"model": ("src_vocab_size", "tgt_vocab_size")}  # arguments that come from the data, not from YAML


@closing_run()
def train(config: DictConfig) -> None:
    """Trains a model and tests its best checkpoint; everything ends up in the run's folder.

    Raises:
        SoftsearchError: something is wrong with the config, the data or the checkpoint to resume from.
    """
    _prepare_process()
    resolved = plain(config)
    _check(config, resolved)
    run_dir = Path(config.run_dir)
    checkpoint = _checkpoint_to_resume(config.resume, run_dir)
    lightning.seed_everything(config.seed, verbose=False)

    callbacks = _build_callbacks(config)
    data = build_data(config)
    data.prepare_data()
    tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
    model = build_model(config.model, tokenizers)
    if checkpoint is None:
        load_vectors(config.vectors, model, tokenizers)
    module = TranslationModule(
        model=model,
        loss=build(config.loss),
        optimizer=build(config.optimizer),
        scheduler=build(config.scheduler),
        method=build(config.method),
    )
    search = check_attention(build_search(config.search, tokenizers), model)
    loggers = _build_loggers(config, run_dir)
    trainer: lightning.Trainer = build(
        config.trainer,
        callbacks=[*callbacks, SaveOrigin(resolved, tokenizers)],
        logger=loggers,
        plugins=[AtomicCheckpointIO()],
    )
    _refuse_sweep_of_processes(trainer)
    data.check(trainer.world_size)
    if trainer.is_global_zero:
        _open_folder(run_dir, resolved, new=checkpoint is None)
        _describe(loggers, resolved)
    training = {"model/parameters": float(sum(p.numel() for p in model.parameters()))}
    log.info("%s with %s parameters", config.name, f"{training['model/parameters']:,.0f}")
    if checkpoint is not None:
        compare(checkpoint, resolved, module.state_dict())
    with restoring(checkpoint):
        trainer.fit(module, datamodule=data, ckpt_path=checkpoint)

    if any(isinstance(c, ModelCheckpoint) and c.monitor and c.best_model_path for c in callbacks):
        model = _best_model(config, run_dir)
    model.to(trainer.strategy.root_device)
    training |= {k: v for c in callbacks if isinstance(c, Throughput | FaultySteps) for k, v in c.summary.items()}
    split = "test" if "test" in data.prepared.splits else "val"
    lines, form = data.lines(split), data.source.text_form
    tested = evaluate(model, tokenizers, search, lines, text_form=form, tgt_lang=data.source.tgt_lang)
    _log_test(loggers, {f"{split}/{k}": v for k, v in tested.scores.values.items()}, trainer.global_step)
    report(run_dir, split, tested, training)
    _log_bundle(callbacks, loggers, config, run_dir)
    trainer.strategy.barrier()


def _best_model(config: DictConfig, run_dir: Path) -> Seq2Seq:
    """A new model with the weights of the best checkpoint: FSDP has taken the trained one apart.

    It is the one that the config names, because the checkpoint may not name classes of the user's own.
    """
    best = read_contents(run_dir / "checkpoints" / BEST)
    return with_weights(build_model(config.model, best.tokenizers), best)


def _check(config: DictConfig, resolved: dict[str, Any]) -> None:
    """Finds mistakes before anything is prepared.

    Raises:
        ConfigError: an option is wrong, or the parts do not fit together.
    """
    for name, node in resolved.items():
        check(node, name, given=GIVEN.get(name, ()))
    rehearse(config)


def _prepare_process() -> None:
    """Sets up memory and logging, before PyTorch allocates and Lightning speaks."""
    keep_freed_memory()
    keep_compiled_kernels()
    for name in ("lightning.pytorch", "lightning.fabric"):  # what it says there, our own log says better
        logging.getLogger(name).setLevel(logging.WARNING)
    if int(os.environ.get("LOCAL_RANK", "0")):  # set by Lightning in the processes that it starts
        logging.getLogger("softsearch").setLevel(logging.WARNING)


def _build_loggers(config: DictConfig, run_dir: Path) -> list[Logger]:
    """The loggers; a run that resumes goes on with what the folder's first start began."""
    if config.resume is None:
        forget_id(run_dir)
    return [build(logger) for logger in config.logger.values() if logger is not None]


def _describe(loggers: list[Logger], config: dict[str, Any]) -> None:
    """Tells the loggers and the log what runs: the config, and the state of the code."""
    git = git_state(CONFIGS.parent)
    if git["commit"]:
        log.info("commit %s%s", git["commit"], ", with changes" * git["dirty"])
    for logger in loggers:
        logger.log_hyperparams({**config, "git": git})


def _log_test(loggers: list[Logger], figures: dict[str, float], step: int) -> None:
    for logger in loggers:
        logger.log_metrics(figures, step)
        logger.finalize("success")


def _wants_bundle(callbacks: list[Callback]) -> bool:
    return any(isinstance(callback, Dashboard) and callback.bundle for callback in callbacks)


def _build_callbacks(config: DictConfig) -> list[Callback]:
    """The callbacks; what :func:`_log_bundle` could not export after training is refused before it.

    Raises:
        ConfigError: an option is wrong, or a bundle cannot recommend the search.
    """
    callbacks = [build(callback) for callback in config.callbacks.values() if callback is not None]
    if _wants_bundle(callbacks):
        try:
            recommended_search(config.search)
        except ConfigError as error:
            raise ConfigError(f"callbacks.dashboard.bundle is true, but {error}") from error
    return callbacks


@rank_zero_only
def _log_bundle(callbacks: list[Callback], loggers: list[Logger], config: DictConfig, run_dir: Path) -> None:
    """Exports what was trained, where ``callbacks.dashboard.bundle`` asks for it."""
    if not _wants_bundle(callbacks):
        return
    found = [path for name in (BEST, LAST) if (path := run_dir / "checkpoints" / name).is_file()]
    if not found:
        log.warning("no bundle: the run ended before its first validation, and so without a checkpoint")
        return
    bundle = run_dir / "bundle"
    given = {"ckpt": str(found[0]), "out": str(bundle), "search": plain(config)["search"]}
    options: Any = OmegaConf.to_container(OmegaConf.load(CONFIGS / "export.yaml"))
    export(OmegaConf.create({k: v for k, v in (options | given).items() if k not in ("defaults", "hydra")}))
    log_folder(loggers, bundle, f"{config.name}-bundle", read_metrics(run_dir))


def _refuse_sweep_of_processes(trainer: lightning.Trainer) -> None:
    """Lightning starts its processes with the command line of this one, and with it the whole sweep.

    Raises:
        ConfigError: this is a job of a sweep, and has several processes.
    """
    if trainer.world_size > 1 and HydraConfig.get().mode == RunMode.MULTIRUN:
        raise ConfigError(
            f"a sweep (-m) with {trainer.world_size} processes for each job: Lightning's processes would each run the "
            "whole sweep; use src/sweep.py, whose trials are commands of their own, or sweep with trainer.devices=1"
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
        CheckpointError: it does not exist, or none can be read.
    """
    if resume is None:
        return None
    if resume == "auto":
        return newest_resumable(run_dir / "checkpoints")
    if not Path(resume).is_file():
        raise CheckpointError(f"resume={resume}: no such file; give a checkpoint's path, auto or null")
    load_resumable(Path(resume))
    return Path(resume)
