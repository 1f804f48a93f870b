"""The state of Luong et al.'s decoder; tests/contract/test_transcriptions.py has its equations."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderOutput, LastState, LastStates, LayerShape
from softsearch.models.luong import LuongDecoder

Array = NDArray[np.float64]
LENGTHS = (4, 2, 5)
INPUT, HIDDEN, MEMORY, LAYERS, VOCAB = 3, 4, 6, 2, 11
TOKENS = torch.tensor([[4, 9], [5, 7], [6, 6]])


def make_decoder(**options: Any) -> LuongDecoder:
    torch.manual_seed(0)
    parts = Embeddings(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, dim=INPUT)
    sizes: dict[str, Any] = {
        "final_shapes": (LayerShape(HIDDEN, has_c=True),) * LAYERS,
        "num_layers": LAYERS,
        "half_window": 2,
        **options,
    }
    decoder = LuongDecoder(
        embedding=parts.tgt,
        make_output=parts.make_output,
        memory_dim=MEMORY,
        cell="lstm",
        hidden_dim=HIDDEN,
        **sizes,
    ).double()
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return decoder


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def encoded() -> EncoderOutput:
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    final = tuple(LastStates(last_state(HIDDEN, seed=layer)) for layer in range(LAYERS))
    return EncoderOutput(normal(*mask.shape, MEMORY, seed=9), mask, final)


def last_state(dim: int, *, seed: int) -> LastState:
    return LastState(normal(len(LENGTHS), dim, seed=seed), normal(len(LENGTHS), dim, seed=seed + 100))


def test_the_cache_ends_with_what_is_fed(encoded: EncoderOutput) -> None:
    decoder = make_decoder()
    state = decoder.init_state(encoded)
    assert len(state.cache) == 2 * LAYERS + 1
    assert state.cache[-1].eq(0).all()
    after = decoder.step(TOKENS[:, 0], state).state
    torch.testing.assert_close(after.cache[-1], decoder.features(TOKENS, state)[:, 0])
    assert len(make_decoder(input_feeding=False).init_state(encoded).cache) == 2 * LAYERS


def test_both_directions_of_an_encoder_start_a_layer_together(encoded: EncoderOutput) -> None:
    """Each direction's h and c are half as wide; h's are joined with h's."""
    decoder = make_decoder(final_shapes=(LayerShape(HIDDEN // 2, 2, has_c=True),) * LAYERS)
    final = tuple(LastStates(last_state(HIDDEN // 2, seed=i), last_state(HIDDEN // 2, seed=i + 50)) for i in (1, 2))
    cache = decoder.init_state(encoded._replace(final=final)).cache
    for layer, (ahead, back) in enumerate(final):
        assert ahead.c is not None
        assert back is not None
        assert back.c is not None
        assert torch.equal(cache[2 * layer], torch.cat((ahead.h, back.h), dim=1))
        assert torch.equal(cache[2 * layer + 1], torch.cat((ahead.c, back.c), dim=1))


def test_an_encoder_of_another_shape_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"layers end with 4 units, 4 units, expected 4 units for .* 2 layers \(lstm\)"
    ):
        make_decoder(final_shapes=(LayerShape(HIDDEN),) * LAYERS)


@pytest.mark.parametrize("input_feeding", [True, False])
def test_gradients(encoded: EncoderOutput, input_feeding: bool) -> None:
    decoder = make_decoder(window="local-p", input_feeding=input_feeding)
    inputs = (encoded.states.requires_grad_(), *decoder.parameters())  # which gradcheck changes in place
    assert torch.autograd.gradcheck(lambda *_: decoder(TOKENS, decoder.init_state(encoded)), inputs, fast_mode=True)


def test_dropout_spares_the_recurrent_connections(encoded: EncoderOutput) -> None:
    """Of everything dropped, only the states of the first layer are left as they would be without it."""
    decoder = make_decoder(input_feeding=False)
    exact = decoder.step(TOKENS[:, 0], decoder.init_state(encoded)).state
    decoder.dropout.rate = 0.99
    torch.manual_seed(1)
    dropped = decoder.train().step(TOKENS[:, 0], decoder.init_state(encoded)).state
    assert not torch.equal(dropped.cache[0], exact.cache[0])  # E y was dropped
    embedding = decoder.embedding.weight
    with torch.no_grad():
        embedding.zero_()
    exact = decoder.eval().step(TOKENS[:, 0], decoder.init_state(encoded)).state
    dropped = decoder.train().step(TOKENS[:, 0], decoder.init_state(encoded)).state
    assert torch.equal(dropped.cache[0], exact.cache[0])
    assert not torch.equal(dropped.cache[2], exact.cache[2])  # the second layer read the first one's dropped h
