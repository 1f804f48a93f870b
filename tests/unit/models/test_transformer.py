"""The Transformer's layers against Vaswani et al. 2017, written out in NumPy."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings, sinusoids
from softsearch.models.transformer import EncoderLayer, TransformerDecoder, TransformerEncoder
from tests.unit.models.test_attention import D_MODEL, HEADS, normal, paper_multi_head

Array = NDArray[np.float64]
D_FF = 12


def layer_norm(norm: nn.LayerNorm, x: Array) -> Array:
    """Ba et al. 2016, over the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + norm.eps)
    result: Array = scaled * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    return result


def feed_forward(block: nn.Sequential, x: Array) -> Array:
    """Section 3.3."""
    W_1, b_1, W_2, b_2 = (parameter.detach().numpy() for parameter in block.parameters())
    result: Array = np.maximum(0, x @ W_1.T + b_1) @ W_2.T + b_2
    return result


@pytest.mark.parametrize("pre_norm", [False, True])
def test_encoder_layer_equals_the_paper(pre_norm: bool) -> None:
    torch.manual_seed(0)
    layer = EncoderLayer(D_MODEL, D_FF, HEADS, 0.0, pre_norm=pre_norm).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    x, real = normal(1, 5, D_MODEL, seed=1), torch.tensor([[True, True, True, False, False]])
    found = layer(x, real[:, None, None])[0, :3].detach().numpy()
    first, second = (residual.norm for residual in layer.residuals)
    seen = np.ones((3, 3), dtype=bool)
    y = x[0, :3].numpy()
    if pre_norm:  # Xiong et al. 2020, figure 1 (b)
        normed = layer_norm(first, y)
        y = y + paper_multi_head(layer.attention, normed, normed, seen)[0]
        y = y + feed_forward(layer.feed_forward, layer_norm(second, y))
    else:  # Vaswani et al. 2017, section 3.1: LayerNorm(x + Sublayer(x))
        y = layer_norm(first, y + paper_multi_head(layer.attention, y, y, seen)[0])
        y = layer_norm(second, y + feed_forward(layer.feed_forward, y))
    np.testing.assert_allclose(found, y, atol=1e-11)


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
            final_dims=(),
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
        final_dims=(),
        num_layers=3,
        d_ff=D_FF,
        num_heads=HEADS,
    )
    src: Tensor = torch.tensor([[4, 5, 3], [6, 3, 0]])
    state = decoder.init_state(encoder(src, src != 0))
    for length in range(3):
        assert [tuple(cache.shape) for cache in state.cache] == [(2, HEADS, length, D_MODEL // HEADS)] * 6
        state = decoder.step(torch.tensor([4, 5]), state).state
