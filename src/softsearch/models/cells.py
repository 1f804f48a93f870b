"""Recurrent cells: pure functions of (input, state); what does not depend on the state is computed outside the loop.

A state is a tuple of tensors, the output h first. Under autocast the products are in bfloat16, but not the state, whose
small changes would be rounded away.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.layers import Dropout, weight_of, xavier
from softsearch.ranges import Depth, Rate

State = tuple[Tensor, ...]
Reset = Literal["before", "after"]


class Norm(nn.LayerNorm):
    """Layer normalisation (Ba et al. 2016, arXiv:1607.06450); weights of several may be stacked on a leading axis."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalises the last axis."""
        if self.weight.dim() == 1:
            return super().forward(x)
        return functional.layer_norm(x, self.normalized_shape, eps=self.eps) * self.weight + self.bias


class Cell(nn.Module):
    """A recurrent cell, whose product with the input is computed for all steps at once.

    x has ``input_dim`` units and h ``hidden_dim``; the products with both hold ``blocks`` vectors of h's width. A
    custom cell sets ``blocks``, sets ``num_states`` if its state is more than h, and defines ``update``; in YAML it
    is ``cell: {_target_: mypackage.MyCell, _partial_: true}``. All cells have:

    - ``layer_norm``: layer normalisation of W x + b and of U h, separately (Ba et al. 2016), in groups of
      ``norm_blocks`` vectors.
    - ``recurrent_dropout``: dropout on x and h in all their products (Gal & Ghahramani 2016, arXiv:1512.05287), with
      one mask each for all steps of a sequence and all blocks. In training the masks are the last tensor of the state.
    - ``transition_depth``: deep transitions (Pascanu et al. 2014; Miceli Barone et al. 2017, arXiv:1707.07631, section
      2.3): each step runs this number of cells; those after the first read only the state and have a bias in place of
      W x + b (``input_dim`` None).

    A subclass with additional options lists them in ``own_options``, and sets attributes with these names before it
    calls this constructor.
    """

    blocks: ClassVar[int]
    norm_blocks: ClassVar[tuple[int, ...]] = ()  # sizes of the groups; by default one group
    num_states: ClassVar[int] = 1  # tensors in a state, without the mask
    own_options: ClassVar[tuple[str, ...]] = ()
    input_projection: nn.Linear  # only if the cell reads an input
    recurrent_weight: nn.Parameter  # U of all blocks, transposed; the GRU has it in two parts

    def __init__(
        self,
        input_dim: int | None,
        hidden_dim: int,
        *,
        layer_norm: bool = False,
        recurrent_dropout: Rate = 0.0,
        transition_depth: Depth = 1,
    ) -> None:
        super().__init__()
        self.hidden_dim, self.reads_input = hidden_dim, input_dim is not None
        if input_dim is None:
            self.input_bias = nn.Parameter(torch.zeros(self.blocks * hidden_dim))
        else:
            self.input_projection = xavier(nn.Linear(input_dim, self.blocks * hidden_dim), self.blocks)
        widths = [n * hidden_dim for n in self.norm_blocks or (self.blocks,)] if layer_norm else []
        self.input_norms = nn.ModuleList(Norm(width) for width in ([] if input_dim is None else widths))
        self.state_norms = nn.ModuleList(Norm(width) for width in widths)
        self.recurrent_dropout = Dropout(recurrent_dropout)
        self.transitions = nn.ModuleList()
        self.make_weights(layer_norm=layer_norm)
        own = {name: getattr(self, name) for name in self.own_options}
        further = (type(self)(None, hidden_dim, layer_norm=layer_norm, **own) for _ in range(transition_depth - 1))
        self.transitions.extend(further)

    def make_weights(self, *, layer_norm: bool) -> None:
        """Creates the weights of the state, and others that ``update`` needs."""
        self.recurrent_weight = recurrent_matrices(self.hidden_dim, self.blocks)

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> State:
        """Returns the next state.

        Args:
            x: the result of ``input_projection`` after ``drop_input``, ``[..., batch, blocks * hidden_dim]``.
            state: tensors ``[..., batch, hidden_dim]``; the first comes from ``start_from``.
            real: ``[..., batch, 1]`` bool, False where the state must not change; None: True everywhere.
        """
        return self.advance(self.normalized(x), state, real)

    def normalized(self, x: Tensor) -> Tensor:
        """The input's contribution, normalised."""
        if not self.input_norms:
            return x
        norms = cast(list[Norm], list(self.input_norms))
        parts = x.split([norm.normalized_shape[0] for norm in norms], dim=-1)
        return torch.cat([norm(part) for norm, part in zip(norms, parts, strict=True)], dim=-1)

    def advance(self, x: Tensor, state: State, real: Tensor | None = None) -> State:
        """``forward``, given ``normalized`` x."""
        previous, mask = state[: self.num_states], state[self.num_states :]
        masks = mask[0].split(self.hidden_dim, dim=-1) if mask else (None,) * (1 + len(self.transitions))
        updated = self.update(x, previous, masks[0])
        for cell, keep in zip(cast(list[Cell], list(self.transitions)), masks[1:], strict=False):
            updated = cell.update(cell.input_bias, updated, keep)
        if real is not None:
            updated = tuple(torch.where(real, new, old) for new, old in zip(updated, previous, strict=True))
        return updated + mask

    def update(self, x: Tensor, state: State, keep: Tensor | None) -> State:
        """The cell's equations; products use h * ``keep`` instead of h, see ``product``."""
        raise NotImplementedError

    def start_from(self, *state: Tensor) -> State:
        """The initial state: the tensors given, zeros for the others, and in training a sequence's dropout masks."""
        h = state[0]
        state += (torch.zeros_like(h),) * (self.num_states - len(state))
        if not self.drops_state:
            return state
        width = (1 + len(self.transitions)) * self.hidden_dim + self.input_projection.in_features
        return (*state, self.recurrent_dropout(h.new_ones(*h.shape[:-1], width)))

    @property
    def drops_state(self) -> bool:
        """Tells whether ``start_from`` draws masks."""
        return self.training and self.recurrent_dropout.rate > 0

    def drop_input(self, x: Tensor, state: State) -> Tensor:
        """Applies dropout to an input ``[..., batch, input_dim]``; ``state`` begins with the cell's own."""
        return x * state[self.num_states][..., -x.shape[-1] :] if self.drops_state else x

    def drop_inputs(self, x: Tensor, state: State) -> Tensor:
        """``drop_input`` for all steps, ``[batch, len, input_dim]``, or for one, ``[batch, input_dim]``."""
        return self.drop_input(x.transpose(0, -2), state).transpose(0, -2)

    def drop_output(self, state: State) -> Tensor:
        """Applies the dropout of the cell's own products to h, for other layers that read it."""
        return state[0] * state[self.num_states][..., : self.hidden_dim] if self.drops_state else state[0]

    @property
    def is_plain(self) -> bool:
        """Tells whether other implementations have the same cell, one without norms or deep transitions."""
        return not (self.state_norms or self.transitions)

    def product(self, h: Tensor, keep: Tensor | None) -> Tensor:
        """U h for all blocks, in a cell whose blocks are normalised together."""
        product = (h if keep is None else h * keep) @ self.recurrent_weight
        return self.state_norms[0](product) if self.state_norms else product

    def weights(self) -> tuple[Tensor, ...]:
        """Weights of input and state, ``[blocks * hidden_dim, ...]``, and the biases of both."""
        bias = self.input_projection.bias
        return weight_of(self.input_projection), self.recurrent_weight.T, bias, torch.zeros_like(bias)

    def weights_in_order(self, *blocks: int, negated: tuple[int, ...] = ()) -> list[Tensor]:
        """The ``weights`` with their blocks in another implementation's order, some of them negated."""
        split = (weight.chunk(len(blocks)) for weight in self.weights())
        return [torch.cat([-parts[i] if i in negated else parts[i] for i in blocks]) for parts in split]

    def kernel_weights(self) -> list[Tensor]:
        """The ``weights`` as PyTorch's kernel for a layer of these cells expects them."""
        return [weight.contiguous() for weight in self.weights()]  # as cuDNN requires


