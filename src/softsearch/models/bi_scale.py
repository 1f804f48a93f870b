"""The bi-scale character decoder (Chung, Cho & Bengio 2016, arXiv:1603.06147)."""

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.attentional import AttentionalDecoder
from softsearch.models.cells import Cell, State, recurrent_matrices
from softsearch.models.layers import xavier


class BiScaleCell(Cell):
    """A faster and a slower layer, h1 and h2, with gates g1 and g2 (the paper's bi-scale recurrent network).

    h1' = tanh(W1 [E y; (1 - g1) * h1; g1 * h2; c]), g1' is the same with sigmoid and its own weights;
    ~h2 = tanh(W2 [(1 - g2) * h2; g1' * h1'; c]), and g2' in the same way; h2' = (1 - g1') * h2 + g1' * ~h2.
    So a slower unit changes only where its g1' is open, when the faster layer ends a chunk; the faster layer then
    starts again from h2. All gates are 0 at first.

    The state is (h1, h2, g1, g2). The input is W [E y; c] for h1', g1', ~h2 and g2'; only the first two read E y. It
    takes no options.
    """

    blocks = 2
    num_states = 4

    def __init__(self, input_dim: int | None, hidden_dim: int) -> None:
        super().__init__(input_dim, hidden_dim)  # without the options of other cells

    def make_weights(self, *, layer_norm: bool) -> None:
        hidden_dim = self.hidden_dim
        self.faster_weight = recurrent_matrices(hidden_dim, 2)  # multiplies (1 - g1) * h1, for h1' and g1'
        self.restart_weight = recurrent_matrices(hidden_dim, 2)  # multiplies g1 * h2
        self.slower_weight = recurrent_matrices(hidden_dim, 2)  # multiplies (1 - g2) * h2, for ~h2 and g2'
        self.chunk_weight = recurrent_matrices(hidden_dim, 2)  # multiplies g1' * h1'

    def update(self, x: Tensor, state: State, keep: Tensor | None) -> State:
        h1, h2, g1, g2 = state
        faster, slower = x.chunk(2, dim=-1)
        faster = faster + ((1 - g1) * h1) @ self.faster_weight + (g1 * h2) @ self.restart_weight
        h1, g1 = _candidate_and_gate(faster.to(h1.dtype))
        slower = slower + ((1 - g2) * h2) @ self.slower_weight + (g1 * h1) @ self.chunk_weight
        new, g2 = _candidate_and_gate(slower.to(h2.dtype))
        return h1, torch.lerp(h2, new, g1), g1, g2


def _candidate_and_gate(x: Tensor) -> tuple[Tensor, Tensor]:
    candidate, gate = x.chunk(2, dim=-1)
    return torch.tanh(candidate), torch.sigmoid(gate)


class BiScaleDecoder(AttentionalDecoder):
    """Look, Update, Generate with a ``BiScaleCell``: the source in subwords, the target in characters.

    Attention computes c_t from [E y_{t-1}; h2_{t-1}] (the paper's variant that aligns with the slower layer); the
    readout reads [h1_t; h2_t], E y_{t-1} and c_t. In the paper h1 and h2 start from tanh(W_init mean_i h_i).
    """

    def query_dim(self, embedding_dim: int, hidden_dim: int) -> int:
        """The width of [E y; h2]."""
        return embedding_dim + hidden_dim

    def state_dim(self, hidden_dim: int) -> int:
        """The width of [h1; h2]."""
        return 2 * hidden_dim

    def make_context_projection(self, memory_dim: int) -> nn.Linear:
        """Makes the layer that reads the context; it holds the slower layer's biases, which no other product has.

        Raises:
            ConfigError: the cell is not a ``BiScaleCell``, or there is a second one.
        """
        if not isinstance(self.cell, BiScaleCell) or self.context_cell is not None:
            raise ConfigError(
                "model.decoder is a BiScaleDecoder, which needs one BiScaleCell, found a "
                f"{type(self.cell).__name__} and context_cell={type(self.context_cell).__name__}; set "
                "model.decoder.cell._target_=softsearch.models.BiScaleCell and model.decoder.context_cell=null"
            )
        return xavier(nn.Linear(memory_dim, 4 * self.cell.hidden_dim), blocks=4)

    def _inputs(self, embedded: Tensor) -> Tensor:
        return torch.cat((super()._inputs(embedded), embedded), dim=-1)  # the attention reads E y, too

    def query(self, cell_input: Tensor, s: State) -> Tensor:
        return torch.cat((cell_input[..., 2 * self.cell.hidden_dim :], s[1]), dim=-1)

    def one_cell(self, cell_input: Tensor, context_part: Tensor, s: State) -> State:
        """The next state; only the faster layer reads E y."""
        width = 2 * self.cell.hidden_dim
        return self.cell(context_part + nn.functional.pad(cell_input[..., :width], (0, width)), s)

    def read_state(self, s: State) -> Tensor:
        return torch.cat(s[:2], dim=-1)
