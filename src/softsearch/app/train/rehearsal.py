"""A run's parts, built once before its data are prepared, so that mistakes in the config cost no time."""

import torch
from omegaconf import DictConfig
from torch import nn

from softsearch.app.config.instantiate import build
from softsearch.app.systems.reranking import is_rerank
from softsearch.text.option_checks import require_choice
from softsearch.training.callbacks.translate import TranslateValidation
from softsearch.training.module import make_optimizer
from softsearch.training.optimizer.lazy_adam import check_takes_sparse

_FIGURES = ("val/loss", "val/perplexity")  # of each validation
_OF_TRANSLATIONS = ("val/bleu", "val/chrf", "val/exact_match")
_TRANSLATE = f"{TranslateValidation.__module__}.{TranslateValidation.__name__}"


def rehearse(config: DictConfig) -> None:
    """Builds what can be built without the data, so that mistakes are known before the data are prepared.

    Raises:
        ConfigError: an option is out of range, or the parts do not fit together.
    """
    for group in ("model", "loss", "method", "callbacks", "search", "trainer"):
        rehearse_group(config, group)


def rehearse_group(config: DictConfig, group: str) -> None:
    """Builds what one config group has chosen, of a whole config; with the model, its optimizer and schedule.

    The model gets no memory for its weights, and vocabularies of as many pieces as are asked for.

    Raises:
        ConfigError: as :func:`rehearse`.
    """
    match group:
        case "model" | "optimizer" | "scheduler":
            tgt_size = config.tokenizer.vocab_size
            with torch.device("meta"):
                src_size = config.tokenizer.get("src_vocab_size") or tgt_size
                model = build(config.model, src_vocab_size=src_size, tgt_vocab_size=tgt_size)
            optimizer = make_optimizer(build(config.optimizer), nn.Linear(1, 1))
            check_takes_sparse(optimizer, model)
            build(config.scheduler)(optimizer)
        case "callbacks":
            for callback in config.callbacks.values():
                build(callback)
            _check_monitors(config)
        case "trainer":
            build(config.trainer, logger=False)
        case "search" if is_rerank(config.search):
            pass  # it needs tokenizers
        case _:
            build(config[group])


def _check_monitors(config: DictConfig) -> None:
    """Looks for what is to be watched among the figures of a validation.

    Raises:
        ConfigError: there is no such figure.
    """
    parts = {"scheduler": config.scheduler} | {
        f"callbacks.{k}": v for k, v in config.callbacks.items() if v is not None
    }
    translated = any(node.get("_target_") == _TRANSLATE for node in parts.values())
    for key, node in parts.items():
        if "monitor" in node:
            require_choice(f"{key}.monitor", node.monitor, _FIGURES + _OF_TRANSLATIONS * translated)
