"""A recurrent decoder with attention; its parts and their order are options."""

from collections.abc import Callable
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.attention import Attention, AttentionOutput
from softsearch.models.cells import Cell, State
from softsearch.models.embeddings import Embeddings
from softsearch.models.initial_state import InitialState
from softsearch.models.interface import Decoder, DecoderState, EncoderDescription, EncoderOutput, Memory, StepOutput
from softsearch.models.layers import xavier
from softsearch.models.loop_weights import one_gradient_per_matrix
from softsearch.models.readout import Readout
from softsearch.ranges import Rate, Size

Order = Literal["look_generate_update", "look_update_generate"]


class StepInputs(NamedTuple):
    """The inputs of a step's readout, except the embedding."""

    state: Tensor  # [rows, hidden_dim]
    context: Tensor  # [rows, memory_dim]
    alignments: Tensor  # [rows, positions]


class AttentionalDecoder(Decoder):
    """A decoder with four parts: attention, cell, initial state and readout.

    s_0 from ``initial_state``; c_i by ``attention`` from s_{i-1}; s_i = cell(s_{i-1}; W E y_{i-1} + C c_i); t_i from
    ``readout``, p(y_i) = softmax(W_o t_i).

    - ``order``: t_i reads E y_{i-1}, c_i and s_i. With ``look_generate_update`` it reads, instead of s_i, the state
      that was the attention's query: s_{i-1} as in RNNsearch, or s'_i with a ``context_cell``.
    - ``context_cell``: two cells instead of one: s'_i = cell(s_{i-1}; E y_{i-1}), c_i from s'_i, s_i =
      context_cell(s'_i; c_i). With GRUs this is the conditional GRU (Sennrich et al. 2017, arXiv:1703.04357, section 2,
      where z weights the old state: ``GRUCell`` with z's weights negated); ``transition_depth`` makes it deep
      (Miceli Barone et al. 2017, arXiv:1707.07631, section 2.3.2).

    s has ``hidden_dim`` units; for an LSTM, s is h. A cell's ``recurrent_dropout`` also applies to s in the attention
    and in t, and to c_i in the context cell and in t (Nematus draws a mask for each product). ``dropout`` applies to
    the embeddings and to t.

    The cache holds the cell's state, its masks in training, and the attention's state.

    Raises:
        ConfigError: the states of the parts do not fit together, or the encoder lacks what they read.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        hidden_dim: Size,
        initial_state: Callable[..., InitialState],
        attention: Callable[..., Attention],
        cell: Callable[..., Cell],
        readout: Callable[..., Readout],
        context_cell: Callable[..., Cell] | None = None,
        order: Order = "look_update_generate",
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(embeddings, dropout)
        dim, memory_dim, self.generates_first = embeddings.dim, encoder.output_dim, order == "look_generate_update"
        self.initial_state = initial_state(encoder, hidden_dim)
        self.attention = attention(self.query_dim(dim, hidden_dim), memory_dim)
        self.cell = cell(dim, hidden_dim)
        self.context_cell = None if context_cell is None else context_cell(memory_dim, hidden_dim)
        self.cell_context_projection = self.make_context_projection(memory_dim)
        self.readout = readout(dim, self.state_dim(hidden_dim), memory_dim)
        self.output_projection = embeddings.make_output(self.readout.output_dim, self.readout.option)
        self.values: nn.Linear | None = None  # the layers that read the context: see softsearch.export.forms
        self.values_at = 0  # index of their products in the memory
        self._check_states()
        self.complete(embeddings, encoder)

    def complete(self, embeddings: Embeddings, encoder: EncoderDescription) -> None:
        """Creates a subclass's own layers, from the constructor's arguments."""

    def query_dim(self, embedding_dim: int, hidden_dim: int) -> int:
        """The width of a query."""
        return hidden_dim

    def state_dim(self, hidden_dim: int) -> int:
        """The width of the state that the readout reads."""
        return hidden_dim

    def make_context_projection(self, memory_dim: int) -> nn.Linear | None:
        """Makes C, for a decoder with one cell."""
        if self.context_cell is not None:
            return None
        width = self.cell.input_projection.out_features
        return xavier(nn.Linear(memory_dim, width, bias=False), blocks=width // self.cell.hidden_dim)

    def _check_states(self) -> None:
        found, kind = self.cell.num_states, type(self.cell).__name__
        if self.initial_state.num_states > found:
            raise ConfigError(
                f"model.decoder.initial_state makes {self.initial_state.num_states} states, but model.decoder.cell, a "
                f"{kind}, has {found}; set model.decoder.initial_state.num_states={found}, or choose another cell"
            )
        if self.context_cell is not None and self.context_cell.num_states != found:
            raise ConfigError(
                f"model.decoder.cell, a {kind}, has {found} state(s), and model.decoder.context_cell, a "
                f"{type(self.context_cell).__name__}, {self.context_cell.num_states}; give both the same class"
            )

    def source_attention(self) -> list[nn.Module]:
        return [self.attention]

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """s_0, and the attention's products with the annotations, computed once for all steps."""
        s = self.cell.start_from(*self.initial_state(encoded))
        if self.context_cell is not None:  # in training, also the dropout masks of both cells
            s += self.context_cell.start_from(*s[: self.cell.num_states])[self.cell.num_states :]
        return DecoderState.initial(encoded, s + self.attention.start(encoded.mask), self.project(encoded))

    def project(self, encoded: EncoderOutput) -> tuple[Tensor, ...]:
        """Products with the encoder's output, computed once for all steps; the attention's come first."""
        values = () if self.values is None else (self.values(encoded.states),)
        return self.attention.project(encoded.states) + values

    def features_and_alignments(self, tgt_tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """Loops only over what depends on the previous state; the rest is computed for all steps at once."""
        embedded, read = self.read_all(tgt_tokens, state)
        return self.dropout(self.readout(embedded, read.state, read.context)), read.alignments

    def read_all(self, tgt_tokens: Tensor, state: DecoderState) -> tuple[Tensor, StepInputs]:
        """Runs all steps; returns the embeddings and the inputs of the readout, ``[batch, tgt_len, ...]`` each."""
        embedded, cache, steps = self._embed(tgt_tokens, state), state.cache, []
        with one_gradient_per_matrix():
            for step, cell_input in enumerate(self._inputs(embedded).unbind(1)):
                read, cache = self._advance(cell_input, cache, state.memory, state.position + step)
                steps.append(read)
        return embedded, StepInputs(*(torch.stack(parts, dim=1) for parts in zip(*steps, strict=True)))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        embedded = self._embed(tokens, state)
        read, cache = self._advance(self._inputs(embedded), state.cache, state.memory, state.position)
        return StepOutput(self.logits(embedded, read, state.memory), read.alignments, state.next(cache))

    def logits(self, embedded: Tensor, read: StepInputs, memory: Memory) -> Tensor:
        """The logits of one step, ``[rows, vocab]``."""
        return self.output_projection(self.dropout(self.readout(embedded, read.state, read.context)))

    def _embed(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """E y for all steps, ``[batch, tgt_len, embedding_dim]``, or for one, ``[rows, embedding_dim]``."""
        return self.cell.drop_inputs(self.dropout(self.embedding(tokens)), state.cache)

    def _inputs(self, embedded: Tensor) -> Tensor:
        """The cell's products with the embeddings, for all steps at once."""
        return self.cell.input_projection(embedded)

    def _advance(
        self, cell_input: Tensor, cache: tuple[Tensor, ...], memory: Memory, position: Tensor
    ) -> tuple[StepInputs, tuple[Tensor, ...]]:
        """Runs one step; returns the inputs of its readout and the next cache."""
        end = len(cache) - self.attention.num_states
        sentences = memory.mask.shape[0]  # not len: the exporter would take it for a constant
        positions = position.unflatten(0, (sentences, -1))
        values = memory.states if self.values is None else memory.projected[self.values_at]
        attended: list[AttentionOutput] = []

        def look(query: Tensor) -> Tensor:
            """The context of some rows, with the beams on a separate axis, ``[sentences, beams, ...]``."""
            attended.append(self.attention(query.unflatten(0, (sentences, -1)), memory, positions, cache[end:]))
            return (attended[0].weights @ values).flatten(0, 1)

        state, context, s = self._update(cell_input, cache[:end], look)
        return StepInputs(state, context, attended[0].alignments.flatten(0, 1)), s + attended[0].state

    def _update(self, cell_input: Tensor, s: State, look: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, State]:
        """Runs one step; returns the state that the readout reads, the context and the next state; ``look`` attends."""
        cell, second = self.cell, self.context_cell
        if second is None:
            querying, context = s, look(self.query(cell_input, s))
            next_state = self.one_cell(cell_input, cast(nn.Linear, self.cell_context_projection)(context), s)
        else:
            size, end = cell.num_states, cell.num_states + cell.drops_state  # masks follow the state
            querying = cell(cell_input, s[:end])[:size] + s[end:]
            context = second.drop_input(look(second.drop_output(querying)), querying)
            next_state = second(second.input_projection(context), querying)[:size] + s[size:]
        return self.read_state(querying if self.generates_first else next_state), context, next_state

    def query(self, cell_input: Tensor, s: State) -> Tensor:
        """The query of the attention, for a decoder with one cell."""
        return self.cell.drop_output(s)

    def one_cell(self, cell_input: Tensor, context_part: Tensor, s: State) -> State:
        """The next state, for a decoder with one cell, from its products with embedding and context."""
        return self.cell(cell_input + context_part, s)

    def read_state(self, s: State) -> Tensor:
        """The state in the form that the readout reads."""
        return self.cell.drop_output(s)

    def context_layers(self) -> list[str | None]:
        """The names of the layers that read the context, with None if something else reads it too."""
        cell_part = "cell_context_projection" if self.context_cell is None else "context_cell.input_projection"
        own = self.readout.context_layer
        return [cell_part, own and f"readout.{own}"]
