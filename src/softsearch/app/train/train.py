"""``train``: a model from a config, trained and tested."""

import inspect
import logging
import os
import warnings
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.pytorch.accelerators import CUDAAccelerator, MPSAccelerator
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import Logger
from omegaconf import DictConfig, OmegaConf
from torch import nn

from softsearch.app.config.build import build_data, build_model, check_attention, load_vectors, with_weights
from softsearch.app.config.command import fast_bfloat16
from softsearch.app.config.composition import CONFIGS
from softsearch.app.config.options import Train
from softsearch.app.config.processes import launched_rank
from softsearch.app.config.validation import build, check, plain, read_options
from softsearch.app.environment import git_state
from softsearch.app.results import build_metrics
from softsearch.app.systems.search import build_search, needs_tokenizers
from softsearch.app.train.bundle import check_bundle, log_bundle, rehearse_export
from softsearch.app.train.final_test import final_test
from softsearch.app.train.init import freeze, read_init, start_from, tokenizer_maker
from softsearch.app.train.limits import check_limits
from softsearch.app.train.nodes import OneFolder, check_start, naming_lost_processes
from softsearch.app.train.resume import (
    check_folder,
    check_unchanged,
    checkpoint_to_resume,
    only_run,
    remove_run,
    restoring,
)
from softsearch.app.train.summary import log_start, print_end
from softsearch.data.corpora.base import ParallelSource
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.existing_tokenizers import TokenizerMaker
from softsearch.data.preparation.prepare import text_problems
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import SentenceScore
from softsearch.evaluation.metrics import bleu_for
from softsearch.evaluation.text_checks import unsegmented, without_scores
from softsearch.models.interface import CountedDecoder, Seq2Seq
from softsearch.models.loss import NoiseContrastive, SampledSoftmax
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.training.callbacks.dashboard import Dashboard
from softsearch.training.callbacks.translate import TranslateValidation
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, SaveOrigin, read_contents
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from softsearch.training.checkpoints.folder import BEST, LAST
from softsearch.training.checkpoints.training_state import state_mismatch
from softsearch.training.loggers.wandb_run import closing_run, finish_run, forget_id, starts_run
from softsearch.training.module import TranslationModule, make_optimizer

log = logging.getLogger(__name__)
RUNTIME_ARGUMENTS = {"model": ("src_vocab_size", "tgt_vocab_size")}  # arguments that come from the data, not from YAML
_METRICS = ("val/loss", "val/perplexity")  # of every validation


@closing_run()
def train(config: DictConfig) -> None:
    """Trains a model and tests its best checkpoint; everything ends up in the run's folder.

    What needs no data is built first, so that mistakes in the config cost no time.

    Raises:
        SoftsearchError: something is wrong with the config, the data or the checkpoint to resume from.
    """
    _quieten_lightning()
    options, resolved = read_options(config, Train), _recorded(config)
    _check_before_building(options, resolved)
    logger_nodes = _logger_nodes(options)
    metrics, described = build_metrics(options.metric), describe_model(options)
    training, callbacks = build_training(options, described), build_callbacks(options)
    exports_bundle = _check_search(options, callbacks)
    is_counted = isinstance(described.decoder, CountedDecoder)
    trainer = _build_trainer(options, callbacks, is_counted=is_counted)
    checkpoint = checkpoint_to_resume(options.resume, options.run_dir, is_counted=is_counted)
    init = read_init(options, resumes=checkpoint is not None, is_counted=is_counted)
    lightning.seed_everything(options.seed, verbose=False)

    data = _prepare_data(options, tokenizer_maker(options, init, checkpoint), trainer.world_size, resolved["data"])
    if (monitor := monitor_for(options.monitor, callbacks, data)) != options.monitor:
        config.monitor = monitor
        options, resolved = read_options(config, Train), _recorded(config) | {"data": resolved["data"]}
        trainer = _build_trainer(options, callbacks := build_callbacks(options), is_counted=is_counted)
    tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
    model = _new_model(options, data, init, resolved["model"], pretrained=checkpoint is None)
    module = TranslationModule(model=model, **with_utility(training, data.source, tokenizers[1]))
    search = check_attention(build_search(options.search, tokenizers), model)
    if exports_bundle:
        rehearse_export(options, resolved, model, data.source, tokenizers)
    trainer.callbacks.append(SaveOrigin(resolved, tokenizers, data.source))  # type: ignore[attr-defined]  # set by a connector
    lock = only_run(options.run_dir) if trainer.is_global_zero else nullcontext()
    with lock, naming_lost_processes(trainer, options.run_dir):
        if options.resume is None:  # else the run goes on with what the folder's first start began
            forget_id(options.run_dir)
        trainer.loggers = loggers = [build(node) for node in logger_nodes]
        if trainer.is_global_zero:
            _describe(options.run_dir, loggers, resolved, new=checkpoint is None)
        log_start(options, trainer, model)
        if checkpoint is not None:
            check_unchanged(checkpoint, resolved, partial(state_mismatch, trainer=trainer, module=module, data=data))
        if is_counted:
            _save_counted(trainer, module, data, options.run_dir / "checkpoints")
        else:
            with restoring(checkpoint):
                trainer.fit(module, datamodule=data, ckpt_path=checkpoint)
        model = (_best_model(options, callbacks) or model).to(trainer.strategy.root_device)
        show = final_test(options, trainer, data, (model, search), metrics) if options.test else None
        if exports_bundle:
            log_bundle(options, data.source, loggers)
        finish_run()  # before the tables, as W&B prints its own
        if trainer.is_global_zero:
            if show is not None:
                show()
            print_end(options, resolved, model, trainer)
        trainer.strategy.barrier()