class ElmanCell(Cell):
    """h' = tanh(W x + U h + b) (Elman 1990)."""

    blocks = 1

    def update(self, x: Tensor, state: State, keep: Tensor | None) -> State:
        """The next (h,)."""
        (h,) = state
        return (torch.tanh(x + self.product(h, keep)).to(h.dtype),)


class LSTMCell(Cell):
    """Long short-term memory with a forget gate, no peepholes: Zaremba et al. 2014 (arXiv:1409.2329), section 3.

    i, f, o = sigmoid(W x + U h + b) each, g = tanh(W x + U h + b), c' = f * c + i * g, h' = o * tanh(c').
    The forget gate's bias starts at 1 (Jozefowicz et al. 2015).
    """

    blocks = 4  # i, f, o, g
    num_states = 2

    def make_weights(self, *, layer_norm: bool) -> None:
        super().make_weights(layer_norm=layer_norm)
        bias = self.input_projection.bias if self.reads_input else self.input_bias
        nn.init.ones_(bias.data[self.hidden_dim : 2 * self.hidden_dim])
        self.memory_norm = Norm(self.hidden_dim) if layer_norm else None  # as in Ba et al. 2016

    def update(self, x: Tensor, state: State, keep: Tensor | None) -> State:
        """The next (h, c)."""
        h, c = state
        gates, candidate = (x + self.product(h, keep)).split((3 * self.hidden_dim, self.hidden_dim), dim=-1)
        i, f, o = torch.sigmoid(gates).to(c.dtype).chunk(3, dim=-1)
        c = f * c + i * torch.tanh(candidate)
        return o * torch.tanh(c if self.memory_norm is None else self.memory_norm(c)), c

    def kernel_weights(self) -> list[Tensor]:
        """The weights in PyTorch's order: i, f, g, o."""
        return self.weights_in_order(0, 1, 3, 2)


