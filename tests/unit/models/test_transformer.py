"""The Transformer's widths, ends and cache; tests/contract/test_transcriptions.py has its equations."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings, sinusoids
from softsearch.models.transformer import TransformerDecoder, TransformerEncoder
from tests.unit.models.test_attention import D_MODEL, HEADS

Array = NDArray[np.float64]
D_FF = 12


def test_embeddings_are_scaled_and_know_their_position() -> None:
    embedding = nn.Embedding(9, D_MODEL)
    encoder = TransformerEncoder(embedding=embedding, num_layers=0, d_ff=D_FF, num_heads=HEADS, pre_norm=False)
    tokens = torch.tensor([[4, 5, 4]])
    found = encoder(tokens, torch.ones(1, 3, dtype=torch.bool)).states[0]
    for position, token in enumerate(tokens[0]):
        expected = embedding(token) * math.sqrt(D_MODEL) + sinusoids(torch.tensor(position), D_MODEL)
        torch.testing.assert_close(found[position], expected)


def test_a_pre_norm_stack_ends_with_a_norm() -> None:
    encoder = TransformerEncoder(embedding=nn.Embedding(9, D_MODEL), num_layers=2, d_ff=D_FF, num_heads=HEADS)
    states = encoder(torch.tensor([[4, 5, 3]]), torch.ones(1, 3, dtype=torch.bool)).states
    torch.testing.assert_close(states.mean(-1), torch.zeros(1, 3), atol=1e-5, rtol=0)
    torch.testing.assert_close(states.var(-1, unbiased=False), torch.ones(1, 3), atol=1e-3, rtol=0)


@pytest.mark.parametrize(("dim", "heads"), [(8, 3), (6, 2), (7, 1)])
def test_width_must_divide_into_even_heads(dim: int, heads: int) -> None:
    with pytest.raises(ConfigError, match=f"dim={dim} with num_heads={heads}: expected an even width for each head"):
        TransformerEncoder(embedding=nn.Embedding(9, dim), num_layers=1, d_ff=D_FF, num_heads=heads)


def test_decoder_needs_memory_of_its_width() -> None:
    parts = Embeddings(src_vocab_size=9, tgt_vocab_size=9, dim=D_MODEL)
    with pytest.raises(ConfigError, match=f"the encoder's states have 10 units, expected .*={D_MODEL}"):
        TransformerDecoder(
            embedding=parts.tgt,
            make_output=parts.make_output,
            memory_dim=10,
            final_shapes=(),
            num_layers=1,
            d_ff=D_FF,
            num_heads=HEADS,
        )


def test_cache_grows_by_one_position_a_step() -> None:
    parts = Embeddings(src_vocab_size=9, tgt_vocab_size=9, dim=D_MODEL)
    encoder = TransformerEncoder(embedding=parts.src, num_layers=1, d_ff=D_FF, num_heads=HEADS)
    decoder = TransformerDecoder(
        embedding=parts.tgt,
        make_output=parts.make_output,
        memory_dim=D_MODEL,
        final_shapes=(),
        num_layers=3,
        d_ff=D_FF,
        num_heads=HEADS,
    )
    src: Tensor = torch.tensor([[4, 5, 3], [6, 3, 0]])
    state = decoder.init_state(encoder(src, src != 0))
    for length in range(3):
        assert [tuple(cache.shape) for cache in state.cache] == [(2, HEADS, length, D_MODEL // HEADS)] * 6
        state = decoder.step(torch.tensor([4, 5]), state).state
