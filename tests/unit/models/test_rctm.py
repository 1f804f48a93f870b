"""The unfolding of RCTM II: how many columns there are, and what they are made of."""

import math

import pytest
import torch

from softsearch.errors import ConfigError, InputError
from softsearch.models.embeddings import Embeddings
from softsearch.models.rctm import RCTM2Decoder
from softsearch.testing.models import SRC_VOCAB, small_model
from softsearch.text.vocabulary import BOS, EOS, PAD

LENGTHS = range(1, 41)


@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.0, 1.2, 4.0])
def test_there_is_a_column_for_each_expected_word(ratio: float) -> None:
    model = small_model("kalchbrenner2013_rctm2", f"model.decoder.length_ratio={ratio}")
    draw = torch.Generator().manual_seed(0)
    src = torch.randint(4, SRC_VOCAB, (len(LENGTHS), max(LENGTHS)), generator=draw)
    for row, length in enumerate(LENGTHS):
        src[row, length:] = PAD
    (columns,) = model.encode(src).memory.projected
    for row, length in enumerate(LENGTHS):
        expected = max(math.ceil(ratio * length), length - 3, 1)
        changes = (columns[row, 1:] - columns[row, :-1]).abs().amax(-1) > 1e-9
        assert _last(changes) + 2 == expected


def _last(changes: torch.Tensor) -> int:
    """The last change; -1 if there is none."""
    return max((i for i, changed in enumerate(changes.tolist()) if changed), default=-1)


def test_words_after_the_expected_ones_read_the_last_column() -> None:
    model = small_model("kalchbrenner2013_rctm2", "model.decoder.length_ratio=1")
    src, step = torch.tensor([[4, 5, EOS]]), torch.tensor([BOS])
    state = model.encode(src)
    at = [model.decoder.step(step, state._replace(position=torch.tensor([i]))).logits for i in range(30)]
    assert not torch.equal(at[1], at[2])
    assert all(torch.equal(logits, at[2]) for logits in at[3:])


@pytest.mark.parametrize("name", ["rnnsearch", "kalchbrenner2013"])
def test_it_needs_n_grams(name: str) -> None:
    embeddings = Embeddings(src_vocab_size=9, tgt_vocab_size=9, dim=8)
    encoder = small_model(name).encoder.description
    with pytest.raises(ConfigError, match=r"unfolds n-grams of the source, but model\.encoder has none; use"):
        RCTM2Decoder(embeddings=embeddings, encoder=encoder, hidden_dim=8)


def test_long_sources_are_refused() -> None:
    model = small_model("kalchbrenner2013_rctm2", "model.encoder.max_src_len=8")
    model.encode(torch.full((1, 8), 5))
    with pytest.raises(InputError, match="a source sentence has 9 tokens, EOS included, expected at most 8"):
        model.encode(torch.full((1, 9), 5))
