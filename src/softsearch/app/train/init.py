"""Starting weights of a new run: those of a trained checkpoint (``init=CKPT``)."""

import inspect
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from softsearch.app.config.build import with_weights
from softsearch.app.config.options import Train
from softsearch.app.config.validation import target_of
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.interface import Seq2Seq
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents
from softsearch.training.checkpoints.folder import checkpoint_file

log = logging.getLogger(__name__)
_TRAINING_ONLY = {"init", "dropout", "sparse"}  # words in names of a model's options that its weights do not need


def read_init(options: Train, *, resumes: bool = False, is_counted: bool = False) -> CheckpointContents | None:
    """The checkpoint whose weights a new run starts from; None without one, or if the run ``resumes``.

    Raises:
        ConfigError: the run continues another, its embeddings come from elsewhere, or the model is counted.
        CheckpointError: the checkpoint cannot be read.
    """
    if options.init is None:
        return None
    if is_counted:
        raise ConfigError(
            f"init={options.init} gives a training its first weights, but model.decoder is counted from the data; "
            "expected init=null, leave it out"
        )
    if isinstance(options.resume, Path):
        raise ConfigError(
            f"init={options.init} starts a new run, but resume={options.resume} continues one with that one's weights; "
            "leave one of them out (resume=auto continues the new run)"
        )
    for side in ("src", "tgt"):
        if (vectors := getattr(options.vectors, side)) is not None:
            raise ConfigError(
                f"init={options.init} has embeddings, but vectors.{side}={vectors} would replace them; leave one out"
            )
    return None if resumes else read_contents(checkpoint_file(options.init))


def start_from(init: CheckpointContents, model: Seq2Seq, node: Mapping[str, Any], tokenizers: Tokenizers) -> None:
    """Loads the weights of ``init``, without the state of its training, into a new model.

    Args:
        init: the checkpoint.
        model: the new model, in training mode.
        node: the resolved config of the new model.
        tokenizers: of the new run's data.

    Raises:
        CheckpointError: the checkpoint's vocabularies, model or weights are not those of this run.
    """
    for side, there, here in zip(("source", "target"), init.tokenizers, tokenizers, strict=True):
        if there.fingerprint != here.fingerprint:
            raise CheckpointError(
                f"init={init.path} has another {side} vocabulary: {_describe(there)} there, {_describe(here)} in this "
                "run's data, and not the same pieces; use the data, tokenizer options and cache_dir of that run"
            )
    if different := list(differences(init.config["model"], node, "model")):
        raise CheckpointError(
            f"init={init.path} is another model: {'; '.join(different)}; set the same options, as in that run's "
            "config.yaml"
        )
    with_weights(model, init).train()
    log.info("starting from the weights of %s", init.describe())


def differences(there: Any, here: Any, path: str) -> Iterator[str]:
    """Yields the options of two nodes that differ; one that a side lacks, as an older checkpoint, has its default."""
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        if there != here:
            yield f"{path} is {there!r:.80} there, {here!r:.80} here"
        return
    if there.get("_target_") != here.get("_target_"):
        yield f"{path} is {there.get('_target_')!r:.80} there, {here.get('_target_')!r:.80} here"
        return
    defaults: dict[str, Any] = {}
    if "_target_" in here:  # this run's own config names it, so it may be imported
        parameters = inspect.signature(target_of(here, path)).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    for key in sorted({*there, *here}):
        if _TRAINING_ONLY & {*key.split("_")}:
            continue
        before, now = (side.get(key, defaults.get(key)) for side in (there, here))
        yield from differences(before, now, f"{path}.{key}")


def _describe(tokenizer: SentencePieceTokenizer) -> str:
    return f"{tokenizer.vocab_size:,} pieces" + ", reversed" * tokenizer.reverse
