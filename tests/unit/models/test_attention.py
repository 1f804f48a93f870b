"""Attention against the papers' equations, written out in NumPy."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from softsearch.models.attention import AdditiveAttention, LocationAttention, masked_softmax
from softsearch.models.interface import Memory
from softsearch.models.multi_head import MultiHeadAttention, mask_bias
from tests.support.transcriptions.equations import Array, Weights, additive_attention, softmax

SENTENCES, BEAMS, SRC_LEN = 2, 3, 5
QUERY, MEMORY, DIM = 4, 6, 7
D_MODEL, HEADS = 8, 2
POSITION = torch.zeros(SENTENCES, BEAMS, dtype=torch.int64)


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def mask() -> Tensor:
    return torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


@pytest.fixture
def additive() -> AdditiveAttention:
    torch.manual_seed(0)
    attention = AdditiveAttention(QUERY, MEMORY, dim=DIM).double()
    nn.init.normal_(attention.memory_projection.bias)
    return attention


@pytest.fixture
def multi_head() -> MultiHeadAttention:
    torch.manual_seed(0)
    attention = MultiHeadAttention(D_MODEL, HEADS).double()
    for bias in (
        attention.query_projection.bias,
        attention.key_value_projection.bias,
        attention.output_projection.bias,
    ):
        nn.init.normal_(bias)
    return attention


def test_additive_equals_the_paper(additive: AdditiveAttention, mask: Tensor) -> None:
    query, states = normal(SENTENCES, BEAMS, QUERY, seed=1), normal(SENTENCES, SRC_LEN, MEMORY, seed=2)
    attended = additive(query, Memory(states, mask, additive.project(states)), POSITION)
    query, contexts = query.flatten(0, 1), (attended.weights @ states).flatten(0, 1)
    alignments = attended.alignments.flatten(0, 1)
    own = Weights({name: parameter.detach().numpy() for name, parameter in additive.named_parameters()})
    for row in range(SENTENCES * BEAMS):
        sentence = row // BEAMS
        real = int(mask[sentence].sum())
        h = list(states[sentence, :real].numpy())
        context, alpha = additive_attention(own, {"attention": {"class": ""}}, query[row].numpy(), h, None)
        np.testing.assert_allclose(contexts[row].detach().numpy(), context, atol=1e-12)
        np.testing.assert_allclose(alignments[row, :real].detach().numpy(), alpha, atol=1e-12)
        assert alignments[row, real:].tolist() == [0.0] * (SRC_LEN - real)


def test_additive_gradients(additive: AdditiveAttention, mask: Tensor) -> None:
    query = normal(SENTENCES, BEAMS, QUERY, seed=1).requires_grad_()
    states = normal(SENTENCES, SRC_LEN, MEMORY, seed=2).requires_grad_()
    names, weights = zip(*additive.named_parameters(), strict=True)

    def attend(query: Tensor, states: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        parameters = dict(zip(names, weights, strict=True))
        projected = torch.nn.functional.linear(
            states, parameters["memory_projection.weight"], parameters["memory_projection.bias"]
        )
        memory = Memory(states, mask, (projected,))
        found: tuple[Tensor, ...] = torch.func.functional_call(additive, parameters, (query, memory, POSITION))
        return found[:2]

    assert torch.autograd.gradcheck(attend, (query, states, *weights))


def test_attention_by_location_moves_on_whatever_it_reads(mask: Tensor) -> None:
    attention = LocationAttention(QUERY, MEMORY, dim=1, filters=1, half_width=1).double()
    filters, projection = attention.location_filters.weight, attention.location_projection
    with torch.no_grad():  # e_ij = 50 tanh(alpha_{i-1,j-1})
        for parameter, values in (
            (attention.query_projection.weight, [[0.0] * QUERY]),
            (filters, [[[1.0, 0.0, 0.0]]]),
            (projection.weight, [[1.0]]),
            (projection.bias, [0.0]),
            (attention.energy_weight, [50.0]),
        ):
            parameter.copy_(torch.tensor(values))
    before, seen = attention.start(mask), []
    assert before[0].tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]] * SENTENCES
    for step in range(3):
        states = normal(SENTENCES, SRC_LEN, MEMORY, seed=step)
        memory = Memory(states, mask, attention.project(states))
        before = attention(normal(SENTENCES, 1, QUERY, seed=step), memory, POSITION[:, :1], before).state
        seen.append(before[0].argmax(-1).tolist())
    assert seen[:2] == [[1, 1], [2, 2]]
    assert seen[2][0] == 3
    torch.testing.assert_close(before[0][1, :3], torch.full((3,), 1 / 3, dtype=torch.float64))  # nothing was left


def test_attention_by_location_reads_the_state_and_not_the_annotations(mask: Tensor) -> None:
    """Chorowski et al. 2015, section 2.1: alpha_i = Attend(s_{i-1}, alpha_{i-1})."""
    torch.manual_seed(0)
    attention = LocationAttention(QUERY, MEMORY, dim=DIM).double()

    def attend(query: int, states: int) -> Tensor:
        memory = Memory(normal(SENTENCES, SRC_LEN, MEMORY, seed=states), mask, ())
        now, before = normal(SENTENCES, 1, QUERY, seed=query), attention.start(mask)
        alignments: Tensor = attention(now, memory, POSITION[:, :1], before).alignments
        return alignments

    assert torch.equal(attend(1, 2), attend(1, 3))
    assert (attend(1, 2) - attend(4, 2)).abs().max() > 1e-3


@pytest.mark.parametrize("length", [1, 15, 16])
def test_masked_softmax_of_short_and_long_rows(length: int) -> None:
    generator = torch.Generator().manual_seed(length)
    energies = torch.randn(2, 3, length, dtype=torch.float64, generator=generator, requires_grad=True)
    mask = torch.rand(2, 1, length, generator=generator) < 0.5
    mask[..., 0] = True
    weights = torch.randn(2, 3, length, dtype=torch.float64, generator=generator)
    expected = energies.masked_fill(~mask, -math.inf).softmax(-1)
    found = masked_softmax(energies, mask)
    torch.testing.assert_close(found, expected)
    (wanted,) = torch.autograd.grad((expected * weights).sum(), energies)
    torch.testing.assert_close(torch.autograd.grad((found * weights).sum(), energies)[0], wanted)


def test_masked_softmax_survives_huge_energies() -> None:
    energies = torch.tensor([[3e38, 3e38, -3e38]], dtype=torch.float32)
    mask = torch.tensor([[True, True, False]])
    assert masked_softmax(energies, mask).tolist() == [[0.5, 0.5, 0.0]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_masks_have_no_overflow_in_any_precision(dtype: torch.dtype) -> None:
    energies, mask = torch.full((1, 4), -4.0, dtype=dtype), torch.tensor([[True, True, False, False]])
    assert masked_softmax(energies, mask).tolist() == [[0.5, 0.5, 0.0, 0.0]]
    assert (energies + mask_bias(mask).to(dtype)).softmax(-1).tolist() == [[0.5, 0.5, 0.0, 0.0]]


def paper_multi_head(attention: MultiHeadAttention, x: Array, memory: Array, mask: Array) -> tuple[Array, Array]:
    """Vaswani et al. 2017, section 3.2, for one sentence: ``x`` [len, d], ``memory`` [keys, d], mask [len, keys]."""
    W_q, W_o = attention.query_projection.weight.detach().numpy(), attention.output_projection.weight.detach().numpy()
    W_k, W_v = np.split(attention.key_value_projection.weight.detach().numpy(), 2)
    b_k, b_v = np.split(attention.key_value_projection.bias.detach().numpy(), 2)
    b_q, b_o = attention.query_projection.bias.detach().numpy(), attention.output_projection.bias.detach().numpy()
    d_k = D_MODEL // HEADS
    heads, weights = [], []
    for i in range(HEADS):
        columns = slice(i * d_k, (i + 1) * d_k)
        Q, K, V = (x @ W_q.T + b_q)[:, columns], (memory @ W_k.T + b_k)[:, columns], (memory @ W_v.T + b_v)[:, columns]
        energies = np.where(mask, Q @ K.T / math.sqrt(d_k), -np.inf)
        weights.append(np.array([softmax(row) for row in energies]))
        heads.append(weights[-1] @ V)
    return np.concatenate(heads, axis=1) @ W_o.T + b_o, np.mean(weights, axis=0)


def test_multi_head_equals_the_paper(multi_head: MultiHeadAttention, mask: Tensor) -> None:
    x, memory = normal(SENTENCES, 4, D_MODEL, seed=1), normal(SENTENCES, SRC_LEN, D_MODEL, seed=2)
    keys, values = multi_head.keys_values(memory, SENTENCES)
    found = multi_head(x, keys, values, mask[:, None, None])
    queries = multi_head.queries(x.flatten(0, 1), SENTENCES)
    written_out, weights = multi_head.with_weights(queries, keys, values, mask_bias(mask)[:, None, None])
    for sentence in range(SENTENCES):
        seen = np.broadcast_to(mask[sentence].numpy(), (4, SRC_LEN))
        expected, alpha = paper_multi_head(multi_head, x[sentence].numpy(), memory[sentence].numpy(), seen)
        np.testing.assert_allclose(found[sentence].detach().numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(written_out.view(x.shape)[sentence].detach().numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(weights[sentence].mean(0).detach().numpy(), alpha, atol=1e-12)


def test_causal_attention_sees_the_past_and_itself(multi_head: MultiHeadAttention) -> None:
    x = normal(1, SRC_LEN, D_MODEL, seed=1)
    found = multi_head(x, *multi_head.keys_values(x, 1), causal=True)
    expected, _ = paper_multi_head(multi_head, x[0].numpy(), x[0].numpy(), np.tri(SRC_LEN, dtype=bool))
    np.testing.assert_allclose(found[0].detach().numpy(), expected, atol=1e-12)


def test_no_mask_sees_everything(multi_head: MultiHeadAttention) -> None:
    x, memory = normal(1, 2, D_MODEL, seed=1), normal(1, SRC_LEN, D_MODEL, seed=2)
    found = multi_head(x, *multi_head.keys_values(memory, 1))
    expected, _ = paper_multi_head(multi_head, x[0].numpy(), memory[0].numpy(), np.ones((2, SRC_LEN), dtype=bool))
    np.testing.assert_allclose(found[0].detach().numpy(), expected, atol=1e-12)
