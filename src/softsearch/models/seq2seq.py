"""A model: an encoder and a decoder (``softsearch.models.interface``), built from their parts."""

from collections.abc import Callable

from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import Decoder, DecoderState, Encoder, EncoderOutput
from softsearch.text.vocabulary import PAD


def _kind(feature_dim: int | None) -> str:
    return "text alone" if feature_dim is None else f"feature vectors of {feature_dim} values"


class Seq2Seq(nn.Module):
    """An encoder and a decoder, built from their parts.

    Args:
        src_vocab_size: source vocabulary, specials included.
        tgt_vocab_size: target vocabulary, specials included.
        embeddings: called with both sizes, returns the ``Embeddings``.
        encoder: called with ``embedding=`` of the source, returns the ``Encoder``.
        decoder: called with ``embeddings=`` and ``encoder=``, returns the ``Decoder``.
        init: called with the model, sets its parameters (``softsearch.models.init``); by default each part does.
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
        matrices = embeddings(src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size)
        self.encoder = encoder(embedding=matrices.src)
        self.decoder = decoder(embeddings=matrices, encoder=self.encoder.description)
        self.tgt_vocab_size = tgt_vocab_size
        if init is not None:
            init(self)

    def encode(
        self, src_tokens: Tensor, src_features: Tensor | None = None, src_mask: Tensor | None = None
    ) -> DecoderState:
        """The decoder's first state; arguments and errors are those of ``read_source``."""
        return self.decoder.init_state(self.read_source(src_tokens, src_features, src_mask))

    def read_source(
        self, src_tokens: Tensor, src_features: Tensor | None = None, src_mask: Tensor | None = None
    ) -> EncoderOutput:
        """Encodes padded sources ``[batch, src_len]``.

        ``src_mask`` is True where a token is real, by default where it is not PAD.

        Raises:
            ConfigError: the data has features that the encoder does not read, or lacks those that it does.
        """
        found, expected = None if src_features is None else src_features.shape[2], self.encoder.description.feature_dim
        if found != expected:
            raise ConfigError(
                f"model.encoder is a {type(self.encoder).__name__}, which reads {_kind(expected)} (feature_dim), but "
                f"data has {_kind(found)}; change model or data"
            )
        features = () if src_features is None else (src_features.to(next(self.parameters()).dtype),)
        mask = src_tokens != PAD if src_mask is None else src_mask
        encoded: EncoderOutput = self.encoder(src_tokens, mask, *features)
        return encoded._replace(src_tokens=src_tokens)

    def features(self, src_tokens: Tensor, tgt_tokens: Tensor, src_features: Tensor | None = None) -> Tensor:
        """Teacher forcing without the output layer: ``[batch, tgt_len, features]``."""
        return self.decoder.features(tgt_tokens, self.encode(src_tokens, src_features))

    def forward(self, src_tokens: Tensor, tgt_tokens: Tensor, src_features: Tensor | None = None) -> Tensor:
        """Teacher forcing: ``[batch, src_len]`` and ``[batch, tgt_len]`` -> logits ``[batch, tgt_len, vocab]``."""
        return self.decoder(tgt_tokens, self.encode(src_tokens, src_features))

    def weights(self) -> list[Tensor]:
        """The parameters and the counted tables, each once."""
        return [*self.parameters(), *self.buffers()]

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """The parameters by part, each parameter once: a tied output matrix belongs to the embeddings."""
        parts: dict[str, list[nn.Module]] = {  # a shared parameter belongs to the last part that has it
            "decoder": [self.decoder],
            "output": [self.decoder.output_projection],
            "attention": self.decoder.source_attention(),
            "encoder": [self.encoder],
            "embeddings": [m for m in (self.encoder.embedding, self.decoder.embedding) if m is not None],
        }
        part_of = {p: part for part, modules in parts.items() for module in modules for p in module.parameters()}
        return {part: [p for p in part_of if part_of[p] == part] for part in dict.fromkeys(part_of.values())}
