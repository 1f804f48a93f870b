"""The decoder of Luong et al. 2015 against its equations, written out in NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.cells import LSTMCell
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderOutput
from softsearch.models.luong import LuongDecoder
from tests.unit.models.test_cells import paper_lstm
from tests.unit.models.test_luong_attention import paper_attention

Array = NDArray[np.float64]
LENGTHS = (4, 2, 5)
INPUT, HIDDEN, MEMORY, LAYERS, VOCAB = 3, 4, 6, 2, 11
TOKENS = torch.tensor([[4, 9], [5, 7], [6, 6]])


def make_decoder(**options: Any) -> LuongDecoder:
    torch.manual_seed(0)
    parts = Embeddings(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, dim=INPUT)
    sizes: dict[str, Any] = {"final_dims": (HIDDEN,) * 2 * LAYERS, "num_layers": LAYERS, "half_window": 2, **options}
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
    final = tuple(normal(len(LENGTHS), HIDDEN, seed=seed) for seed in range(2 * LAYERS))
    return EncoderOutput(normal(*mask.shape, MEMORY, seed=9), mask, final)


def paper_run(decoder: LuongDecoder, tokens: list[int], states: list[Array], annotations: Array) -> list[Array]:
    """Logits of one sentence after each token read; ``states`` are h and c of each layer, [1, hidden]."""
    weight = {name: parameter.detach().numpy() for name, parameter in decoder.named_parameters()}
    layers: list[Any] = [layer.cells[0] for layer in decoder.layers]  # type: ignore[index]
    if decoder.feed is not None:
        layers[0] = joined(layers[0], decoder.feed)
    fed, logits = np.zeros(HIDDEN), []
    for t, token in enumerate(tokens):
        x = weight["embedding.weight"][token]
        x = x if decoder.feed is None else np.concatenate((x, fed))  # section 3.3
        for i, layer in enumerate(layers):
            states[2 * i], states[2 * i + 1] = paper_lstm(layer, x[None], states[2 * i], states[2 * i + 1])
            x = states[2 * i][0]
        context, _ = paper_attention(decoder.attention, x, annotations, t)
        fed = np.tanh(weight["combine.weight"] @ np.concatenate((context, x)))  # equation 5
        logits.append(weight["output.weight"] @ fed + weight["output.bias"])  # equation 6
    return logits


def joined(cell: LSTMCell, feed: nn.Linear) -> LSTMCell:
    """The same cell with one matrix for [E y; h~]."""
    both = LSTMCell(INPUT + HIDDEN, HIDDEN).double()
    with torch.no_grad():
        both.input.weight.copy_(torch.cat((cell.input.weight, feed.weight), dim=1))
        both.input.bias.copy_(cell.input.bias)
        both.recurrent.copy_(cell.recurrent)
    return both


@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("window", ["global", "local-m", "local-p"])
def test_equals_the_paper(encoded: EncoderOutput, window: str, input_feeding: bool) -> None:
    decoder = make_decoder(window=window, input_feeding=input_feeding)
    state = decoder.init_state(encoded)
    at_once = decoder(TOKENS, state)
    stepped = []
    for tokens in TOKENS.unbind(1):
        output = decoder.step(tokens, state)
        stepped.append(output.logits)
        state = output.state
    for row, length in enumerate(LENGTHS):
        starts = [final[row : row + 1].numpy() for final in encoded.final]
        expected = paper_run(decoder, TOKENS[row].tolist(), starts, encoded.states[row, :length].numpy())
        np.testing.assert_allclose(at_once[row].detach(), expected, atol=1e-11)
        np.testing.assert_allclose(torch.stack(stepped, dim=1)[row].detach(), expected, atol=1e-11)


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
    decoder = make_decoder(final_dims=(HIDDEN // 2,) * 4 * LAYERS)
    final = tuple(normal(len(LENGTHS), HIDDEN // 2, seed=seed) for seed in range(4 * LAYERS))
    cache = decoder.init_state(encoded._replace(final=final)).cache
    for layer in range(LAYERS):
        ahead_h, ahead_c, back_h, back_c = final[4 * layer : 4 * layer + 4]
        assert torch.equal(cache[2 * layer], torch.cat((ahead_h, back_h), dim=1))
        assert torch.equal(cache[2 * layer + 1], torch.cat((ahead_c, back_c), dim=1))


def test_an_encoder_of_another_shape_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"8 last states with 32 units.*num_layers"):
        make_decoder(final_dims=(HIDDEN,) * 4 * LAYERS)


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
