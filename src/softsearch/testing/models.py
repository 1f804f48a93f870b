"""Small models for tests, from the configs, with few units and random weights everywhere."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import DictConfig
from torch import Tensor

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import build
from softsearch.data.dataset import Batch, pad
from softsearch.models.interface import CountedDecoder, Encoder
from softsearch.models.seq2seq import Seq2Seq
from softsearch.text.vocabulary import SPECIALS

SRC_VOCAB = TGT_VOCAB = 17  # one joint vocabulary, since some models share their embeddings
SMALL = {
    "dim": 8,
    "hidden_dim": 8,  # equal to dim, as a tied output layer needs
    "maxout_dim": 8,
    "feature_dim": 6,
    "half_window": 2,
    "location_length": 4,
    "d_ff": 12,
    "num_layers": 2,
    "transition_depth": 3,
    "num_heads": 2,
    "dropout": 0.0,
    "filters": [3, 4, 5],
    "stride": 2,
    "recurrent_dropout": 0.0,
}
OF_ATTENTION = {"dim": 5, "filters": 3, "half_width": 2}


@cache
def model_config(name: str, *overrides: str, config_dir: Path | None = None) -> DictConfig:
    """The node ``model`` of ``model=name``, with small sizes; ``config_dir`` adds configs."""
    outside = [] if config_dir is None else [f"hydra.searchpath=[file://{config_dir.absolute()}]"]
    base = ["train", f"model={name}"] if overrides or outside else [f"model/{name}"]  # takes a third of the time
    model: DictConfig = composed(*base, *overrides, *outside).model
    shrink(model)
    return model


def shrink(node: DictConfig, sizes: Mapping[str, Any] = SMALL) -> None:
    """Sets the options with these names in a model's config and in its parts' configs."""
    for key, value in node.items():
        if isinstance(value, DictConfig):
            shrink(value, SMALL | OF_ATTENTION if key == "attention" else SMALL)
        elif key in sizes and value is not None:
            node[key] = sizes[str(key)]


def small_model(name: str, *overrides: str, config_dir: Path | None = None, seed: int = 0) -> Seq2Seq:
    """Makes the model of ``model_config`` with ``random_model``."""
    return random_model(model_config(name, *overrides, config_dir=config_dir), seed=seed)


def random_model(config: DictConfig, *, seed: int = 0) -> Seq2Seq:
    """Makes a model in float64 and evaluation mode, with random weights everywhere: zeros would hide a missing bias."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model: Seq2Seq = build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
        if (feature_dim := model.encoder.description.feature_dim) is not None:
            read_tokens_as_features(model.encoder, feature_dim)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape))
    count(model)
    return model.double().eval()


def example_batch() -> Batch:
    """Three pairs of random sentences of different lengths."""
    rng = np.random.default_rng(0)
    lengths = ((5, 3), (2, 6), (7, 4))
    src, tgt = ([rng.integers(len(SPECIALS), SRC_VOCAB, size) for size in side] for side in zip(*lengths, strict=True))
    return Batch(pad(src), pad(tgt, bos=True))


def read_tokens_as_features(encoder: Encoder, feature_dim: int) -> None:
    """Makes an encoder of feature vectors read token ids as vectors, so that the contract applies to it."""
    encoder.description = encoder.description._replace(feature_dim=None)
    table = torch.from_numpy(feature_table(feature_dim))
    encoder.register_buffer("table", table, persistent=False)
    encoder.register_forward_pre_hook(lambda module, sources: (*sources, module.table[sources[0]]))


def feature_table(dim: int) -> NDArray[np.float64]:
    """A vector for each token, ``[vocab, dim]``."""
    return np.random.default_rng(0).standard_normal((SRC_VOCAB, dim))


def count(model: Seq2Seq) -> None:
    """Counts the n-grams of a random text if the model is a counted one."""
    if isinstance(model.decoder, CountedDecoder):
        model.decoder.count_ngrams(lambda: [together(counted_text(model.tgt_vocab_size))])


def together(sentences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """The ids of all sentences, concatenated, and their lengths."""
    ids = torch.tensor([token for ids in sentences for token in ids], dtype=torch.int64)
    return ids, torch.tensor([len(ids) for ids in sentences])


def counted_text(vocab_size: int) -> list[list[int]]:
    """Random sentences, in which some tokens are much more frequent than others, and some n-grams do not occur."""
    rng = np.random.default_rng(vocab_size)
    tokens, chances = np.arange(len(SPECIALS), vocab_size), 1 / np.arange(1, vocab_size - len(SPECIALS) + 1)
    return [rng.choice(tokens, rng.integers(0, 9), p=chances / chances.sum()).tolist() for _ in range(300)]
