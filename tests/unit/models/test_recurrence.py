"""Recurrent layers against their cells, step by step, sentence by sentence."""

from functools import partial
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from softsearch.models.cells import Cell, ElmanCell, GRUCell, InputForgetCell, LSTMCell, Reset
from softsearch.models.recurrence import Recurrence

LENGTHS = (4, 2, 5)
INPUT, HIDDEN = 3, 4
CELLS: dict[str, type[Cell]] = {"rnn": ElmanCell, "lstm": LSTMCell, "gru": GRUCell, "input_forget": InputForgetCell}
KINDS = [("rnn", "before"), ("lstm", "before"), ("gru", "before"), ("gru", "after"), ("input_forget", "before")]


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def make(kind: Any, reset: Reset, *, bidirectional: bool, **options: Any) -> Recurrence:
    torch.manual_seed(0)
    options |= {"reset": reset} if kind == "gru" else {}
    layer = Recurrence(partial(CELLS[kind], **options), INPUT, HIDDEN, bidirectional=bidirectional).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def scan(cell: Cell, words: Tensor, state: tuple[Tensor, ...] | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The outputs after each word, and the last state."""
    state = state or (torch.zeros(HIDDEN, dtype=torch.float64),) * cell.num_states
    outputs = []
    for word in words:
        state = cell(cell.input_projection(word), state)
        outputs.append(state[0])
    return torch.stack(outputs), state


@pytest.fixture
def x() -> Tensor:
    return normal(len(LENGTHS), max(LENGTHS), INPUT, seed=1)


@pytest.fixture
def mask() -> Tensor:
    return torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


@pytest.mark.parametrize(("kind", "reset"), KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"bidirectional": False},
        {"bidirectional": True},
        {"bidirectional": True, "layer_norm": True},
        {"bidirectional": True, "transition_depth": 3},
        {"bidirectional": True, "layer_norm": True, "transition_depth": 2},
    ],
    ids=str,
)
def test_equals_the_cells(kind: Any, reset: Reset, options: dict[str, Any], x: Tensor, mask: Tensor) -> None:
    layer = make(kind, reset, **options)
    found = layer(x, mask)
    for sentence, length in enumerate(LENGTHS):
        words = x[sentence, :length]
        outputs, last = scan(layer.forward_cell, words)
        torch.testing.assert_close(found.states[sentence, :length, :HIDDEN], outputs)
        assert_last(found.final[0], sentence, last)
        if options["bidirectional"]:
            outputs, last = scan(cast(Cell, layer.backward_cell), words.flip(0))
            torch.testing.assert_close(found.states[sentence, :length, HIDDEN:], outputs.flip(0))
            assert_last(found.final[1], sentence, last)


def assert_last(found: tuple[Tensor, ...], sentence: int, expected: tuple[Tensor, ...]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one[sentence], other)


@pytest.mark.parametrize(("kind", "reset"), KINDS)
def test_starts_from_a_given_state(kind: Any, reset: Reset, x: Tensor) -> None:
    layer = make(kind, reset, bidirectional=False)
    start = tuple(normal(len(LENGTHS), HIDDEN, seed=seed) for seed in range(layer.forward_cell.num_states))
    found = layer(x, None, start)
    for sentence in range(len(LENGTHS)):
        outputs, last = scan(layer.forward_cell, x[sentence], tuple(s[sentence] for s in start))
        torch.testing.assert_close(found.states[sentence], outputs)
        assert_last(found.final[0], sentence, last)


@pytest.mark.parametrize(("kind", "reset"), KINDS)
def test_gradients_are_those_of_the_cells(kind: Any, reset: Reset, x: Tensor, mask: Tensor) -> None:
    layer = make(kind, reset, bidirectional=False)
    weights = normal(len(LENGTHS), max(LENGTHS), HIDDEN, seed=3) * mask[..., None]
    together = torch.autograd.grad((layer(x, mask).states * weights).sum(), list(layer.parameters()))
    alone = [scan(layer.forward_cell, x[i, :length])[0] * weights[i, :length] for i, length in enumerate(LENGTHS)]
    apart = torch.autograd.grad(torch.cat(alone).sum(), list(layer.parameters()))
    for one, other in zip(together, apart, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("kind", "reset"), KINDS)
def test_states_keep_their_precision_under_autocast(kind: Any, reset: Reset, x: Tensor, mask: Tensor) -> None:
    layer = make(kind, reset, bidirectional=True).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x.bfloat16(), mask)
    assert {t.dtype for t in (found.states, *found.final[0])} == {torch.float32}


@pytest.mark.parametrize(("kind", "reset"), KINDS)
def test_one_mask_drops_input_and_state_at_all_steps_in_training_alone(
    kind: Any, reset: Reset, x: Tensor, mask: Tensor
) -> None:
    layer = make(kind, reset, bidirectional=False, recurrent_dropout=0.5)
    cell = layer.forward_cell
    plain = make(kind, reset, bidirectional=False)
    torch.testing.assert_close(layer.eval()(x, mask).states, plain(x, mask).states)
    layer.train()
    zeros = torch.zeros(len(LENGTHS), HIDDEN, dtype=torch.float64)
    torch.manual_seed(7)
    start = cell.start_from(zeros)
    keep = start[-1]
    assert len(start) == cell.num_states + 1
    assert keep.shape == (len(LENGTHS), HIDDEN + INPUT)
    assert set(keep.unique().tolist()) == {0.0, 2.0}
    torch.manual_seed(7)
    found = layer(x, mask)
    for sentence, length in enumerate(LENGTHS):
        state = tuple(s[sentence] for s in start)
        outputs, last = scan(cell, x[sentence, :length] * keep[sentence, HIDDEN:], state)
        torch.testing.assert_close(found.states[sentence, :length], outputs)
        assert torch.equal(last[-1], keep[sentence])
    assert len(found.final.forward) == cell.num_states


def test_dropped_units_of_the_state_are_in_no_product() -> None:
    layer = make("gru", "after", bidirectional=False, recurrent_dropout=0.5, transition_depth=2)
    cell = layer.forward_cell
    h = normal(1, HIDDEN, seed=4)
    word = normal(1, INPUT, seed=5)
    for unit in range(2 * HIDDEN):
        keep = torch.ones(1, 2 * HIDDEN, dtype=torch.float64)
        keep[0, unit] = 0
        without = make("gru", "after", bidirectional=False, transition_depth=2).forward_cell
        changed = cast(Any, without if unit < HIDDEN else without.transitions[0])
        with torch.no_grad():
            changed.recurrent_gate_weight[unit % HIDDEN] = 0
            changed.recurrent_candidate_weight[unit % HIDDEN] = 0
        (expected,) = without(without.input_projection(word), (h,))
        torch.testing.assert_close(cell(cell.input_projection(word), (h, keep))[0], expected)
