"""The one interface of all architectures: an encoder, and a decoder that is a pure function of (token, state).

Training (:meth:`Decoder.features`), search and the exported ONNX graphs (:meth:`Decoder.step`) are two views of the
same equations; the contract tests hold them equal. The state is explicit and immutable, in two parts: :class:`Memory`
belongs to a sentence and is never copied per beam, the cache belongs to a row (one hypothesis of a sentence).
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings
from softsearch.text.vocabulary import PAD


class LastState(NamedTuple):
    """The last state of a layer, or of one direction of it."""

    h: Tensor  # [batch, dim], the output
    c: Tensor | None = None  # [batch, dim], an LSTM's memory cell


class LastStates(NamedTuple):
    """What a layer of an encoder ends with."""

    forward: LastState  # at the last token
    backward: LastState | None = None  # at the first token, of a layer that reads in both directions

    def joined(self) -> LastState:
        """Both directions side by side."""
        (h, c), other = self.forward, self.backward
        if other is None:
            return self.forward
        both = None if c is None or other.c is None else torch.cat((c, other.c), dim=-1)
        return LastState(torch.cat((h, other.h), dim=-1), both)


class LayerShape(NamedTuple):
    """What the :class:`LastStates` of a layer are like."""

    dim: int  # of h in each direction
    directions: int = 1
    has_c: bool = False

    @property
    def joined_dim(self) -> int:
        """The width of h of both directions side by side."""
        return self.dim * self.directions


def top_shape(final_shapes: tuple[LayerShape, ...]) -> LayerShape:
    """That of the last layer, for a decoder that needs it.

    Raises:
        ConfigError: the encoder ends with nothing.
    """
    if not final_shapes:
        raise ConfigError("model.decoder starts from the encoder's last state, but model.encoder has none; change one")
    return final_shapes[-1]


class EncoderOutput(NamedTuple):
    """What an encoder made of a batch of sentences."""

    states: Tensor  # [batch, src_len, output_dim]
    mask: Tensor  # [batch, src_len] bool, True = real token
    final: tuple[LastStates, ...]  # of each layer, from the first on; may be empty


class Memory(NamedTuple):
    """What belongs to a sentence: computed once, shared by all its hypotheses. Axis 0 = sentences."""

    states: Tensor  # [sentences, src_len, memory_dim]
    mask: Tensor  # [sentences, src_len] bool, True = real token
    projected: tuple[Tensor, ...]  # whatever the decoder derives from the states once, axis 0 = sentences

    def keep(self, sentences: Tensor) -> "Memory":
        """Keeps only these sentences."""
        return Memory(self.states[sentences], self.mask[sentences], tuple(p[sentences] for p in self.projected))


class DecoderState(NamedTuple):
    """All that a decoder knows between two steps. ``rows = sentences * beams``, a sentence's rows side by side."""

    memory: Memory
    cache: tuple[Tensor, ...]  # axis 0 = rows
    position: Tensor  # [rows] int64, tokens read so far

    def select(self, rows: Tensor) -> "DecoderState":
        """Reorders, repeats or drops rows, as beam search asks; every sentence must have equally many afterwards."""
        return DecoderState(self.memory, tuple(c[rows] for c in self.cache), self.position[rows])

    def keep(self, sentences: Tensor) -> "DecoderState":
        """Keeps only these sentences, with all their rows."""
        beams = self.position.shape[0] // self.memory.mask.shape[0]
        rows = (sentences[:, None] * beams + torch.arange(beams, device=sentences.device)).flatten()
        return DecoderState(self.memory.keep(sentences), *self.select(rows)[1:])


class StepOutput(NamedTuple):
    """One step of a decoder for every row."""

    logits: Tensor  # [rows, vocab]
    alignments: Tensor | None  # [rows, src_len], a distribution over the source, where the decoder has attention
    state: DecoderState


class Encoder(nn.Module):
    """Reads source sentences; subclasses set ``output_dim`` and the shapes of what ``final`` holds."""

    output_dim: int
    final_shapes: tuple[LayerShape, ...] = ()
    max_src_len: int | None = None  # the longest sentence that it can read, EOS included

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """Encodes ``[batch, src_len]`` token ids; True in ``src_mask`` marks real tokens."""
        raise NotImplementedError


class Decoder(nn.Module):
    """Predicts the next target token. ``output`` maps features to logits; subclasses do the rest."""

    has_attention: ClassVar[bool] = False  # whether steps give alignments
    output: nn.Linear

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The state before the first token, one row for each sentence."""
        raise NotImplementedError

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Teacher forcing from a fresh state: ``[batch, tgt_len]`` tokens read -> ``[batch, tgt_len, features]``."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """Reads one token for each row, ``[rows]``."""
        raise NotImplementedError

    def forward(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Teacher forcing: logits ``[batch, tgt_len, vocab]`` of the token that follows each token read."""
        return self.output(self.features(tgt_tokens, state))


class Seq2Seq(nn.Module):
    """An encoder and a decoder, built from their parts.

    Args:
        src_vocab_size: source vocabulary, specials included.
        tgt_vocab_size: target vocabulary, specials included.
        embeddings: called with both sizes, returns the :class:`Embeddings`.
        encoder: called with ``embedding=``, returns the :class:`Encoder`.
        decoder: called with ``embedding=, make_output=, memory_dim=, final_shapes=``, returns the :class:`Decoder`.
        init: called with the model, sets its parameters (:mod:`softsearch.models.init`); by default as the parts do.
    """

    def __init__(
        self,
        *,
        src_vocab_size: int,
        tgt_vocab_size: int,
        embeddings: Callable[..., Embeddings],
        encoder: Callable[..., Encoder],
        decoder: Callable[..., Decoder],
        init: Callable[[nn.Module], None] | None = None,
    ) -> None:
        super().__init__()
        parts = embeddings(src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size)
        self.encoder = encoder(embedding=parts.src)
        self.decoder = decoder(
            embedding=parts.tgt,
            make_output=parts.make_output,
            memory_dim=self.encoder.output_dim,
            final_shapes=self.encoder.final_shapes,
        )
        self.tgt_vocab_size = tgt_vocab_size
        if init is not None:
            init(self)

    def encode(self, src_tokens: Tensor) -> DecoderState:
        """Encodes padded sources ``[batch, src_len]`` and returns the decoder's first state."""
        state: DecoderState = self.decoder.init_state(self.encoder(src_tokens, src_tokens != PAD))
        return state

    def features(self, src_tokens: Tensor, tgt_tokens: Tensor) -> Tensor:
        """Teacher forcing up to, but without, the output layer: ``[batch, tgt_len, features]``."""
        return self.decoder.features(tgt_tokens, self.encode(src_tokens))

    def forward(self, src_tokens: Tensor, tgt_tokens: Tensor) -> Tensor:
        """Teacher forcing: ``[batch, src_len]`` and ``[batch, tgt_len]`` -> logits ``[batch, tgt_len, vocab]``."""
        logits: Tensor = self.decoder(tgt_tokens, self.encode(src_tokens))
        return logits
