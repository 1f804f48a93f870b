"""Contents of a checkpoint in addition to Lightning's state: everything needed to rebuild the model and translate."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, get_args

import torch
from lightning.pytorch.callbacks import Callback, WeightAveraging
from torch import Tensor

from softsearch.data.corpora.base import DIVISION, ParallelSource, TextForm
from softsearch.data.sentencepiece_file import with_folding
from softsearch.doors import with_public_names
from softsearch.errors import BundleError, CheckpointError, ConfigError, summarize
from softsearch.text.plain_values import nested_values
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint

FORMAT = 1
ORIGIN = "softsearch"
WEIGHTS = "model."  # prefix of the Seq2Seq's weights in the LightningModule
_CONFIG: dict[str, type] = {"name": str, "model": dict, "data": dict, "tokenizer": dict}  # keys of every run's config
_SOURCE = {"src_lang": str, "tgt_lang": str, "text_form": str, "has_features": bool, "tags": list}
_MAX_VALUES = 100_000  # in a config


class SaveOrigin(Callback):
    """Adds the run's resolved config and tokenizers to every checkpoint, as plain values and tensors.

    ``source`` describes a data source that cannot be rebuilt because its class is not trusted.
    """

    def __init__(self, config: dict[str, Any], tokenizers: Tokenizers, source: ParallelSource | None = None) -> None:
        self.origin = {
            "format": FORMAT,
            "config": config,
            "tokenizers": [torch.frombuffer(bytearray(t.model), dtype=torch.uint8) for t in tokenizers],
            "reversed": [t.reverse for t in tokenizers],
            "division": DIVISION,
        }
        if source is not None:
            self.origin["source"] = {name: getattr(source, name) for name in _SOURCE} | {"tags": list(source.tags)}

    def on_save_checkpoint(self, trainer: Any, _: Any, checkpoint: dict[str, Any]) -> None:
        """Adds config and tokenizers."""
        checkpoint[ORIGIN] = self.origin

    def on_load_checkpoint(self, trainer: Any, _: Any, checkpoint: dict[str, Any]) -> None:
        """Refuses to resume from an average as if it were the trained weights.

        Raises:
            CheckpointError: the checkpoint has a moving average, but this run has none.
        """
        averaging = any(isinstance(callback, WeightAveraging) for callback in trainer.callbacks)
        if "current_model_state" in checkpoint and not averaging:
            raise CheckpointError(
                "the checkpoint to resume from holds a moving average of the weights; resume with callbacks=ema"
            )


class CheckpointContents(NamedTuple):
    """A checkpoint without the state of training."""

    path: Path
    config: dict[str, Any]
    tokenizers: Tokenizers
    weights: dict[str, Tensor]  # those of the Seq2Seq
    step: int
    averaged: int  # number of checkpoints averaged
    source: Mapping[str, Any] | None = None  # describes the data source without its class
    division: object = DIVISION  # the rule that split validation and test pairs off the training text

    @property
    def guided(self) -> bool:
        """Tells whether its attention was trained on links, by ``method=guided_alignment``."""
        method = self.config.get("method") or {}
        several = (method.get("methods") or {}).values()
        return any(str(one.get("_target_")).endswith(".GuidedAlignment") for one in (method, *several))

    @property
    def max_length_factor(self) -> float:
        """Returns that of the search after training; 0 if the search has none, such as ``mbr``."""
        return float((self.config.get("search") or {}).get("max_length_factor") or 0)

    def describe(self) -> str:
        """Describes the file, its step and its averaging."""
        mean = f", the mean of {self.averaged} checkpoints" if self.averaged > 1 else ""
        return f"{self.path}, step {self.step}{mean}"


def read_contents(path: str | Path) -> CheckpointContents:
    """Reads a softsearch checkpoint.

    Raises:
        CheckpointError: it is missing, damaged, or from another program or in another format.
    """
    return to_contents(Path(path), load_checkpoint(Path(path)))


def to_contents(path: Path, checkpoint: dict[str, Any]) -> CheckpointContents:
    """Returns the contents of a checkpoint read from ``path``; raises like ``read_contents``."""
    origin = checkpoint.get(ORIGIN)
    if not isinstance(origin, dict):
        raise CheckpointError(f"{path} is not a softsearch checkpoint; expected one written by softsearch train")
    if not _is_count(origin.get("format")) or origin["format"] != FORMAT:
        raise CheckpointError(
            f"{path}: its checkpoint format is {shorten(origin.get('format'))}, expected {FORMAT}; use the version of "
            "softsearch that wrote it, or another file"
        )
    problem = next(_problems(origin, checkpoint), None)
    if problem is not None:
        raise CheckpointError(f"{path} is not a checkpoint as written by softsearch train: {problem}; use another file")
    try:
        src, tgt = (
            SentencePieceTokenizer(with_folding(bytes(model.numpy())), reverse=reverse)
            for model, reverse in zip(origin["tokenizers"], origin["reversed"], strict=True)
        )
    except (BundleError, ConfigError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    state, step, averaged = merged_state(path, checkpoint), checkpoint["global_step"], checkpoint.get("averaged", 1)
    weights = {name.removeprefix(WEIGHTS): state[name] for name in state if name.startswith(WEIGHTS)}
    config, described = with_public_names(origin["config"]), (origin.get("source"), origin.get("division"))
    return CheckpointContents(path, config, (src, tgt), weights, step, averaged, *described)


def merged_state(path: Path, checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """Returns the weights of a checkpoint, with adapters (``adapter=lora``) merged into their matrices.

    Raises:
        CheckpointError: an adapter does not fit its matrix.
    """
    from softsearch.training.lora import merged  # few commands read checkpoints at their start

    try:
        return merged(checkpoint["state_dict"], checkpoint[ORIGIN]["config"].get("adapter"))
    except Exception as error:  # a file may hold anything
        raise CheckpointError(
            f"{path}: its adapter does not fit its weights ({summarize(error)}); use another file"
        ) from error


def describe_mismatch(saved: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> str | None:
    """Describes the first weight with another shape or without a counterpart; None if all fit."""
    for name in sorted({*saved, *expected}):
        there, here = (
            str(tuple(weights[name].shape)) if name in weights else "missing" for weights in (saved, expected)
        )
        if there != here:
            return f"{name} is {there} there, {here} here"
    return None


def _problems(origin: dict[Any, Any], checkpoint: dict[str, Any]) -> Iterator[str]:
    """Yields differences from the format that ``SaveOrigin`` and Lightning write."""
    config, tokenizers, reverse = (origin.get(key) for key in ("config", "tokenizers", "reversed"))
    if not isinstance(config, dict) or not _is_plain(config):
        yield f"config is {shorten(config)}, expected plain values by name"
        return
    for name, kind in _CONFIG.items():
        if not isinstance(config.get(name), kind) or (kind is str and not _is_name(config[name])):
            yield f"config.{name} is {shorten(config.get(name))}, expected {'a string' if kind is str else 'options'}"
    source = origin.get("source")
    if source is not None and not _describes_source(source):
        yield f"source is {shorten(source)}, expected its languages, the form of its text and its tags"
    if not isinstance(tokenizers, list) or len(tokenizers) != 2 or not all(map(_is_bytes, tokenizers)):
        yield f"tokenizers is {shorten(tokenizers)}, expected two tensors of bytes"
    if not isinstance(reverse, list) or len(reverse) != 2 or not all(isinstance(side, bool) for side in reverse):
        yield f"reversed is {shorten(reverse)}, expected two values, true or false"
    for key in ("global_step", "averaged"):
        if not _is_count(checkpoint.get(key, 1 if key == "averaged" else None)):
            yield f"{key} is {shorten(checkpoint.get(key))}, expected a whole number"
    state = checkpoint.get("state_dict")
    if not isinstance(state, dict) or not state:
        yield f"state_dict is {shorten(state)}, expected weights by name"
        return
    for name, weight in state.items():
        if not _is_name(name) or not is_weight(weight):
            yield f"{shorten(name)} of state_dict is {shorten(weight)}, expected a tensor with all its values"


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_name(value: object) -> bool:
    """Tells whether a value is a string without control characters."""
    return isinstance(value, str) and value.isprintable()


def _describes_source(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == _SOURCE.keys()
        and all(isinstance(value[name], kind) for name, kind in _SOURCE.items())
        and value["text_form"] in get_args(TextForm)
        and all(map(_is_name, (value["src_lang"], value["tgt_lang"], *value["tags"])))
    )


def _is_plain(value: object) -> bool:
    """Tells whether YAML can hold a value, of limited size and depth; shared parts count each time."""
    try:
        return all(
            all(map(_is_name, node)) if isinstance(node, dict) else isinstance(node, list | str | int | float | None)
            for node in nested_values(value, _MAX_VALUES)
        )
    except ValueError:
        return False


def _is_bytes(value: object) -> bool:
    return is_weight(value) and value.dtype == torch.uint8 and value.dim() == 1


def is_weight(value: object) -> TypeGuard[Tensor]:
    """Tells whether a tensor stores all its elements: a view can repeat a few bytes to any size."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_quantized or value.is_meta:
        return False
    return value.numel() * value.element_size() <= value.untyped_storage().nbytes()


def shorten(value: object) -> str:
    """Formats a value for a message: short, and without control characters."""
    if value is None:
        return "missing"
    return repr(value)[:60] if isinstance(value, str | int | float) else f"a {type(value).__name__}"