def _check_before_building(options: Train, resolved: dict[str, Any]) -> None:
    check_folder(options)
    check_limits(resolved)
    for name, node in resolved.items():
        check(node, name, given=RUNTIME_ARGUMENTS.get(name, ()))


def _recorded(config: DictConfig) -> dict[str, Any]:
    """The resolved config that the run's files keep: without ``trust``, which is given for one call."""
    return {key: value for key, value in plain(config).items() if key != "trust"}


def _logger_nodes(options: Train) -> list[DictConfig]:
    """The loggers to build; W&B's, which alone has ``offline``, only if it begins a run."""
    nodes = [node for node in options.logger.values() if node is not None]
    return [node for node in nodes if "offline" not in node or starts_run(offline=bool(node.offline))]


def _quieten_lightning() -> None:
    """Silences messages that our own log repeats, and the logs of all processes except the first."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("lightning.pytorch.profilers").setLevel(logging.INFO)  # what trainer.profiler measured
    warnings.filterwarnings("ignore", "The number of training batches")  # of an epoch; the log counts steps
    if int(os.environ.get("LOCAL_RANK", "0")) or launched_rank(os.environ):  # the first is Lightning's variable
        logging.getLogger("softsearch").setLevel(logging.WARNING)


def build_training(options: Train, model: Seq2Seq) -> dict[str, Any]:
    """The arguments of the TranslationModule besides its model, which they fit.

    ``model`` is that of :func:`describe_model`.

    Raises:
        ConfigError: an option is out of range, or the parts do not fit together.
    """
    training = {name: build(getattr(options, name)) for name in ("loss", "method", "optimizer", "scheduler")}
    if isinstance(training["loss"], SampledSoftmax | NoiseContrastive):
        training["loss"].check(model.decoder.output_projection)
    training["scheduler"](make_optimizer(training["optimizer"], model, nn.Linear(1, 1).parameters()))
    return training | {"compiles": options.compile}


def describe_model(options: Train, src_size: int = 0, tgt_size: int = 0) -> Seq2Seq:
    """The model, without memory for its weights, with vocabularies of these sizes or as large as is asked for."""
    tgt_size = tgt_size or options.tokenizer.vocab_size
    with torch.device("meta"):
        src_size = src_size or options.tokenizer.get("src_vocab_size") or tgt_size
        model: Seq2Seq = build(options.model, src_vocab_size=src_size, tgt_vocab_size=tgt_size)
    freeze(model, options.freeze)
    return model


def with_utility(
    training: dict[str, Any], source: ParallelSource, tgt_tokenizer: SentencePieceTokenizer
) -> dict[str, Any]:
    """The parts of training; a method that scores translations gets sentence BLEU on the data's text."""
    if "utility" not in inspect.signature(training["method"]).parameters:
        return training
    bleu = bleu_for(source.text_form, source.tgt_lang)
    return training | {"method": partial(training["method"], utility=SentenceScore(bleu, tgt_tokenizer))}


def build_callbacks(options: Train) -> list[Callback]:
    """The callbacks; the metrics that they and the schedule monitor exist.

    Raises:
        ConfigError: an option is out of range, or no validation has such a metric.
    """
    nodes = {f"callbacks.{name}": node for name, node in options.callbacks.items() if node is not None}
    callbacks = [build(node) for node in nodes.values()]
    translating = [callback for callback in callbacks if isinstance(callback, TranslateValidation)]
    metrics = [*_METRICS, *(f"val/{name}" for callback in translating for name in callback.metrics)]
    for key, node in {"scheduler": options.scheduler, **nodes}.items():
        if "monitor" in node and node.monitor not in metrics:
            expected = ", ".join(sorted(metrics))
            raise ConfigError(f"{key}.monitor is {node.monitor!r}, expected one of {expected}; change it")
    return callbacks


def monitor_for(monitor: str, callbacks: list[Callback], data: ParallelDataModule) -> str:
    """The metric to monitor: another one if ``monitor`` is the same for any translations of the validation set."""
    for callback in callbacks:
        if isinstance(callback, TranslateValidation):
            metrics, references = callback.metrics_for(data)
            problems = without_scores(metrics, references)
            able = [
                f"val/{n}" for n, m in metrics.items() if m.can_score(references) and m.higher_is_better is not None
            ]
            other = next(iter(able), "val/loss")
            if problems and monitor not in (*able, *_METRICS):
                log.warning("%s; %s is monitored in place of %s", problems[0], other, monitor)
                return other
    return monitor


