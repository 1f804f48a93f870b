"""Tokenizers that exist before the data: of a checkpoint or a file, in the place of those trained on a run's text."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from softsearch.errors import ConfigError
from softsearch.ranges import Share
from softsearch.text.sentencepiece_file import kind_of
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, Tokenizers
from softsearch.text.vocabulary import UNK


class TokenizerMaker(Protocol):
    """What a preparation makes its tokenizers with: a trainer, or one that has them already."""

    @property
    def vocab_size(self) -> int:
        """The most entries of the target."""

    @property
    def sampling(self) -> float:
        """``alpha`` of subword sampling in training; 0 turns it off."""

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The units of source and target."""

    def train(self, src_lines: Iterable[str], tgt_lines: Iterable[str], tags: Sequence[str] = ()) -> Tokenizers:
        """Returns the tokenizers; the same object twice if the sides share one vocabulary."""


@dataclass(frozen=True, kw_only=True)
class GivenTokenizers:
    """Tokenizers for a preparation that trains none.

    Args:
        models: of source and target, as :func:`~softsearch.text.sentencepiece_file.with_pieces` writes them.
        origin: where they come from, for messages.
        sampling: see :class:`~softsearch.text.tokenizer.TokenizerTrainer`.

    Raises:
        BundleError: a model is none, or its special ids are not those of this lab.
    """

    models: tuple[bytes, bytes]
    origin: str
    sampling: Share = 0.0

    @property
    def vocab_size(self) -> int:
        """Entries of the target."""
        return SentencePieceTokenizer(self.models[1]).vocab_size

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The units of source and target."""
        src, tgt = (kind_of(model, self.origin) for model in self.models)
        return src, tgt

    def train(self, src_lines: Iterable[str], tgt_lines: Iterable[str], tags: Sequence[str] = ()) -> Tokenizers:
        """Returns the tokenizers as they are, whatever the text.

        Raises:
            ConfigError: the source lacks one of the ``tags``.
        """
        src, tgt = (SentencePieceTokenizer(model) for model in self.models)
        for tag in tags:
            if len(ids := src.encode(tag)) != 1 or UNK in ids:
                raise ConfigError(
                    f"{self.origin} has no piece for the tag {tag} that begins source lines of this data; set "
                    "init.vocabulary=grow, or take a model of these languages"
                )
        return src, src if tgt.model == src.model else tgt


def identity(maker: TokenizerMaker) -> Mapping[str, Any]:
    """What the tokenizers depend on beside the text, as plain values; sampling is done in training."""
    options: dict[str, Any] = {k: v for k, v in asdict(maker).items() if k not in ("sampling", "origin")}  # type: ignore[call-overload]  # all are dataclasses
    if "models" in options:
        options["models"] = [hashlib.sha256(model).hexdigest() for model in options["models"]]
    return options
