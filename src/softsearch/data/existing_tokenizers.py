"""Existing tokenizers, from a checkpoint or a file, used instead of new ones trained on a run's text."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from softsearch.data.sentencepiece_file import Piece, kind_of, read_pieces, spelling, with_pieces, without_folding
from softsearch.errors import ConfigError
from softsearch.ranges import Share
from softsearch.text.languages import languages_of, nearest_language
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, Tokenizers, TokenizerTrainer
from softsearch.text.vocabulary import SOURCE_TAG, SPECIALS, UNK

_NO_IDENTITY = ("sampling", "origin", "model", "vocabulary")  # ``models`` holds the files' contents


class TokenizerMaker(Protocol):
    """Makes the tokenizers for prepared data: trains them, or returns existing ones."""

    @property
    def vocab_size(self) -> int:
        """The maximum number of target entries."""

    @property
    def sampling(self) -> float:
        """``alpha`` of subword sampling in training; 0 turns it off."""

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The units of source and target."""

    def train(self, src_lines: Iterable[str], tgt_lines: Iterable[str], tags: Sequence[str] = ()) -> Tokenizers:
        """Returns the tokenizers; the same object twice if the sides share one vocabulary."""


@dataclass(frozen=True, kw_only=True)
class ExistingTokenizers:
    """Existing tokenizers for prepared data, which may get new pieces.

    Args:
        models: source and target models, as written by ``with_pieces``.
        origin: their origin, for messages.
        sampling: see ``TokenizerTrainer``.
        grow: trains tokenizers of the same kind on the new text, whose pieces are added after those of ``models``.

    Raises:
        BundleError: a model is not a SentencePiece model, or its special ids differ from this lab's.
    """

    models: tuple[bytes, bytes]
    origin: str
    sampling: Share = 0.0
    grow: TokenizerTrainer | None = None

    @property
    def vocab_size(self) -> int:
        """The number of target entries, without new ones."""
        return SentencePieceTokenizer(self.models[1]).vocab_size

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The units of source and target."""
        src, tgt = (kind_of(model, self.origin) for model in self.models)
        return src, tgt

    def train(self, src_lines: Iterable[str], tgt_lines: Iterable[str], tags: Sequence[str] = ()) -> Tokenizers:
        """Returns the tokenizers, with new pieces that the text needs if they may grow.

        Raises:
            ConfigError: the source lacks one of the ``tags`` or needs others, or the new text does not fit ``grow``.
        """
        src_model, tgt_model = self.models
        if self.grow is not None:
            joint, (src_kind, kind) = src_model == tgt_model, self.kinds
            own = {"src_kind": None, "src_vocab_size": None} if joint else {"src_kind": src_kind}
            trainer = replace(self.grow, kind=kind, joint=joint, sampling=0.0, **own)
            new_src, new_tgt = trainer.train(src_lines, tgt_lines, tags)
            src_model = _grown(src_model, new_src.model, self.origin)
            tgt_model = _grown(tgt_model, new_tgt.model, self.origin)
        src, tgt = SentencePieceTokenizer(src_model), SentencePieceTokenizer(tgt_model)
        languages = languages_of(src)
        codes = list(languages.targets)
        for tag in tags:
            if len(ids := src.encode(tag)) != 1 or UNK in ids:
                advice = "set init.vocabulary=grow, or use a model of these languages"
                if languages.starts:
                    code = tag.strip("<>").removeprefix("from:").removeprefix("2")
                    advice = (
                        f"set src_lang and tgt_lang of each pair to codes of the model: {nearest_language(code, codes)}"
                    )
                raise ConfigError(
                    f"{self.origin} has no piece for the tag {tag} that begins source lines of this data; {advice}"
                )
        if languages.sources and not any(map(SOURCE_TAG.fullmatch, tags)):
            raise ConfigError(
                f"{self.origin} reads the languages of source and target in tags, which the source lines of this data "
                "lack; write data=parallel data.train='[a.en,a.de]', or data=multilingual data.source_tags=true "
                "(docs/recipes.md)"
            )
        return src, src if tgt.model == src.model else tgt


def reads_text(maker: TokenizerMaker) -> bool:
    """Tells whether the tokenizers depend on the text: they are trained on it, or may grow."""
    return not isinstance(maker, ExistingTokenizers) or maker.grow is not None


def identity(maker: TokenizerMaker) -> Mapping[str, Any]:
    """Plain values that, with the text, determine the tokenizers; sampling is part of training.

    Folding rules are excluded: they follow from the pieces, and a run may continue with newer ones.
    """
    options: dict[str, Any] = {k: v for k, v in asdict(maker).items() if k not in _NO_IDENTITY}  # type: ignore[call-overload]  # all are dataclasses
    if "models" in options:
        options["models"] = [hashlib.sha256(without_folding(model)).hexdigest() for model in options["models"]]
    return options


def sources_of_rows(
    old: SentencePieceTokenizer, new: SentencePieceTokenizer, *, spell: bool, name: str
) -> list[list[int]]:
    """Returns for each id of ``new`` the corresponding ids of ``old``: the same piece, or those that spelled it.

    With ``spell`` false, a piece that ``old`` lacks has none; ``name`` is the old model's name, for messages.
    """
    known, split = old.vocabulary(), spelling(old.model, name)
    special: list[list[int]] = [[token] for token in range(len(SPECIALS))]
    return special + [[known[text][0]] if text in known else split(text) if spell else [] for text in new.vocabulary()]


def _grown(model: bytes, other: bytes, name: str) -> bytes:
    """Adds to ``model`` the pieces of ``other`` that it lacks: BPE merges follow its own, others keep their scores."""
    old = list(read_pieces(model, name).values())
    known, lowest = {piece.text for piece in old}, min(piece.score for piece in old)
    new = [piece for piece in read_pieces(other, name).values() if piece.text not in known]
    if kind_of(model, name) == "bpe":
        new = [Piece(piece.text, lowest - rank, piece.type) for rank, piece in enumerate(new, start=1)]
    return with_pieces(model, [*old, *new], name)
