"""Parts of a training that need no data: checked and built once, so that all mistakes are reported together."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from omegaconf import DictConfig, OmegaConf
from torch import nn

from softsearch.app.config.build import SearchMaker, data_maker, search_maker
from softsearch.app.config.mistakes import Mistakes
from softsearch.app.config.options import Train
from softsearch.app.config.validation import build, check, plain, read_options
from softsearch.app.results import build_metrics
from softsearch.app.train.devices import build_trainer
from softsearch.app.train.model import adapt, check_trained, describe_model, save_memory
from softsearch.data.datamodule import ParallelDataModule
from softsearch.errors import ConfigError
from softsearch.evaluation.metrics import Metric
from softsearch.models.seq2seq import Seq2Seq
from softsearch.training.interface import TrainingPart, for_data, training_parts
from softsearch.training.module import TranslationModule, make_optimizer

log = logging.getLogger(__name__)
RUNTIME_ARGUMENTS = {"model": ("src_vocab_size", "tgt_vocab_size")}  # arguments that come from the data, not from YAML
_TRAINING = ("loss", "method", "optimizer", "scheduler")
_METRICS = ("val/loss", "val/perplexity")  # available at every validation


@dataclass(frozen=True, kw_only=True)
class TrainParts:
    """The parts of a training."""

    options: Train
    record: dict[str, Any]  # the resolved config to write to the run's files
    training: Mapping[str, Any]  # arguments of TranslationModule, except the model
    metrics: Mapping[str, Metric]
    callbacks: list[Callback]
    trainer: lightning.Trainer
    loggers: list[DictConfig]  # built when the run starts
    make_data: partial[ParallelDataModule]
    make_search: SearchMaker
    exports_bundle: bool

    def module(self, model: Seq2Seq, data: ParallelDataModule) -> TranslationModule:
        """Returns the module for Lightning; gives the data's languages and tokenizers to methods that need them."""
        method = for_data(self.training["method"], data.source, data.tokenizers)
        save_memory(self.options, model)
        return TranslationModule(model=model, **{**self.training, "method": method})

    def monitoring(self, data: ParallelDataModule, config: DictConfig) -> "TrainParts":
        """Returns the parts with another monitored metric if theirs cannot change on these data."""
        monitor = self.options.monitor
        for part in self.asked():
            monitor = part.monitor_for(monitor, data)
        if monitor == self.options.monitor:
            return self
        config.monitor = monitor
        options = read_options(config, Train)
        callbacks = build_callbacks(options)
        record = recorded(config) | {"data": self.record["data"]}
        trainer = build_trainer(options, callbacks)
        return replace(self, options=options, record=record, callbacks=callbacks, trainer=trainer)

    def asked(self) -> list[TrainingPart]:
        """Returns the parts that answer a training's questions."""
        return training_parts(self.training["method"], *self.callbacks)

    def rehearse_export(self, model: Seq2Seq, data: ParallelDataModule) -> None:
        """Exports the untrained model, so that problems show before training; raises ConfigError."""
        from softsearch.app.train.bundle import rehearse_export

        rehearse_export(self.options, self.record, model, data.source, data.tokenizers)

    def log_bundle(self, data: ParallelDataModule) -> None:
        """Exports the trained model to the run's folder and to loggers."""
        from softsearch.app.train.bundle import log_bundle

        log_bundle(self.options, data.source, self.trainer.loggers)


def build_parts(config: DictConfig) -> TrainParts:
    """Checks and builds all parts.

    Raises:
        ConfigError: with all mistakes.
    """
    options, record, mistakes = read_options(config, Train), recorded(config), Mistakes()
    attempt = mistakes.attempt
    check_trained(options)
    attempt(check_limits, record)
    described = attempt(describe_model, options)
    attempts = {name: attempt(build, getattr(options, name)) for name in _TRAINING}
    metrics, loggers = attempt(build_metrics, options.metric), attempt(_checked_loggers, options)
    built = attempt(build_callbacks, options)
    callbacks = built.value() if built.made else []
    trainer = attempt(build_trainer, options, callbacks)
    data, search = attempt(data_maker, options), attempt(search_maker, options.search)
    attempt(build, options.tokenizer)
    for model in described.made:
        attempt(adapt, options, model)
    mistakes.report()
    model, training = described.value(), {name: part.value() for name, part in attempts.items()}
    asked = training_parts(training["method"], *callbacks)
    for part in asked:
        part.check(model, data.value().keywords["source"])
    exports_bundle = any(part.bundle for part in asked)
    if exports_bundle:
        from softsearch.app.train.bundle import check_bundle

        check_bundle(options)
    return TrainParts(
        options=options,
        record=record,
        training=fit_together(options, training, model),
        metrics=metrics.value(),
        callbacks=callbacks,
        trainer=trainer.value(),
        loggers=loggers.value(),
        make_data=data.value(),
        make_search=search.value(),
        exports_bundle=exports_bundle,
    )


