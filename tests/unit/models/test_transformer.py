"""The Transformer's widths, ends and cache; tests/contract/test_transcriptions.py has its equations."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderDescription, EncoderOutput
from softsearch.models.positions import sinusoids
from softsearch.models.ssru import SSRU
from softsearch.models.transformer import TransformerDecoder, TransformerEncoder
from tests.unit.models.test_attention import D_MODEL, HEADS

SIZES: dict[str, Any] = {"d_ff": 12, "num_heads": HEADS}


def test_embeddings_are_scaled_and_know_their_position() -> None:
    embedding = nn.Embedding(9, D_MODEL)
    encoder = TransformerEncoder(embedding=embedding, num_layers=0, pre_norm=False, **SIZES)
    tokens = torch.tensor([[4, 5, 4]])
    states = encoder(tokens, torch.ones(1, 3, dtype=torch.bool)).states[0]
    for position, token in enumerate(tokens[0]):
        expected = embedding(token) * math.sqrt(D_MODEL) + sinusoids(torch.tensor(position), D_MODEL)
        torch.testing.assert_close(states[position], expected)


def test_a_pre_norm_stack_ends_with_a_norm() -> None:
    encoder = TransformerEncoder(embedding=nn.Embedding(9, D_MODEL), num_layers=2, **SIZES)
    states = encoder(torch.tensor([[4, 5, 3]]), torch.ones(1, 3, dtype=torch.bool)).states
    torch.testing.assert_close(states.mean(-1), torch.zeros(1, 3), atol=1e-5, rtol=0)
    torch.testing.assert_close(states.var(-1, unbiased=False), torch.ones(1, 3), atol=1e-3, rtol=0)


@pytest.mark.parametrize(("dim", "heads"), [(8, 3), (6, 2), (7, 1)])
def test_width_must_divide_into_even_heads(dim: int, heads: int) -> None:
    message = f"dim={dim} with num_heads={heads}: expected an even width for each head"
    embeddings, sizes = Embeddings(src_vocab_size=9, tgt_vocab_size=9, dim=dim), {**SIZES, "num_heads": heads}
    with pytest.raises(ConfigError, match=message):
        TransformerEncoder(embedding=embeddings.src, num_layers=1, **sizes)
    with pytest.raises(ConfigError, match=message):
        TransformerDecoder(embeddings=embeddings, encoder=EncoderDescription(dim), num_layers=1, **sizes)


def test_decoder_needs_memory_of_its_width() -> None:
    embeddings = Embeddings(src_vocab_size=9, tgt_vocab_size=9, dim=D_MODEL)
    with pytest.raises(ConfigError, match=f"the encoder's states have 10 units, expected .*={D_MODEL}"):
        TransformerDecoder(embeddings=embeddings, encoder=EncoderDescription(10), num_layers=1, **SIZES)


@pytest.mark.parametrize("kind", ["attention", "ssru"])
def test_a_step_fills_a_slot_for_each_row_or_keeps_the_size_of_the_cache(kind: Any) -> None:
    embeddings = Embeddings(src_vocab_size=9, tgt_vocab_size=9, dim=D_MODEL)
    options = SIZES | {"num_layers": 3, "self_attention": kind}
    decoder = TransformerDecoder(embeddings=embeddings, encoder=EncoderDescription(D_MODEL), **options)
    state = decoder.init_state(EncoderOutput(torch.zeros(2, 3, D_MODEL), torch.ones(2, 3, dtype=torch.bool), ()))
    state = state.select(torch.tensor([0, 0, 1, 1]))
    for slots in (0, 2, 4):
        assert [tuple(s.shape) for s in state.slots] == [(2, HEADS, slots, D_MODEL // HEADS)] * 6 * (kind != "ssru")
        assert [tuple(c.shape) for c in state.cache] == ([(4, D_MODEL)] * 3 if kind == "ssru" else [(4, slots)])
        state = decoder.step(torch.tensor([4, 5, 4, 5]), state).state.select(torch.tensor([1, 1, 2, 3]))


def test_an_ssru_keeps_the_precision_of_its_state_under_autocast() -> None:
    ssru = SSRU(D_MODEL)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, past = ssru.step(torch.randn(2, D_MODEL), ssru.start(torch.zeros(2, 1, D_MODEL)), None)
    assert {y.dtype, past[0].dtype} == {torch.float32}
