"""The decoder of the RNN Encoder-Decoder, a fixed summary in every step (Cho et al. 2014, arXiv:1406.1078)."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.cells import Cell, GRUCell, State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, EncoderDescription, EncoderOutput, StepOutput
from softsearch.models.layers import Projections, maxout, xavier
from softsearch.models.loop_weights import one_gradient_per_matrix
from softsearch.ranges import Rate, Size

Reach = Literal["start", "cell", "readout"]


class RNNencdecDecoder(Decoder):
    """The decoder of appendix A.1.2; the primes of its weights are left out.

    c = tanh(V h_N), h_0 = tanh(V' c); h_t = GRU(h_{t-1}; E y_{t-1}, c), where r gates U h_{t-1} + C c together: h~_t =
    tanh(W E y_{t-1} + r * (U h_{t-1} + C c)); s_t = maxout(O_h h_t + O_y E y_{t-1} + O_c c), p(y_t) = softmax(G s_t).
    y_0 is BOS with an ordinary embedding, where the paper has zeros. With ``output_rank`` G is a product G_l G_r, and
    ``output_projection`` is G_l. h_N is the final state of the encoder's last layer, its directions side by side. The
    GRU is a ``GRUCell`` with ``reset=after``, whose ``layer_norm`` normalises U h_{t-1} + C c as one. Any other
    ``cell`` reads W E y_{t-1} + C c, and an LSTM's memory starts from 0.

    ``summary`` selects what reads c: ``readout``, all of the above; ``cell``, not the readout (no O_c c); ``start``,
    h_0 alone (no C c either): h_t = GRU(h_{t-1}; E y_{t-1}), as in Sutskever et al. 2014 (arXiv:1409.3215).

    h and c have ``hidden_dim`` units, s ``maxout_dim``. Dropout applies to the embeddings, to c and to s.

    Raises:
        ConfigError: the encoder has no final state.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        cell: Callable[..., Cell],
        hidden_dim: Size,
        maxout_dim: Size,
        output_rank: Size | None = None,
        summary: Reach = "readout",
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(embeddings, dropout)
        dim = embeddings.dim
        self.summary_projection = nn.Linear(encoder.top_layer().joined_dim, hidden_dim)  # V
        self.initial_state_projection = nn.Linear(hidden_dim, hidden_dim)  # V'
        self.cell = cell(dim, hidden_dim)
        width = self.cell.input_projection.out_features
        for_cell = None if summary == "start" else nn.Linear(hidden_dim, width, bias=False)  # for a GRU C_z, C_r, C
        self.cell_summary_projection = for_cell
        reads = {"summary": hidden_dim} if summary == "readout" else {}
        self.readout_projections = Projections(
            2 * maxout_dim, layer_norm=False, embedding=dim, state=hidden_dim, **reads
        )
        self.output_factor = None if output_rank is None else nn.Linear(maxout_dim, output_rank, bias=False)  # G_r
        features = (maxout_dim, "maxout_dim") if output_rank is None else (output_rank, "output_rank")
        self.output_projection = embeddings.make_output(*features)
        for layer in (self.summary_projection, self.initial_state_projection, *self.readout_projections.layers()):
            xavier(layer)
        if for_cell is not None:
            xavier(for_cell, blocks=width // hidden_dim)
        if self.output_factor is not None:
            xavier(self.output_factor)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """h_0, and the products with c, computed once for all steps."""
        c = self.dropout(torch.tanh(self.summary_projection(encoded.final[-1].joined()[0])))
        h = torch.tanh(self.initial_state_projection(c)).to(self.initial_state_projection.weight.dtype)
        for_cell = () if self.cell_summary_projection is None else (self.cell_summary_projection(c),)
        for_maxout = (self.readout_projections(summary=c),) if "summary" in self.readout_projections else ()
        return DecoderState.initial(encoded, self.cell.start_from(h), for_cell + for_maxout)

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Loops only over the cell; the readouts of all steps are computed at once."""
        embedded = self.dropout(self.embedding(tgt_tokens))  # [batch, tgt_len, embedding_dim]
        for_cell, for_maxout = _products(state.memory.projected)
        cache, states = state.cache, []
        with one_gradient_per_matrix():
            for cell_input in self.cell.input_projection(self.cell.drop_inputs(embedded, cache)).unbind(1):
                cache = self._update(cell_input, cache, for_cell)
                states.append(cache[0])
        return self._readout(embedded, torch.stack(states, dim=1), None if for_maxout is None else for_maxout[:, None])

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        for_cell, for_maxout = _products(tuple(p[:, None] for p in state.memory.projected))
        # Beams are on a separate axis, [sentences, beams, ...].
        sentences = state.memory.mask.shape[0]
        embedded = self.dropout(self.embedding(tokens)).unflatten(0, (sentences, -1))
        cache = tuple(tensor.unflatten(0, (sentences, -1)) for tensor in state.cache)
        cache = self._update(self.cell.input_projection(self.cell.drop_input(embedded, cache)), cache, for_cell)
        features = self._readout(embedded, cache[0], for_maxout).flatten(0, 1)
        after = state.next(tuple(tensor.flatten(0, 1) for tensor in cache))
        return StepOutput(self.output_projection(features), None, after)

    def _update(self, cell_input: Tensor, cache: State, summary: Tensor | None) -> State:
        """The cell's next state."""
        cell, hidden = self.cell, self.cell.hidden_dim
        if summary is None:
            return cell(cell_input, cache)
        if not isinstance(cell, GRUCell) or cell.reset == "before":
            return cell(cell_input + summary, cache)
        gates, inside = summary.split((2 * hidden, hidden), dim=-1)
        x = cell.normalized(cell_input + functional.pad(gates, (0, hidden)))
        return cell.advance(torch.cat((x, inside.expand(*x.shape[:-1], -1)), dim=-1), cache)

    def _readout(self, embedded: Tensor, h: Tensor, summary: Tensor | None) -> Tensor:
        """s_t, or G_r s_t: the features that the output layer reads."""
        product = self.readout_projections(embedding=embedded, state=h)
        s = self.dropout(maxout(product if summary is None else product + summary))
        return s if self.output_factor is None else self.output_factor(s)


def _products(projected: tuple[Tensor, ...]) -> tuple[Tensor | None, Tensor | None]:
    """The products with c that the cell and the readout read."""
    for_cell, for_maxout = (*projected, None, None)[:2]
    return for_cell, for_maxout
