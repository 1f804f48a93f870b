"""The parts of a run that need no data: built before there are any, so that mistakes in the config cost no time."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import nn

from softsearch.app.config.options import Train
from softsearch.app.config.validation import build
from softsearch.app.export import recommended_search
from softsearch.app.systems.reranking import is_rerank
from softsearch.errors import ConfigError
from softsearch.training.callbacks.dashboard import Dashboard
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.callbacks.translate import TranslateValidation
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from softsearch.training.faults.faulty_steps import FaultySteps
from softsearch.training.module import make_optimizer

_METRICS = ("val/loss", "val/perplexity")  # of each validation
_OF_TRANSLATIONS = ("val/bleu", "val/chrf", "val/exact_match")


@dataclass(frozen=True)
class Parts:
    """What is built once, before the data are known."""

    training: dict[str, Any]  # arguments of the TranslationModule, besides its model
    callbacks: list[Callback]  # of the config
    trainer: lightning.Trainer  # with these callbacks, and without loggers

    @property
    def exports_bundle(self) -> bool:
        """Whether a bundle is exported after training."""
        return any(isinstance(callback, Dashboard) and callback.bundle for callback in self.callbacks)

    @property
    def keeps_best(self) -> bool:
        """Whether a best checkpoint was saved."""
        saving = [callback for callback in self.callbacks if isinstance(callback, ModelCheckpoint)]
        return any(callback.monitor and callback.best_model_path for callback in saving)

    @property
    def summary(self) -> dict[str, float]:
        """What the callbacks have counted during training."""
        counting = [callback for callback in self.callbacks if isinstance(callback, Throughput | FaultySteps)]
        return {name: value for callback in counting for name, value in callback.summary.items()}


def build_parts(options: Train) -> Parts:
    """Builds what can be built without the data.

    Raises:
        ConfigError: an option is out of range, or the parts do not fit together.
    """
    training = build_training(options)
    callbacks = build_callbacks(options)
    if not is_rerank(options.search):  # which needs tokenizers
        build(options.search)
    trainer = build(options.trainer, callbacks=[*callbacks], logger=False, plugins=[AtomicCheckpointIO()])
    parts = Parts(training, callbacks, trainer)
    if parts.exports_bundle:
        try:
            recommended_search(options.search)
        except ConfigError as error:
            raise ConfigError(f"callbacks.dashboard.bundle is true, but {error}") from error
    return parts


def build_training(options: Train) -> dict[str, Any]:
    """The loss, the method, the optimizer and the schedule, which fit the model.

    Of the model a copy is built that takes no memory, for vocabularies of as many pieces as are asked for.

    Raises:
        ConfigError: an option is out of range, or the parts do not fit together.
    """
    training = {name: build(getattr(options, name)) for name in ("loss", "method", "optimizer", "scheduler")}
    training["method"] = plain_partial(training["method"])
    tgt_size = options.tokenizer.vocab_size
    with torch.device("meta"):
        src_size = options.tokenizer.get("src_vocab_size") or tgt_size
        model = build(options.model, src_vocab_size=src_size, tgt_vocab_size=tgt_size)
    training["scheduler"](make_optimizer(training["optimizer"], model, nn.Linear(1, 1).parameters()))
    return training


def plain_partial(value: Any) -> Any:
    """A partial of Hydra's as Python's own, with those in its arguments; Hydra checks its targets at every call."""
    if not isinstance(value, partial):
        return value
    return partial(value.func, *value.args, **{name: plain_partial(v) for name, v in value.keywords.items()})


def build_callbacks(options: Train) -> list[Callback]:
    """The callbacks, after a look for the metrics that they and the schedule monitor.

    Raises:
        ConfigError: an option is out of range, or no validation has such a metric.
    """
    nodes = {f"callbacks.{name}": node for name, node in options.callbacks.items() if node is not None}
    callbacks = [build(node) for node in nodes.values()]
    metrics = _METRICS + _OF_TRANSLATIONS * any(isinstance(callback, TranslateValidation) for callback in callbacks)
    for key, node in {"scheduler": options.scheduler, **nodes}.items():
        if "monitor" in node and node.monitor not in metrics:
            expected = ", ".join(sorted(metrics))
            raise ConfigError(f"{key}.monitor is {node.monitor!r}, expected one of {expected}; change it")
    return callbacks
