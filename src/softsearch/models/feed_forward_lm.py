"""Feed-forward language model (Bengio, Ducharme, Vincent & Jauvin 2003, JMLR 3, section 2)."""

from typing import Annotated

import torch
from torch import Tensor, nn

from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, EncoderDescription, EncoderOutput, StepOutput
from softsearch.models.layers import xavier
from softsearch.ranges import Range, Rate, Size
from softsearch.text.vocabulary import BOS


class FeedForwardDecoder(Decoder):
    """Predicts a token from the ``order - 1`` tokens before it, and reads no source (section 2, equation 1).

    x = [C(w_{t-1}); C(w_{t-2}); ...; C(w_{t-n+1})], y = b + W x + U tanh(d + H x), p(w_t | context) = softmax(y), with
    n = ``order``. W, the direct connections from words to outputs (section 2.1), is there with ``direct``.
    ``output_projection`` is [U W]. A sentence is preceded by as many BOS as the context needs. H has ``hidden_dim``
    rows. Dropout, which the paper does not have, applies to the embeddings and before the output layer.

    Raises:
        ConfigError: the encoder reads the source.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        order: Annotated[int, Range(3, 64)],
        hidden_dim: Size,
        direct: bool = False,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(embeddings, dropout)
        encoder.check_unread("FeedForwardDecoder")
        self.order, self.direct = order, direct
        context_dim = (order - 1) * embeddings.dim
        self.hidden_projection = xavier(nn.Linear(context_dim, hidden_dim))  # H and d
        option = "hidden_dim + (order - 1) * model.embeddings.dim" if direct else "hidden_dim"
        self.output_projection = embeddings.make_output(hidden_dim + direct * context_dim, option)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The initial context: BOS for every missing token."""
        first_tokens = encoded.mask.new_full((encoded.mask.shape[0], self.order - 2), BOS, dtype=torch.int64)
        return DecoderState.initial(encoded, (first_tokens,))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Computes all positions at once."""
        embedded = self.dropout(self.embedding(torch.cat((*state.cache, tgt_tokens), dim=1)))
        windows = embedded.unfold(1, self.order - 1, 1)  # [batch, tgt_len, embedding_dim, order - 1]
        return self._features(windows.transpose(-1, -2))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        window = torch.cat((*state.cache, tokens[:, None]), dim=1)
        features = self._features(self.dropout(self.embedding(window)))
        return StepOutput(self.output_projection(features), None, state.next((window[:, 1:],)))

    def _features(self, windows: Tensor) -> Tensor:
        """tanh(d + H x), followed by x if there is W, from ``[..., order - 1, embedding_dim]``, the oldest first."""
        x = windows.flip(-2).flatten(-2)
        hidden = self.dropout(self.hidden_projection(x).tanh())
        return torch.cat((hidden, x), dim=-1) if self.direct else hidden
