"""SentencePiece models as lists of pieces: read, changed, and written with the special pieces of this lab."""

import hashlib
import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer, sentencepiece_model_pb2

from softsearch.errors import ConfigError, summarize
from softsearch.text.folding import FOLDING, folding_rules, known_characters
from softsearch.text.tokenizer import Kind
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK

_schema: Any = sentencepiece_model_pb2  # protobuf creates its names on import
_Type = _schema.ModelProto.SentencePiece.Type
_KINDS: dict[int, Kind] = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}  # SentencePiece's numbers
_CACHED_MODELS, _SPACE = 8, "\u2581"
_SPECIAL = {"pad": "CONTROL", "unk": "UNKNOWN", "bos": "CONTROL", "eos": "CONTROL"}  # by id


class Piece(NamedTuple):
    """A piece of text.

    Attributes:
        text: the characters; U+2581 stands for a space.
        score: log probability (unigram) or rank of the merge, negative (BPE).
        type: SentencePiece's number for the type: normal, user-defined, byte, unused.
    """

    text: str
    score: float
    type: int = _Type.Value("NORMAL")


def read_pieces(model: bytes, name: str) -> dict[int, Piece]:
    """Returns a model's text pieces by their ids in the file, without special pieces.

    Args:
        model: the bytes of a ``.model`` or ``.spm`` file.
        name: name of the file, for messages.

    Raises:
        ConfigError: the bytes are not a SentencePiece model.
    """
    special = {_Type.Value("CONTROL"), _Type.Value("UNKNOWN")}
    pieces = enumerate(_parse(model, name).pieces)
    return {index: Piece(p.piece, p.score, p.type) for index, p in pieces if p.type not in special}


def with_pieces(model: bytes, pieces: Sequence[Piece], name: str) -> bytes:
    """Returns a model that normalises and segments like ``model``, with this lab's special pieces and ``pieces``.

    Piece ``i`` has the id ``EOS + 1 + i``. Texts must be unique. Arguments as in ``read_pieces``.

    Raises:
        ConfigError: the bytes are not a SentencePiece model, a piece is not text, or the model could not find tags.
    """
    proto = _parse(without_folding(model, name), name)
    del proto.pieces[:]
    for special, kind in _SPECIAL.items():
        proto.pieces.add(piece="\n" + special, score=0.0, type=_Type.Value(kind))  # text that no line can hold
    has_tags = any(piece.type == _Type.Value("USER_DEFINED") and piece.text.startswith(_SPACE) for piece in pieces)
    if has_tags and not (proto.normalizer_spec.add_dummy_prefix and not proto.trainer_spec.treat_whitespace_as_suffix):
        raise ConfigError(
            f"{name} puts no space before the first word of a line (add_dummy_prefix, treat_whitespace_as_suffix), so "
            "it would not find a language tag there; use a model with add_dummy_prefix=true"
        )
    for piece in pieces:
        try:
            proto.pieces.add(piece=piece.text, score=piece.score, type=piece.type)
        except UnicodeEncodeError as error:
            raise ConfigError(f"{name} has the piece {piece.text!r:.60}, half a character; use another") from error
    spec = proto.trainer_spec
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNK, BOS, EOS
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = (p.piece for p in proto.pieces[: len(_SPECIAL)])
    spec.unk_surface = " \u2047" if _KINDS.get(spec.model_type) == "word" else "\u2047"  # as training writes it
    spec.vocab_size = len(proto.pieces)
    return bytes(proto.SerializeToString(deterministic=True))


def with_joiner(model: bytes, joiner: str) -> bytes:
    """Returns a model that segments like ``model`` and removes ``joiner`` when it decodes."""
    proto = _parse(model, "the model")
    as_it_is = dict.fromkeys(("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"), False)
    rules = _schema.NormalizerSpec(name="user_defined", precompiled_charsmap=_charsmap({joiner: ""}), **as_it_is)
    proto.denormalizer_spec.CopyFrom(rules)
    return bytes(proto.SerializeToString(deterministic=True))


@lru_cache(_CACHED_MODELS)
def with_folding(model: bytes) -> bytes:
    """Returns a model that replaces characters it lacks with look-alikes; other text keeps its ids.

    See ``softsearch.text.folding``. A model with its own normalisation is returned unchanged. Single-byte pieces do
    not count: a model has hardly ever seen them instead of a no-break space.
    """
    proto = _parse(model, "the model")
    if proto.normalizer_spec.precompiled_charsmap and proto.normalizer_spec.name != FOLDING:
        return model
    rules = folding_rules(known_characters(proto))
    proto.normalizer_spec.name, proto.normalizer_spec.precompiled_charsmap = FOLDING, _charsmap(rules)
    return bytes(proto.SerializeToString(deterministic=True))


def without_folding(model: bytes, name: str = "the model") -> bytes:
    """Undoes ``with_folding``."""
    proto = _parse(model, name)
    if proto.normalizer_spec.name != FOLDING:
        return model
    proto.normalizer_spec.name, proto.normalizer_spec.precompiled_charsmap = "identity", b""
    return bytes(proto.SerializeToString(deterministic=True))


@lru_cache(_CACHED_MODELS)
def digest_of_pieces(model: bytes) -> str:
    """Returns a hash of what determines the ids of text, without folding, which follows from the pieces."""
    pieces = list(read_pieces(model, "the model").values())
    return hashlib.sha256(with_pieces(model, pieces, "the model")).hexdigest()


def _charsmap(rules: Mapping[str, str]) -> bytes:
    """Compiles replacement rules into SentencePiece's form."""
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.tsv")
        lines = ("\t".join(" ".join(f"{ord(char):X}" for char in side) for side in rule) for rule in rules.items())
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        SentencePieceTrainer.train(
            sentence_iterator=iter(["a"]),
            model_writer=model,
            model_type="word",
            vocab_size=9,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(path),
            minloglevel=2,
        )
    return bytes(_parse(model.getvalue(), "the rules").normalizer_spec.precompiled_charsmap)


def kind_of(model: bytes, name: str) -> Kind:
    """Returns the unit of a model's pieces; arguments and errors as in ``read_pieces``."""
    return _KINDS[_parse(model, name).trainer_spec.model_type]


def spelling(model: bytes, name: str) -> Callable[[str], list[int]]:
    """Returns a function from a piece's text to the ids with which ``model`` spells it, inside or before a word."""
    proto = _parse(model, name)
    proto.normalizer_spec.add_dummy_prefix = proto.normalizer_spec.remove_extra_whitespaces = False
    processor = processor_of(proto.SerializeToString(), name)
    return lambda text: list(processor.encode(text.replace("\u2581", " ")))


def processor_of(model: bytes, name: str) -> SentencePieceProcessor:
    """Returns a SentencePiece processor for a model; arguments and errors as in ``read_pieces``."""
    try:
        return SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise ConfigError(
            f"{name} is not a SentencePiece model ({summarize(error)}); expected a .model or .spm file"
        ) from error


def _parse(model: bytes, name: str) -> Any:
    proto = _schema.ModelProto()
    try:
        proto.ParseFromString(model)
    except DecodeError as error:
        raise ConfigError(f"{name} is not a SentencePiece model ({error}); expected a .model or .spm file") from error
    if not proto.pieces or any(isinstance(piece.piece, bytes) for piece in proto.pieces):
        why = "a piece is not UTF-8" if proto.pieces else "it has no pieces"
        raise ConfigError(f"{name} is not a SentencePiece model ({why}); expected a .model or .spm file")
    return proto
