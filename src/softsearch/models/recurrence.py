"""A recurrent layer over time, in one direction or in both, over a padded batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from softsearch.models.cells import Cell, ElmanCell, GRUCell, LSTMCell, State
from softsearch.models.interface import FinalState
from softsearch.models.loop_weights import one_gradient_per_matrix

_KERNELS: dict[type[Cell], Any] = {ElmanCell: torch.rnn_tanh, LSTMCell: torch.lstm, GRUCell: torch.gru}
# Added to the gates at padding, in the order of the kernel's blocks, so that the state stays: an LSTM's i, f, g, o and
# a GRU's r, z, candidate. An Elman cell has no gates.
_STAY: dict[type[Cell], tuple[float, ...]] = {LSTMCell: (-1e4, 1e4, 0, 0), GRUCell: (0, 1e4, 0)}
_ALIGNED = 8  # matrix products on a GPU are fastest if their width is a multiple of this


class RecurrenceOutput(NamedTuple):
    """The output of a layer for a batch."""

    states: Tensor  # [batch, len, directions * hidden_dim], undefined at padding
    final: FinalState


class Loop(nn.Module):
    """Runs a cell over time; a module, so that the cell can be called with other weights."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, inputs: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        """The outputs h of all steps, and the last state; see ``Cell.advance``, with time on a first axis."""
        reals = [None] * len(inputs) if real is None else real.unbind(0)
        outputs = []
        for step_input, step_real in zip(inputs.unbind(0), reals, strict=True):
            state = self.cell.advance(step_input, state, step_real)
            outputs.append(state[0])
        return torch.stack(outputs), state


class Recurrence(nn.Module):
    """One layer, ``hidden_dim`` units in each direction: PyTorch's kernels where they compute the cell, else a loop.

    ``cell`` is called with ``input_dim`` and ``hidden_dim``, and returns the ``Cell`` of a direction.
    """

    loop: type[Loop] = Loop  # the export has another

    def __init__(
        self, cell: Callable[..., Cell], input_dim: int, hidden_dim: int, *, bidirectional: bool = False
    ) -> None:
        super().__init__()
        self.forward_cell = cell(input_dim, hidden_dim)
        self.backward_cell = cell(input_dim, hidden_dim) if bidirectional else None

    @property
    def cells(self) -> list[Cell]:
        """One cell for each direction."""
        return [self.forward_cell] if self.backward_cell is None else [self.forward_cell, self.backward_cell]

    def forward(self, x: Tensor, mask: Tensor | None = None, initial: State | None = None) -> RecurrenceOutput:
        """Reads ``x`` ``[batch, len, input_dim]``.

        ``mask`` is ``[batch, len]``, True = real token, with padding on the right; by default all are real. ``initial``
        is the state before the first token of a layer with one direction, see ``Cell.start_from``; zeros by
        default.
        """
        cell = self.forward_cell
        resets_before = isinstance(cell, GRUCell) and cell.reset == "before"
        has_kernel = type(cell) in _KERNELS and not resets_before and cell.is_plain and not cell.drops_state
        has_kernel = has_kernel and (mask is None or type(cell) in _STAY)
        return self._kernel(x, mask, initial) if has_kernel else self._loop(x, mask, initial)

    def _loop(self, x: Tensor, mask: Tensor | None, initial: State | None) -> RecurrenceOutput:
        """Both directions in one loop: the first direction's cell, with the weights of both on a new first axis."""
        cells, x = self.cells, x.transpose(0, 1)  # [len, batch, input_dim]
        if initial is None:
            bias = cells[0].input_projection.bias
            state = cells[0].start_from(bias.new_zeros(len(cells), x.shape[1], cells[0].hidden_dim))
        else:
            state = tuple(s[None] for s in initial)
        dropped = (cell.drop_input(x, tuple(s[i] for s in state)) for i, cell in enumerate(cells))
        products = [cell.normalized(cell.input_projection(own)) for cell, own in zip(cells, dropped, strict=True)]
        inputs = torch.stack(_in_own_time(products), dim=1)  # [len, directions, batch, blocks * hidden_dim]
        real = None
        if mask is not None:
            real = torch.stack(_in_own_time([mask.T[..., None]] * len(cells)), dim=1)
        with one_gradient_per_matrix():
            states, last = functional_call(self.loop(cells[0]), self.loop_weights(), (inputs, state, real))
        directions = _in_own_time(list(states.unbind(1)))  # [len, batch, hidden_dim] each
        final = FinalState(*zip(*(s.unbind(0) for s in last[: cells[0].num_states]), strict=True))
        return RecurrenceOutput(torch.cat(directions, dim=-1).transpose(0, 1), final)

    def loop_weights(self) -> dict[str, Tensor]:
        """The cells' weights except those of their inputs, stacked, under the names of ``Loop``."""
        named = [dict(cell.named_parameters()) for cell in self.cells]
        return {
            f"cell.{name}": torch.stack([p[name] if p[name].dim() > 1 else p[name][None] for p in named])
            for name in named[0]
            if not name.startswith(("input_projection.", "input_norms."))
        }

    def _kernel(self, x: Tensor, mask: Tensor | None, initial: State | None) -> RecurrenceOutput:
        cells, cell = self.cells, self.forward_cell
        kernel = _KERNELS[type(cell)]
        # In full precision under autocast too: a kernel keeps the state in the dtype of its products.
        with torch.autocast(x.device.type, enabled=False):
            weights = [weight for c in cells for weight in c.kernel_weights()]
            x = x.to(weights[0].dtype)
            zeros = x.new_zeros(len(cells), x.shape[0], cell.hidden_dim)
            state = [zeros] * cell.num_states if initial is None else [s.to(x.dtype)[None] for s in initial]
            options = (True, 1, 0.0, torch.is_grad_enabled(), len(cells) == 2)  # biases, layers, dropout, ...
            if mask is None:
                states, *last = kernel(x, _one_or_list(state), weights, *options, True)
            else:
                states, last = _padded(kernel, x, mask, state, weights, options, _STAY[type(cell)])
        return RecurrenceOutput(states, FinalState(*zip(*(s.unbind(0) for s in last), strict=True)))


