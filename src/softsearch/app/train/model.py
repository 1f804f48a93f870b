"""The model of a training, before it is trained: what is trained of it, and what is added."""

import logging
from collections.abc import Sequence
from fnmatch import fnmatchcase

import torch
from omegaconf import DictConfig
from torch import Tensor

from softsearch.app.config.composition import typed_options
from softsearch.app.config.options import Train
from softsearch.app.config.shorthands import shell_command
from softsearch.app.config.validation import build, nearest, target_of
from softsearch.errors import ConfigError
from softsearch.models.interface import CountedDecoder
from softsearch.models.layers import recompute_activations
from softsearch.models.seq2seq import Seq2Seq

log = logging.getLogger(__name__)


def check_trained(options: Train) -> None:
    """Refuses a model that is counted, not trained.

    Raises:
        ConfigError: with the line to type instead.
    """
    if is_counted(options.model):
        words = [word for word in typed_options() if not word.startswith(("resume=", "init=", "init."))]
        line = shell_command(("softsearch", "count", *words))
        raise ConfigError(f"model.decoder is counted from the data, not trained; type {line}")


def is_counted(model: DictConfig) -> bool:
    """Tells whether the model of a config is for ``softsearch count``: its decoder is counted, not trained."""
    node = model.get("decoder") or {}  # that of an experiment for another model has no _target_
    decoder = target_of(node, "model.decoder") if "_target_" in node else None
    return isinstance(decoder, type) and issubclass(decoder, CountedDecoder)


def describe_model(options: Train, src_size: int = 0, tgt_size: int = 0) -> Seq2Seq:
    """Returns the model on the meta device, with vocabularies of these sizes or those in the options."""
    tgt_size = tgt_size or options.tokenizer.vocab_size
    with torch.device("meta"):
        src_size = src_size or options.tokenizer.get("src_vocab_size") or tgt_size
        model: Seq2Seq = build(options.model, src_vocab_size=src_size, tgt_vocab_size=tgt_size)
    freeze(model, options.freeze)
    return model


def freeze(model: Seq2Seq, what: Sequence[str]) -> None:
    """Excludes weights from training.

    Args:
        model: the model.
        what: names of parts, and patterns of names of weights such as ``encoder.layers.0.*``.

    Raises:
        ConfigError: one matches nothing, or nothing is left to train.
    """
    parts, names = model.parts(), dict(model.named_parameters(remove_duplicate=False))
    for pattern in what:
        chosen: list[Tensor] = [*parts.get(pattern, ())] or [p for n, p in names.items() if fnmatchcase(n, pattern)]
        if not chosen:
            raise ConfigError(
                f"freeze has {pattern!r}, which is not a part of this model and matches no weight; "
                f"{nearest(pattern, [*parts, *names])}"
            )
        for parameter in chosen:
            parameter.requires_grad_(False)
    every = list(model.parameters())
    trained = sum(p.numel() for p in every if p.requires_grad)
    if what and not trained:
        raise ConfigError(f"freeze={list(what)} leaves nothing to train; remove a part")
    if what and not every[0].is_meta:
        log.info("%s of %s parameters are trained", f"{trained:,}", f"{sum(p.numel() for p in every):,}")


def adapt(options: Train, model: Seq2Seq) -> None:
    """Adds the adapters of ``adapter`` to a model, if there are any.

    Raises:
        ConfigError: an option is wrong, a package is missing, or there is nothing to adapt.
    """
    if options.adapter is None:
        return
    if options.init.ckpt is None:
        raise ConfigError("adapter trains updates of a trained model, but init is null; set init=RUN, or adapter=null")
    build(options.adapter).adapt(model)


def save_memory(options: Train, model: Seq2Seq) -> None:
    """Has Transformer layers compute their activations again in the backward pass, if the trainer asks for it."""
    if options.trainer.get("checkpoint_activations") and not recompute_activations(model):
        log.warning("trainer.checkpoint_activations=true has no effect: this model has no Transformer layers")
