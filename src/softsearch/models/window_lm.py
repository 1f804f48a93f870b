"""Language models that read the last tokens alone: feed-forward, and log-bilinear."""

from abc import abstractmethod
from typing import Annotated

import torch
from torch import Tensor, nn

from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, EncoderDescription, EncoderOutput, StepOutput
from softsearch.models.layers import xavier
from softsearch.ranges import Range, Rate, Size
from softsearch.text.vocabulary import BOS

Order = Annotated[int, Range(3, 64)]


class WindowDecoder(Decoder):
    """Predicts a token from the ``order - 1`` tokens before it, and reads no source.

    A sentence is preceded by as many BOS as the context needs. Dropout, which the papers do not have, applies to the
    embeddings and before the output layer.

    Raises:
        ConfigError: the encoder reads the source.
    """

    def __init__(self, embeddings: Embeddings, encoder: EncoderDescription, order: int, dropout: float) -> None:
        super().__init__(embeddings, dropout)
        encoder.check_unread(type(self).__name__)
        self.order = order

    @abstractmethod
    def window_features(self, windows: Tensor) -> Tensor:
        """What the output layer reads, from embeddings ``[..., order - 1, embedding_dim]``, the oldest first."""

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The initial context: BOS for every missing token."""
        first_tokens = encoded.mask.new_full((encoded.mask.shape[0], self.order - 2), BOS, dtype=torch.int64)
        return DecoderState.initial(encoded, (first_tokens,))

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Computes all positions at once."""
        embedded = self.dropout(self.embedding(torch.cat((*state.cache, tgt_tokens), dim=1)))
        windows = embedded.unfold(1, self.order - 1, 1)  # [batch, tgt_len, embedding_dim, order - 1]
        return self.window_features(windows.transpose(-1, -2))

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        window = torch.cat((*state.cache, tokens[:, None]), dim=1)
        features = self.window_features(self.dropout(self.embedding(window)))
        return StepOutput(self.output_projection(features), None, state.next((window[:, 1:],)))


class FeedForwardDecoder(WindowDecoder):
    """Feed-forward language model (Bengio, Ducharme, Vincent & Jauvin 2003, JMLR 3, section 2, equation 1).

    x = [C(w_{t-1}); C(w_{t-2}); ...; C(w_{t-n+1})], y = b + W x + U tanh(d + H x), p(w_t | context) = softmax(y), with
    n = ``order``. W, the direct connections from words to outputs (section 2.1), is there with ``direct``.
    ``output_projection`` is [U W]. H has ``hidden_dim`` rows.
    """

    def __init__(
        self,
        *,
        embeddings: Embeddings,
        encoder: EncoderDescription,
        order: Order,
        hidden_dim: Size,
        direct: bool = False,
        dropout: Rate = 0.0,
    ) -> None:
        super().__init__(embeddings, encoder, order, dropout)
        self.direct = direct
        context_dim = (order - 1) * embeddings.dim
        self.hidden_projection = xavier(nn.Linear(context_dim, hidden_dim))  # H and d
        option = "hidden_dim + (order - 1) * model.embeddings.dim" if direct else "hidden_dim"
        self.output_projection = embeddings.make_output(hidden_dim + direct * context_dim, option)

    def window_features(self, windows: Tensor) -> Tensor:
        """tanh(d + H x), followed by x if there is W."""
        x = windows.flip(-2).flatten(-2)
        hidden = self.dropout(self.hidden_projection(x).tanh())
        return torch.cat((hidden, x), dim=-1) if self.direct else hidden


class LogBilinearDecoder(WindowDecoder):
    """Log-bilinear language model (Mnih & Hinton 2007, "Three New Graphical Models", ICML, section 4).

    The words of the context predict the representation of the next one, r = b_r + C_1 R(w_{t-1}) + C_2 R(w_{t-2}) + ...
    + C_{n-1} R(w_{t-n+1}), and p(w_t | context) = softmax(R r + b), with n = ``order``, if
    ``model.embeddings.tie=output``. With ``loss=hierarchical_softmax`` it is the model of Mnih & Hinton (2009, "A
    Scalable Hierarchical Distributed Language Model"), over a tree of ids. ``prediction`` is [C_1 C_2 ...] and b_r.
    """

    def __init__(
        self, *, embeddings: Embeddings, encoder: EncoderDescription, order: Order, dropout: Rate = 0.0
    ) -> None:
        super().__init__(embeddings, encoder, order, dropout)
        self.prediction = xavier(nn.Linear((order - 1) * embeddings.dim, embeddings.dim))
        self.output_projection = embeddings.make_output(embeddings.dim, "model.embeddings.dim")

    def window_features(self, windows: Tensor) -> Tensor:
        """The predicted representation r."""
        return self.dropout(self.prediction(windows.flip(-2).flatten(-2)))
