"""The SSRU against Kim et al. 2019, written out in NumPy, alone and in a decoder's layer."""

from typing import cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.models.embeddings import Embeddings
from softsearch.models.ssru import SSRU
from softsearch.models.transformer import DecoderLayer, Residual, TransformerDecoder, TransformerEncoder
from tests.unit.models.test_attention import D_MODEL, HEADS, normal, paper_multi_head
from tests.unit.models.test_cells import sigmoid
from tests.unit.models.test_transformer import D_FF, feed_forward, layer_norm

Array = NDArray[np.float64]


def randomised(module: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double()


@pytest.fixture
def ssru() -> SSRU:
    module = randomised(SSRU(D_MODEL))
    assert isinstance(module, SSRU)
    return module


def paper_ssru(ssru: SSRU, x: Array) -> tuple[Array, Array]:
    """h_1 ... h_n and c_n of one sentence ``[len, d_model]``."""
    W_f, W = ssru.forget.weight.detach().numpy(), ssru.input.weight.detach().numpy()
    b_f = ssru.forget.bias.detach().numpy()
    c, outputs = np.zeros(x.shape[1]), []
    for x_t in x:
        f = sigmoid(W_f @ x_t + b_f)
        c = f * c + (1 - f) * (W @ x_t)
        outputs.append(np.maximum(0, c))
    return np.array(outputs), c


def test_sequence_equals_the_paper(ssru: SSRU) -> None:
    x = normal(3, 5, D_MODEL, seed=1)
    found = ssru.sequence(x).detach().numpy()
    for row in range(3):
        np.testing.assert_allclose(found[row], paper_ssru(ssru, x[row].numpy())[0], atol=1e-12)


def test_steps_equal_the_paper(ssru: SSRU) -> None:
    x = normal(3, 5, D_MODEL, seed=1)
    past = ssru.start(x)
    for position in range(5):
        y, past = ssru.step(x[:, position : position + 1], past)
        for row in range(3):
            outputs, c = paper_ssru(ssru, x[row, : position + 1].numpy())
            np.testing.assert_allclose(y[row, 0].detach().numpy(), outputs[-1], atol=1e-12)
            np.testing.assert_allclose(past[0][row].detach().numpy(), c, atol=1e-12)


def test_gradients(ssru: SSRU) -> None:
    names = [name for name, _ in ssru.named_parameters()]

    def states(x: Tensor, *values: Tensor) -> Tensor:
        past = (x[:, 0],)
        replaced = dict(zip(names, values, strict=True))
        (_, (c,)) = torch.func.functional_call(_Step(ssru), {f"ssru.{n}": v for n, v in replaced.items()}, (x, past))
        assert isinstance(c, Tensor)
        return c  # before the ReLU, which has a kink

    inputs = (normal(2, 3, D_MODEL, seed=1), *ssru.parameters())
    assert torch.autograd.gradcheck(states, tuple(t.detach().clone().requires_grad_() for t in inputs))


class _Step(nn.Module):
    def __init__(self, ssru: SSRU) -> None:
        super().__init__()
        self.ssru = ssru

    def forward(self, x: Tensor, past: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self.ssru.step(x, past)


def test_state_stays_precise_under_autocast() -> None:
    ssru = SSRU(D_MODEL)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, past = ssru.step(torch.randn(2, 3, D_MODEL), ssru.start(torch.zeros(2, 1, D_MODEL)))
    assert {y.dtype, past[0].dtype} == {torch.float32}


@pytest.mark.parametrize("pre_norm", [False, True])
def test_layer_puts_it_where_self_attention_was(pre_norm: bool) -> None:
    layer = DecoderLayer(D_MODEL, D_FF, HEADS, 0.0, pre_norm=pre_norm, self_attention="ssru")
    randomised(layer)
    ssru, attention = layer.self_attention, layer.cross_attention
    assert isinstance(ssru, SSRU)
    x, source = normal(1, 4, D_MODEL, seed=1), normal(1, 3, D_MODEL, seed=2)
    mask = torch.ones(1, 1, 1, 3, dtype=torch.bool)
    found = layer(x, *attention.keys_values(source), mask)[0].detach().numpy()
    first, second, third = (cast(Residual, residual).norm for residual in layer.residuals)
    y, seen = x[0].numpy(), np.ones((4, 3), dtype=bool)

    def look(queries: Array) -> Array:
        return paper_multi_head(attention, queries, source[0].numpy(), seen)[0]

    if pre_norm:
        y = y + paper_ssru(ssru, layer_norm(first, y))[0]
        y = y + look(layer_norm(second, y))
        y = y + feed_forward(layer.feed_forward, layer_norm(third, y))
    else:
        y = layer_norm(first, y + paper_ssru(ssru, y)[0])
        y = layer_norm(second, y + look(y))
        y = layer_norm(third, y + feed_forward(layer.feed_forward, y))
    np.testing.assert_allclose(found, y, atol=1e-11)


def test_cache_keeps_its_size() -> None:
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
        self_attention="ssru",
    )
    src: Tensor = torch.tensor([[4, 5, 3], [6, 3, 0]])
    state = decoder.init_state(encoder(src, src != 0))
    for _ in range(3):
        assert [tuple(cache.shape) for cache in state.cache] == [(2, D_MODEL)] * 3
        state = decoder.step(torch.tensor([4, 5]), state).state
