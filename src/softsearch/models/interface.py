"""The interface of all architectures: an encoder, and a decoder that is a pure function of (token, state).

Training (``Decoder.features``), search and the exported ONNX graphs (``Decoder.step``) are views of the same
equations; contract tests check that they agree. The state is explicit and immutable, in two parts: ``Memory``
belongs to a sentence and is never copied per beam, the cache belongs to a row (one hypothesis of a sentence).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.cells import State
from softsearch.models.embeddings import Embeddings
from softsearch.models.layers import Dropout
from softsearch.models.output_layers import OutputLayer

Tensors = tuple[Tensor, ...]


class FinalState(NamedTuple):
    """The last state of an encoder's layer; each tensor is ``[batch, dim]``."""

    forward: State  # at the last token
    backward: State | None = None  # at the first token, of a bidirectional layer

    def joined(self) -> State:
        """Both directions side by side, h with h and c with c."""
        if self.backward is None:
            return self.forward
        return tuple(torch.cat(pair, dim=-1) for pair in zip(self.forward, self.backward, strict=True))


class LayerShape(NamedTuple):
    """The shape of a layer's ``FinalState``."""

    dim: int  # width of h in each direction
    directions: int = 1
    num_states: int = 1  # tensors of the state: an LSTM has h and c

    @property
    def joined_dim(self) -> int:
        """The width of h of both directions side by side."""
        return self.dim * self.directions


class EncoderDescription(NamedTuple):
    """The properties of an encoder that decoders and the export need."""

    output_dim: int  # width of the states
    layers: tuple[LayerShape, ...] = ()  # shapes of the final states
    max_src_len: int | None = None  # tokens of the longest sentence that it can read, EOS included
    tokens_per_position: int = 1  # there are ceil(src_len / tokens_per_position) states
    span: int = 1  # tokens that a state represents, its own first; the last states extend past the end
    source_dims: tuple[int, ...] = ()  # output_dim of each source, if a line has several
    feature_dim: int | None = None  # width of the feature vectors that it reads, instead of tokens or with them
    hides_tokens: bool = False  # the states of some tokens, such as tags, are masked

    @property
    def has_own_mask(self) -> bool:
        """Tells whether the states have a different mask from the tokens."""
        reads_vectors_only = self.feature_dim is not None and not self.source_dims
        return self.tokens_per_position > 1 or reads_vectors_only or self.hides_tokens

    def top_layer(self) -> LayerShape:
        """The last layer, for a decoder that starts from its final state.

        Raises:
            ConfigError: the encoder has no final states.
        """
        if not self.layers:
            raise ConfigError(
                "model.decoder starts from the encoder's last state, but model.encoder has none; change one of them"
            )
        return self.layers[-1]

    def check_unread(self, decoder: str) -> None:
        """Refuses an encoder that reads the source, for a decoder that would not use it.

        Raises:
            ConfigError: the encoder reads the source.
        """
        if self.output_dim:
            raise ConfigError(
                f"model.decoder is a {decoder}, a language model, which uses no source, but model.encoder reads one; "
                "set model.encoder._target_=softsearch.models.NoSource, or choose another decoder"
            )


class Sources(NamedTuple):
    """Where each source of a line lies."""

    begins: Tensor  # [batch, sources] int64, the first token of each
    masks: Tensor  # [batch, sources, src_len] bool, True = real token, counted from the source's own beginning


class EncoderOutput(NamedTuple):
    """The output of an encoder for a batch of sentences."""

    states: Tensor  # [batch, positions, output_dim]
    mask: Tensor  # [batch, positions] bool, True = has a real token
    final: tuple[FinalState, ...]  # one for each layer, the first layer first; may be empty
    src_tokens: Tensor | None = None  # [batch, src_len] ids, for decoders that copy; Seq2Seq adds them
    sources: Sources | None = None  # if lines have several sources

    def mean_state(self) -> Tensor:
        """The mean of the real states, ``[batch, output_dim]``."""
        real = self.mask[..., None].to(self.states.dtype)
        return (self.states * real).sum(1) / real.sum(1)


class Memory(NamedTuple):
    """The part of the state that belongs to a sentence, shared by all its hypotheses. Axis 0 = sentences."""

    states: Tensor  # [sentences, positions, memory_dim]
    mask: Tensor  # [sentences, positions] bool, True = has a real token
    projected: Tensors  # what the decoder computes once from the encoder's output

    def keep(self, sentences: Tensor) -> "Memory":
        """Keeps only these sentences."""
        return Memory(self.states[sentences], self.mask[sentences], tuple(p[sentences] for p in self.projected))


