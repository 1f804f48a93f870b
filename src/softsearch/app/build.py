"""The parts of a run, built from its config."""

from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from softsearch.app.instantiate import build
from softsearch.data.datamodule import ParallelDataModule
from softsearch.errors import CheckpointError
from softsearch.models.interface import Seq2Seq
from softsearch.training.saved import Saved


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
