"""Recurrent encoders, and encoder-decoders without attention (Sutskever et al. 2014, arXiv:1409.3215)."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.cells import Cell, State
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDescription,
    EncoderOutput,
    LayerShape,
    StepOutput,
)
from softsearch.models.layers import Dropout
from softsearch.models.recurrence import Recurrence
from softsearch.models.seq2seq import Seq2Seq
from softsearch.ranges import Depth, Rate, Size


class RecurrentEncoder(Encoder):
    """A stack of recurrent layers; the states of the last one are the annotations.

    With a ``GRUCell``, one layer and both directions it is the encoder of Bahdanau et al. 2015 (appendix A.2.1).
    Each direction has ``hidden_dim`` units; ``cell`` is called with two widths, see ``Cell``. Dropout applies to
    the embeddings, between layers and to the annotations (Zaremba et al. 2014, arXiv:1409.2329).
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        cell: Callable[..., Cell],
        hidden_dim: Size,
        num_layers: Depth = 1,
        bidirectional: bool = True,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__()
        self.embedding: nn.Embedding = embedding
        self.dropout = Dropout(dropout)
        widths = [embedding.embedding_dim] + [hidden_dim * (1 + bidirectional)] * (num_layers - 1)
        layers = [Recurrence(cell, width, hidden_dim, bidirectional=bidirectional) for width in widths]
        self.layers = nn.ModuleList(layers)
        layer = LayerShape(hidden_dim, 1 + bidirectional, layers[0].forward_cell.num_states)
        self.description = EncoderDescription(layer.joined_dim, (layer,) * num_layers)

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        x = self.dropout(self.embedding(src_tokens))
        final = []
        for layer in self.layers:
            states, last = layer(x, src_mask)
            final.append(last)
            x = self.dropout(states)
        return EncoderOutput(x, src_mask, tuple(final))