def _check_search(options: Train, callbacks: list[Callback]) -> bool:
    """Checks the search of the test, and of the bundle if a callback asks for one; returns whether one does."""
    if not needs_tokenizers(options.search):  # which are made later
        build(options.search)
    exports_bundle = any(isinstance(callback, Dashboard) and callback.bundle for callback in callbacks)
    if exports_bundle:
        check_bundle(options)
    return exports_bundle


def _build_trainer(options: Train, callbacks: list[Callback], *, is_counted: bool) -> lightning.Trainer:
    """The trainer, without loggers.

    Raises:
        ConfigError: an option is wrong, a job of a sweep (-m) would have several processes, or the device cannot
            compute what is asked for.
    """
    accelerator = options.trainer.accelerator
    if accelerator in ("gpu", "cuda", "mps") and not (CUDAAccelerator.is_available() or MPSAccelerator.is_available()):
        raise ConfigError(
            f"trainer.accelerator is {accelerator!r}, but PyTorch finds no GPU here; set trainer=cpu (softsearch "
            "doctor prints the devices)"
        )
    trainer: lightning.Trainer = build(
        options.trainer,
        callbacks=[OneFolder(options.run_dir), *callbacks],
        logger=False,
        plugins=[AtomicCheckpointIO()],
    )
    if trainer.world_size > 1 and HydraConfig.get().mode == RunMode.MULTIRUN:
        raise ConfigError(
            f"a sweep (-m) with {trainer.world_size} processes for each job: Lightning's processes would each run the "
            "whole sweep; use softsearch sweep, whose trials are commands of their own, or sweep with trainer.devices=1"
        )
    check_start(trainer)
    device, has_float64 = trainer.strategy.root_device.type, is_counted or str(trainer.precision).startswith("64")
    if device == "mps" and has_float64:
        needs = "an n-gram model" if is_counted else f"trainer.precision={trainer.precision}"
        raise ConfigError(
            f"{needs} needs float64, which Apple's GPUs do not have; set trainer=cpu or a lower precision"
        )
    if device == "cpu" and str(trainer.precision).startswith("bf16") and not fast_bfloat16("cpu"):
        log.warning("this processor has no bfloat16 and emulates it slowly; leave trainer.precision out for float32")
    if device == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, for products in float32
    return trainer


def _describe(run_dir: Path, loggers: list[Logger], config: dict[str, Any], *, new: bool) -> None:
    """Writes the config and the state of the code to the run's folder, the loggers and the log."""
    run_dir.mkdir(parents=True, exist_ok=True)
    if new:
        remove_run(run_dir)
    OmegaConf.save(OmegaConf.create(config), run_dir / "config.yaml")
    git = git_state(CONFIGS.parent)
    if git["commit"]:
        log.info("commit %s%s", git["commit"], ", with changes" * git["dirty"])
    for logger in loggers:
        logger.log_hyperparams({**config, "git": git})


def _prepare_data(options: Train, maker: TokenizerMaker, world_size: int, node: dict[str, Any]) -> ParallelDataModule:
    """The prepared data; writes the languages that it found into its config, and warns where BLEU needs another."""
    data = build_data(options, maker)
    data.prepare_data()
    data.check(world_size)
    node |= {key: getattr(data.source, key) for key in ("src_lang", "tgt_lang") if key in node}
    for warning in text_problems(data.source, data.prepared.tgt_tokenizer, data.cache_dir):
        log.warning(warning)
    if problem := unsegmented(data.lines("val")[1], text_form=data.source.text_form, tgt_lang=data.source.tgt_lang):
        log.warning("%s; set data.tgt_lang=CODE", problem)
    return data


def _new_model(
    options: Train, data: ParallelDataModule, init: CheckpointContents | None, node: dict[str, Any], *, pretrained: bool
) -> Seq2Seq:
    """The model before training: counted, or with the weights of ``init``, or with ``pretrained`` embeddings if any."""
    tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
    model = build_model(options.model, tokenizers)
    if isinstance(model.decoder, CountedDecoder):
        model.decoder.count_ngrams(*data.training_targets())
    if init is not None:
        describe = partial(describe_model, options)
        start_from(init, model, node, tokenizers, options=options.init, describe=describe)
    elif pretrained:
        load_vectors(options.vectors, model, tokenizers)
    freeze(model, options.freeze)
    return model


def _save_counted(
    trainer: lightning.Trainer, module: TranslationModule, data: ParallelDataModule, folder: Path
) -> None:
    """Validates a counted model, and saves it as both the best and the last checkpoint."""
    trainer.validate(module, datamodule=data, verbose=False)
    for name in (BEST, LAST):
        trainer.save_checkpoint(folder / name)


def _best_model(options: Train, callbacks: list[Callback]) -> Seq2Seq | None:
    """A new model with the weights of the best checkpoint, if there is one: FSDP has taken the trained model apart.

    It is the one that the config names, because the checkpoint may not name classes of the user's own.
    """
    if not any(isinstance(saver, ModelCheckpoint) and saver.monitor and saver.best_model_path for saver in callbacks):
        return None
    best = read_contents(options.run_dir / "checkpoints" / BEST)
    return with_weights(build_model(options.model, best.tokenizers), best)