class DecoderState(NamedTuple):
    """The state of a decoder between two steps. ``rows = sentences * beams``, a sentence's rows side by side.

    A decoder that attends to its own past has slots: keys and values of all rows of all steps, which are never moved.
    ``cache`` is then only their bias, ``[rows, slots]``: 0 where a row sees a slot, else the lowest number.
    """

    memory: Memory
    cache: Tensors  # axis 0 = rows
    position: Tensor  # [rows] int64, tokens read so far, the same for all rows
    slots: Tensors = ()  # [sentences, heads, slots, dim]

    @classmethod
    def initial(cls, encoded: EncoderOutput, cache: Tensors, projected: Tensors = (), slots: Tensors = ()) -> Self:
        """The state before the first token, one row for each sentence."""
        position = encoded.mask.new_zeros(encoded.mask.shape[0], dtype=torch.int64)
        return cls(Memory(encoded.states, encoded.mask, projected), cache, position, slots)

    def next(self, cache: Tensors, slots: Tensors | None = None) -> "DecoderState":
        """The state one token later."""
        return DecoderState(self.memory, cache, self.position + 1, self.slots if slots is None else slots)

    def select(self, rows: Tensor) -> "DecoderState":
        """Reorders, repeats or drops rows for beam search; every sentence must then have the same number."""
        return self._replace(cache=tuple(c[rows] for c in self.cache), position=self.position[rows])

    def keep(self, sentences: Tensor) -> "DecoderState":
        """Keeps only these sentences, with all their rows."""
        beams = self.position.shape[0] // self.memory.mask.shape[0]
        rows = (sentences[:, None] * beams + torch.arange(beams, device=sentences.device)).flatten()
        slots = tuple(s[sentences] for s in self.slots)
        return DecoderState(self.memory.keep(sentences), *self.select(rows)[1:3], slots)


class StepOutput(NamedTuple):
    """One step of a decoder for every row."""

    logits: Tensor  # [rows, vocab], or log probabilities
    alignments: Tensor | None  # [rows, positions], a distribution over the source; None without attention
    state: DecoderState


def over_tokens(alignments: Tensor, src_mask: Tensor, tokens_per_position: int) -> Tensor:
    """Alignments over source tokens, ``[rows, src_len]``, from those over positions, whose tokens share their weight.

    ``src_mask`` is ``[sentences, src_len]`` bool, True = real token; there are some beams for each sentence.
    """
    if tokens_per_position == 1:
        return alignments
    position = torch.arange(src_mask.shape[1], device=src_mask.device) // tokens_per_position
    earlier = position * tokens_per_position  # tokens of earlier positions
    sharing = (src_mask.sum(1, keepdim=True) - earlier).clamp(1, tokens_per_position)  # [sentences, src_len]
    share = src_mask.to(alignments.dtype) / sharing
    by_beam = alignments.unflatten(0, (src_mask.shape[0], -1))  # [sentences, beams, positions]
    return (by_beam[:, :, position] * share[:, None]).flatten(0, 1)


class Encoder(nn.Module):
    """Reads source sentences; subclasses set both attributes."""

    embedding: nn.Embedding | None  # None: the source is not read
    description: EncoderDescription

    def forward(self, src_tokens: Tensor, src_mask: Tensor) -> EncoderOutput:
        """Encodes ``[batch, src_len]`` token ids; True in ``src_mask`` marks real tokens.

        With a ``feature_dim`` it also takes ``src_features`` ``[batch, src_len, feature_dim]``, 0 where there is none.
        """
        raise NotImplementedError


class Decoder(nn.Module):
    """Predicts the next target token; built with ``embeddings=``, ``encoder=`` (its description) and own options."""

    output_projection: nn.Linear | OutputLayer  # features to logits or log probabilities; subclasses set it
    copies_source = False  # whether it reads source ids as target ids
    takes_shortlist = True  # whether a step can compute only some of the words
    alignments_name = ""  # which of several heads its alignments come from, such as "layer 1, head 0"

    def __init__(self, embeddings: Embeddings, dropout: float) -> None:
        super().__init__()
        self.embedding = embeddings.tgt
        self.dropout = Dropout(dropout)

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The state before the first token, one row for each sentence."""
        raise NotImplementedError

    def features(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Teacher forcing from a fresh state: ``[batch, tgt_len]`` tokens read -> ``[batch, tgt_len, features]``."""
        return self.features_and_alignments(tgt_tokens, state)[0]

    def features_and_alignments(self, tgt_tokens: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """``features``, and the alignments that the same steps return, ``[batch, tgt_len, positions]``."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: DecoderState) -> StepOutput:
        """Reads one token for each row, ``[rows]``."""
        raise NotImplementedError

    def forward(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """Teacher forcing: ``[batch, tgt_len, vocab]`` logits of the token that follows each token read."""
        return self.output_projection(self.features(tgt_tokens, state))

    def source_attention(self) -> list[nn.Module]:
        """The modules that attend to the source; if there are any, every step returns alignments."""
        return []

    @property
    def has_attention(self) -> bool:
        """Tells whether steps return alignments."""
        return bool(self.source_attention())

    def all_heads(self, tgt_tokens: Tensor, state: DecoderState) -> Tensor:
        """The attention of each head, ``[layers, heads, batch, tgt_len, positions]``, where there are several."""
        raise NotImplementedError


class CountedDecoder(Decoder):
    """A decoder estimated by counting training sentences, not by gradients; its tables are buffers."""

    def count_ngrams(self, sentences: Callable[[], Iterable[tuple[Tensor, Tensor]]]) -> None:
        """Counts n-grams; each call of ``sentences`` yields all targets in parts: ids (no BOS, no EOS) and lengths."""
        raise NotImplementedError

    def make_room(self, weights: Mapping[str, Tensor]) -> None:
        """Resizes the tables to fit the weights of a file, which are keyed by name; copies no values."""
        for path, module in self.named_modules():
            for name, table in [*module.named_buffers(recurse=False)]:
                saved = weights.get(f"{path}.{name}")
                if saved is not None and saved.dim() == 1 and saved.numel():
                    setattr(module, name, table.new_zeros(saved.shape))

    def problem(self) -> str | None:
        """Describes what is wrong with tables from a file; None if they can be used."""
        raise NotImplementedError
