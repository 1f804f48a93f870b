"""The parts of a run, built from its config."""

import logging
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from softsearch.app.instantiate import build
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.vectors import fill_vectors
from softsearch.errors import CheckpointError, ConfigError
from softsearch.models.interface import Seq2Seq
from softsearch.text.tokenizer import Tokenizer
from softsearch.training.saved import Saved

log = logging.getLogger(__name__)


def build_data(config: DictConfig) -> ParallelDataModule:
    """The datamodule of ``data``, ``tokenizer`` and ``batching``."""
    return ParallelDataModule(
        source=build(config.data),
        tokenizer=build(config.tokenizer),
        batching=build(config.batching),
        cache_dir=Path(config.cache_dir).expanduser(),
        seed=config.seed,
    )


def build_model(model: DictConfig, src_vocab_size: int, tgt_vocab_size: int) -> Seq2Seq:
    """The architecture of ``model``.

    Raises:
        ConfigError: the sizes do not fit together.
    """
    built: Seq2Seq = build(model, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size)
    return built


def load_vectors(vectors: DictConfig, model: Seq2Seq, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Starts the embeddings of a new model from the files ``vectors.src`` and ``vectors.tgt``, where they are given.

    Raises:
        ConfigError: there is no such matrix, or one for both sides and a file for each.
        CorpusError: a file is not what it should be (see :func:`fill_vectors`).
    """
    sides = [
        (f"vectors.{side}", Path(vectors[side]).expanduser(), _embeddings(part, f"vectors.{side}"), tokenizer)
        for side, part, tokenizer in zip(("src", "tgt"), (model.encoder, model.decoder), tokenizers, strict=True)
        if vectors[side] is not None
    ]
    if len({id(matrix) for _, _, matrix, _ in sides}) < len(sides):
        raise ConfigError(
            "vectors.src and vectors.tgt are both set, but model.embeddings.tie=all has one matrix for both; "
            "set one of them, or model.embeddings.tie=output"
        )
    for key, path, matrix, tokenizer in sides:
        pieces = [tokenizer.pieces([token])[0] for token in range(tokenizer.vocab_size)]
        log.info("%s: %s", key, fill_vectors(matrix.detach().numpy(), pieces, path).summary())


def _embeddings(part: nn.Module, key: str) -> Tensor:
    found = [module.weight for module in part.modules() if isinstance(module, nn.Embedding)]
    if len(found) != 1:
        raise ConfigError(f"{key} is set, but the model has no such embeddings; set {key}=null")
    return found[0]


def rebuild_model(saved: Saved) -> Seq2Seq:
    """The trained model of a checkpoint, in evaluation mode.

    Raises:
        CheckpointError: the weights do not fit the config beside them.
    """
    config = OmegaConf.create({"model": saved.config["model"]})
    model = build_model(config.model, *(t.vocab_size for t in saved.tokenizers))
    try:
        model.load_state_dict(saved.weights)
    except RuntimeError as error:
        raise CheckpointError(f"{saved.path}: the weights do not fit the model of its config: {error}") from error
    return model.eval()