def recorded(config: DictConfig) -> dict[str, Any]:
    """Returns the resolved config to write to the run's files: without ``trust``, which is given for one call."""
    return {key: value for key, value in plain(config).items() if key != "trust"}


def build_training(options: Train, model: Seq2Seq) -> dict[str, Any]:
    """Builds the arguments of the TranslationModule, except the model, and checks that they fit the model.

    ``model`` comes from ``describe_model``.

    Raises:
        ConfigError: an option is out of range, or the parts do not fit together.
    """
    return fit_together(options, {name: build(getattr(options, name)) for name in _TRAINING}, model)


def check_sections(values: Mapping[str, Any]) -> None:
    """Checks all sections of a training's config, as plain values, without building them.

    Raises:
        ConfigError: an option is wrong.
    """
    for name, node in values.items():
        check(node, name, given=RUNTIME_ARGUMENTS.get(name, ()))


def fit_together(options: Train, training: dict[str, Any], model: Seq2Seq) -> dict[str, Any]:
    """Checks that loss, optimizer and schedule suit the model; raises like ``build_training``."""
    training["loss"].check(model.decoder.output_projection)
    training["scheduler"](make_optimizer(training["optimizer"], model, nn.Linear(1, 1).parameters()))
    return training | {"compiles": options.compile, "cuda_graphs": options.cuda_graphs}


def build_callbacks(options: Train) -> list[Callback]:
    """Builds the callbacks, and checks that the metrics monitored by them and by the schedule exist.

    Raises:
        ConfigError: an option is out of range, or no validation has such a metric.
    """
    nodes = {f"callbacks.{name}": node for name, node in options.callbacks.items() if node is not None}
    callbacks = [build(node) for node in nodes.values()]
    metrics = [*_METRICS, *(name for part in training_parts(*callbacks) for name in part.monitored())]
    for key, node in {"scheduler": options.scheduler, **nodes}.items():
        if "monitor" in node and node.monitor not in metrics:
            expected = ", ".join(sorted(metrics))
            raise ConfigError(f"{key}.monitor is {node.monitor!r}, expected one of {expected}; change it")
    return callbacks


def _checked_loggers(options: Train) -> list[DictConfig]:
    """Returns the loggers to build; that of W&B, recognised by ``offline``, only if it begins a run."""
    nodes = {name: node for name, node in options.logger.items() if node is not None}
    for name, node in nodes.items():
        check(OmegaConf.to_container(node, resolve=True), f"logger.{name}")
    return [node for node in nodes.values() if "offline" not in node or _starts_wandb(node)]


def _starts_wandb(node: DictConfig) -> bool:
    from softsearch.training.loggers.wandb_run import starts_run

    return starts_run(offline=bool(node.offline))


def check_limits(config: Mapping[str, Any]) -> None:
    """Checks those limits of a resolved config that need no data.

    Raises:
        ConfigError: no step is to be trained, the schedule has no end, or Lightning's overfit_batches is set.
    """
    trainer, steps = config["trainer"], config["trainer"].get("max_steps")
    if trainer.get("overfit_batches"):
        raise ConfigError(
            f"trainer.overfit_batches={trainer['overfit_batches']} does not work with our batches; set debug=overfit "
            "batching.batches=N, which trains on the same N batches again and again"
        )
    for key in ("max_steps", "max_epochs", "limit_train_batches"):
        if (limit := trainer.get(key)) is not None and limit == 0:
            raise ConfigError(
                f"trainer.{key} is {limit}, so nothing is trained; set trainer.{key}=N, at least 1 (softsearch "
                "evaluate tests a trained model)"
            )
    interval = trainer.get("val_check_interval")
    if isinstance(interval, float) and trainer.get("check_val_every_n_epoch") is None:
        raise ConfigError(
            f"trainer.val_check_interval is {interval}, a share of an epoch, but validations count batches across "
            f"epochs; set trainer.check_val_every_n_epoch=1 too, or trainer.val_check_interval=N for every N batches"
        )
    if trainer.get("devices") in (0, "0"):
        raise ConfigError("trainer.devices is 0, expected at least 1 process; for the CPU set trainer=cpu")
    if steps == -1 and (config["scheduler"] or {}).get("total_steps") == -1:
        raise ConfigError(
            "trainer.max_steps is -1, but the schedule of the learning rate ends at the last step; set "
            "trainer.max_steps=N (more than the time allows if there is a trainer.max_time, which the schedule then "
            "follows), or use scheduler=inverse_sqrt, plateau or constant, which have no end"
        )
