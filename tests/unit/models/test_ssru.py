"""The SSRU against Kim et al. 2019, written out in NumPy."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.models.embeddings import Embeddings
from softsearch.models.ssru import SSRU
from softsearch.models.transformer import TransformerDecoder, TransformerEncoder
from tests.unit.models.test_attention import D_MODEL, HEADS, normal
from tests.unit.models.test_cells import sigmoid
from tests.unit.models.test_transformer import D_FF

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


def test_cache_keeps_its_size() -> None:
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
        self_attention="ssru",
    )
    src: Tensor = torch.tensor([[4, 5, 3], [6, 3, 0]])
    state = decoder.init_state(encoder(src, src != 0))
    for _ in range(3):
        assert [tuple(cache.shape) for cache in state.cache] == [(2, D_MODEL)] * 3
        state = decoder.step(torch.tensor([4, 5]), state).state