class InputForgetCell(Cell):
    """An LSTM whose output is its memory: an input and a forget gate, no output gate, no state except h.

    i, f = sigmoid(W x + U h + b) each, g = tanh(W x + U h + b), h' = f * h + i * g. Nothing bounds h, so the forget
    gate's bias does not start at 1 as it does in ``LSTMCell``.
    """

    blocks = 3  # i, f, g

    def update(self, x: Tensor, state: State, keep: Tensor | None) -> State:
        """The next (h,)."""
        (h,) = state
        gates, candidate = (x + self.product(h, keep)).split((2 * self.hidden_dim, self.hidden_dim), dim=-1)
        i, f = torch.sigmoid(gates).to(h.dtype).chunk(2, dim=-1)
        return (f * h + i * torch.tanh(candidate),)


class GRUCell(Cell):
    """The gated recurrent unit, in two forms.

    ``reset=before``, as Cho et al. 2014 wrote it (arXiv:1406.1078, equations 5 to 8):
    r = sigmoid(W_r x + U_r h), z = sigmoid(W_z x + U_z h), h~ = tanh(W x + b + U (r * h)), h' = (1 - z) * h + z * h~
    (z weights the candidate as in Bahdanau et al. 2015, appendix A.1.1).

    ``reset=after``: h~ = tanh(W x + b + r * (U h + b_U)), so no product waits for another. Sennrich et al. 2017
    (arXiv:1703.04357), PyTorch and cuDNN use this form; their z weights the old state, which is the same with z's
    weights negated.
    """

    blocks = 3  # z, r, candidate
    norm_blocks = (2, 1)
    own_options = ("reset",)

    def __init__(
        self,
        input_dim: int | None,
        hidden_dim: int,
        *,
        reset: Reset = "before",
        layer_norm: bool = False,
        recurrent_dropout: Rate = 0.0,
        transition_depth: Depth = 1,
    ) -> None:
        self.reset = reset
        super().__init__(
            input_dim,
            hidden_dim,
            layer_norm=layer_norm,
            recurrent_dropout=recurrent_dropout,
            transition_depth=transition_depth,
        )

    def make_weights(self, *, layer_norm: bool) -> None:
        self.recurrent_gate_weight = recurrent_matrices(self.hidden_dim, 2)  # U_z, U_r
        self.recurrent_candidate_weight = recurrent_matrices(self.hidden_dim, 1)  # U
        inside = self.reset == "after"
        self.recurrent_candidate_bias = nn.Parameter(torch.zeros(self.hidden_dim)) if inside else None  # b_U

    def update(self, x: Tensor, state: State, keep: Tensor | None) -> State:
        """The next (h,).

        With ``reset=after``, ``x`` may end with a vector to which the reset gate is applied together with U h + b_U.
        """
        gates, candidate = self.recurrent_gate_weight, self.recurrent_candidate_weight
        bias, width = self.recurrent_candidate_bias, 3 * self.hidden_dim
        if bias is not None and x.shape[-1] > width:
            x, inside = x.split((width, self.hidden_dim), dim=-1)
            bias = bias + inside
        return (gru(x, state[0], gates, candidate, bias, keep, cast(list[Norm], list(self.state_norms))),)

    def weights(self) -> tuple[Tensor, ...]:
        """Weights and biases of input and state; the state's bias is b_U."""
        weight, bias = weight_of(self.input_projection), self.input_projection.bias
        recurrent = torch.cat((self.recurrent_gate_weight.T, self.recurrent_candidate_weight.T))
        inside = self.recurrent_candidate_bias
        if inside is None:
            return weight, recurrent, bias, torch.zeros_like(bias)
        return weight, recurrent, bias, torch.cat((inside.new_zeros(2 * self.hidden_dim), inside))

    def kernel_weights(self) -> list[Tensor]:
        """The weights of ``reset=after`` in PyTorch's order: r, z, candidate; its z weights h."""
        return self.weights_in_order(1, 0, 2, negated=(0,))