class NoSource(Encoder):
    """The encoder of a language model, which reads nothing."""

    description = EncoderDescription(output_dim=0)

    def __init__(self, *, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = None

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """Returns states of width 0."""
        return EncoderOutput(src_mask.new_zeros((*src_mask.shape, 0), dtype=torch.float32), src_mask, ())


class RecurrentDecoder(Decoder):
    """A stack of recurrent layers that starts from the encoder's final states and reads nothing else from the source.

    Each layer starts from the encoder's layer of the same depth, its directions side by side. An encoder without final
    states makes it a language model (Mikolov et al. 2010), which starts from zeros. Dropout applies to the embeddings,
    between layers and before the output layer (Zaremba et al. 2014).

    Raises:
        ConfigError: the encoder's final states do not fit.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        cell: Callable[..., Cell],
        hidden_dim: Size,
        num_layers: Depth = 1,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(embeddings, dropout)
        widths = [embeddings.dim] + [hidden_dim] * (num_layers - 1)
        self.layers = nn.ModuleList(Recurrence(cell, width, hidden_dim) for width in widths)
        self.hidden_dim = hidden_dim
        shapes = [(layer.joined_dim, layer.num_states) for layer in self._starts_from(embeddings, encoder)]
        own = (hidden_dim, self._first_cell.num_states)
        if shapes and shapes != [own] * num_layers:
            found = ", ".join(f"{width} units in {states} state(s)" for width, states in shapes)
            raise ConfigError(
                f"the encoder's layers end with {found}, expected {own[0]} units in {own[1]} state(s) for each of the "
                f"decoder's {num_layers} layers ({type(self._first_cell).__name__}); give both the same model.*.cell "
                "and num_layers, and a bidirectional encoder half of the decoder's hidden_dim"
            )
        self.output_projection = embeddings.make_output(hidden_dim)

    def _starts_from(self, embeddings: Embeddings, encoder: EncoderDescription) -> tuple[LayerShape, ...]:
        """The shapes of the final states that the layers start from; empty if they start from zeros."""
        return encoder.layers

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The final states of the encoder's layers, unchanged."""
        zeros = self.embedding.weight.new_zeros(encoded.mask.shape[0], self.hidden_dim)
        finals = [layer.joined() for layer in encoded.final] or [(zeros,)] * len(self.layers)
        cells = [layer.forward_cell for layer in cast(list[Recurrence], list(self.layers))]
        starts = (cell.start_from(*final) for cell, final in zip(cells, finals, strict=True))
        return DecoderState.initial(encoded, tuple(tensor for start in starts for tensor in start))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Runs layer by layer, because no step reads the output of the previous one."""
        return self.dropout(self._top_states(self.dropout(self.embedding(tgt_tokens)), state.cache))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        h, cache = self._step_layers(self._inputs(tokens, state), state.cache)
        return StepOutput(self.output_projection(self.dropout(h)), None, state.next(cache))

    def _inputs(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """The first layer's products with E y, of all steps ``[batch, tgt_len]`` or of one ``[rows]``."""
        cell = self._first_cell
        return cell.input_projection(cell.drop_inputs(self.dropout(self.embedding(tokens)), state.cache))

    @property
    def _first_cell(self) -> Cell:
        return cast(Recurrence, self.layers[0]).forward_cell

    def _top_states(self, x: Tensor, cache: tuple[Tensor, ...]) -> Tensor:
        """The states of the last layer at all steps, from embeddings ``[batch, tgt_len, embedding_dim]``."""
        for index, (layer, start) in enumerate(self._with_states(cache)):
            x = layer(self.dropout(x) if index else x, None, start).states
        return x

    def _step_layers(self, x: Tensor, cache: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One step, from the first layer's product with its input: the last layer's h and the states of all layers."""
        h = x
        states: State = ()
        for layer, state in self._with_states(cache):
            cell = layer.forward_cell
            updated = cell(cell.input_projection(cell.drop_input(self.dropout(h), state)) if states else x, state)
            h, states = updated[0], states + updated
        return h, states

    def _with_states(self, cache: tuple[Tensor, ...]) -> list[tuple[Recurrence, State]]:
        """Pairs each layer with its part of the cache."""
        size = self._first_cell.num_states + self._first_cell.drops_state
        layers = cast(list[Recurrence], self.layers)
        return [(layer, cache[i * size : (i + 1) * size]) for i, layer in enumerate(layers)]


class EncoderDecoder(Seq2Seq):
    """A ``Seq2Seq`` of a ``RecurrentEncoder`` and a ``RecurrentDecoder`` of the same shape and cell.

    With ``bidirectional`` each direction of the encoder has half of the ``hidden_dim`` units of a layer.

    Raises:
        ConfigError: two directions cannot share an odd number of units.
    """

    def __init__(
        self,
        *,
        src_vocab_size: int,
        tgt_vocab_size: int,
        embeddings: Callable[..., Embeddings],
        cell: Callable[..., Cell],
        hidden_dim: Size,
        num_layers: Depth = 1,
        bidirectional: bool = False,
        dropout: Rate = 0.0,
        init: Callable[[nn.Module], None] | None = None,
    ) -> None:
        if hidden_dim % (1 + bidirectional):
            raise ConfigError(
                f"model.hidden_dim is {hidden_dim}, expected an even number with model.bidirectional=true"
            )
        shared: dict[str, Any] = {"cell": cell, "num_layers": num_layers, "dropout": dropout}
        encoder_dim = hidden_dim // (1 + bidirectional)
        super().__init__(
            src_vocab_size=src_vocab_size,
            tgt_vocab_size=tgt_vocab_size,
            embeddings=embeddings,
            encoder=partial(RecurrentEncoder, hidden_dim=encoder_dim, bidirectional=bidirectional, **shared),
            decoder=partial(RecurrentDecoder, hidden_dim=hidden_dim, **shared),
            init=init,
        )