def _in_own_time(directions: list[Tensor]) -> list[Tensor]:
    """Reverses the tensors of the second direction, if there is one, in time (axis 0)."""
    return [directions[0], *(tensor.flip(0) for tensor in directions[1:])]


def _padded(
    kernel: Any,
    x: Tensor,
    mask: Tensor,
    state: list[Tensor],
    weights: list[Tensor],
    options: tuple[Any, ...],
    stay: tuple[float, ...],
) -> tuple[Tensor, list[Tensor]]:
    """Runs a kernel over all tokens: faster than packed sequences, and on a GPU it need not wait for lengths.

    An extra input, 1 at padding, closes and opens gates with the weights ``stay``.
    """
    hidden_dim = state[0].shape[-1]
    padding = (~mask[..., None]).to(x.dtype)
    x = torch.cat((x, functional.pad(padding, (0, _ALIGNED - 1))), dim=-1)
    blocks = [weights[0].new_full((hidden_dim, 1), value) for value in stay]
    column = functional.pad(torch.cat(blocks), (0, _ALIGNED - 1))  # [blocks * hidden_dim, _ALIGNED]
    # Four for each direction, those of the input first.
    weights = [w if i % 4 else torch.cat((w, column), dim=1) for i, w in enumerate(weights)]
    states, *last = kernel(x, _one_or_list(state), weights, *options, True)
    # At padding an LSTM's c stays, but its output does not: the last real one is taken.
    end = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, hidden_dim)
    h = states[..., :hidden_dim].gather(1, end)[:, 0]
    return states, [torch.stack((h, *last[0][1:].unbind(0))), *last[1:]]


def _one_or_list(state: list[Tensor]) -> Tensor | list[Tensor]:
    return state if len(state) > 1 else state[0]