def gru(
    x: Tensor,
    h: Tensor,
    gates: Tensor,
    candidate: Tensor,
    bias: Tensor | None = None,
    keep: Tensor | None = None,
    norms: Sequence[Norm] = (),
) -> Tensor:
    """One step of ``GRUCell``, also for several cells stacked on the leading axes.

    ``x`` is W x + b for z, r and the candidate, ``[..., batch, 3 * hidden]``; ``h`` ``[..., batch, hidden]``; ``gates``
    U_z and U_r, ``[..., hidden, 2 * hidden]``; ``candidate`` U, ``[..., hidden, hidden]``; ``bias`` b_U of
    ``reset=after``, and whatever else the reset gate multiplies; ``keep`` a factor of h in the products; ``norms`` the
    norms of the products for the gates and for the candidate.
    """
    x_gates, x_candidate = x.split((2 * h.shape[-1], h.shape[-1]), dim=-1)
    read = h if keep is None else h * keep
    product = read @ gates
    z, r = torch.sigmoid(x_gates + (norms[0](product) if norms else product)).chunk(2, dim=-1)
    product = (r * read) @ candidate if bias is None else read @ candidate + bias
    product = norms[1](product) if norms else product
    new = torch.tanh(x_candidate + (product if bias is None else r * product))
    return torch.lerp(h, new.to(h.dtype), z.to(h.dtype))


def recurrent_matrices(hidden_dim: int, blocks: int) -> nn.Parameter:
    """Orthogonal matrices side by side, so that h @ them is all products with h."""
    return nn.Parameter(torch.cat([nn.init.orthogonal_(torch.empty(hidden_dim, hidden_dim)) for _ in range(blocks)], 1))
