"""SentencePiece models as lists of pieces: read, changed, and written with the special pieces of this lab."""

import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer, sentencepiece_model_pb2

from softsearch.errors import ConfigError, in_short
from softsearch.text.tokenizer import Kind
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK

_schema: Any = sentencepiece_model_pb2  # whose names protobuf makes when it is imported
_Type = _schema.ModelProto.SentencePiece.Type
USER_DEFINED: int = _Type.Value("USER_DEFINED")  # one piece wherever a text has it
UNUSED: int = _Type.Value("UNUSED")  # decoded as text, never the result of a segmentation
_KINDS: dict[int, Kind] = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}  # SentencePiece's numbers
_SPECIAL = {"pad": "CONTROL", "unk": "UNKNOWN", "bos": "CONTROL", "eos": "CONTROL"}  # by id


class Piece(NamedTuple):
    """A piece of text.

    Attributes:
        text: its characters; U+2581 stands for a space.
        score: log probability (unigram) or rank of the merge, negative (BPE).
        type: SentencePiece's number for it: normal, user-defined, byte, unused.
    """

    text: str
    score: float
    type: int = _Type.Value("NORMAL")


def read_pieces(model: bytes, name: str) -> dict[int, Piece]:
    """Returns the pieces of text of a model by their ids in the file, without its special pieces.

    Args:
        model: the bytes of a ``.model`` or ``.spm`` file.
        name: of the file, for messages.

    Raises:
        ConfigError: the bytes are not a SentencePiece model.
    """
    special = {_Type.Value("CONTROL"), _Type.Value("UNKNOWN")}
    pieces = enumerate(_parse(model, name).pieces)
    return {index: Piece(p.piece, p.score, p.type) for index, p in pieces if p.type not in special}


def with_pieces(model: bytes, pieces: Sequence[Piece], name: str) -> bytes:
    """Returns a model that normalises and segments as ``model``, with the special pieces of this lab and ``pieces``.

    Piece ``i`` has the id ``EOS + 1 + i``. The texts must be different. Arguments as in :func:`read_pieces`.

    Raises:
        ConfigError: the bytes are not a SentencePiece model, or a piece is not text.
    """
    proto = _parse(model, name)
    del proto.pieces[:]
    for special, kind in _SPECIAL.items():
        proto.pieces.add(piece="\n" + special, score=0.0, type=_Type.Value(kind))  # text that no line can hold
    for piece in pieces:
        try:
            proto.pieces.add(piece=piece.text, score=piece.score, type=piece.type)
        except UnicodeEncodeError as error:
            raise ConfigError(f"{name} has the piece {piece.text!r:.60}, half a character; take another") from error
    spec = proto.trainer_spec
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNK, BOS, EOS
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = (p.piece for p in proto.pieces[: len(_SPECIAL)])
    spec.unk_surface = " \u2047" if _KINDS.get(spec.model_type) == "word" else "\u2047"  # as training writes it
    spec.vocab_size = len(proto.pieces)
    return bytes(proto.SerializeToString(deterministic=True))


def with_joiner(model: bytes, joiner: str) -> bytes:
    """Returns a model that segments as ``model`` and leaves out ``joiner`` when it decodes."""
    rule = " ".join(f"{ord(char):X}" for char in joiner)
    rules = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rule.tsv")
        path.write_text(f"{rule}\t\n", encoding="utf-8")
        SentencePieceTrainer.train(
            sentence_iterator=iter(["a"]),
            model_writer=rules,
            model_type="word",
            vocab_size=9,
            hard_vocab_limit=False,
            denormalization_rule_tsv=str(path),
            minloglevel=2,
        )
    proto, compiled = _parse(model, "the model"), _parse(rules.getvalue(), "the rule").denormalizer_spec
    compiled.ClearField("normalization_rule_tsv")  # the path
    proto.denormalizer_spec.CopyFrom(compiled)
    return bytes(proto.SerializeToString(deterministic=True))


def with_normalizer(model: bytes, charsmap: bytes) -> bytes:
    """Returns a model that replaces characters by a compiled map of SentencePiece, and nothing where it is empty."""
    proto = _parse(model, "the model")
    proto.normalizer_spec.name, proto.normalizer_spec.precompiled_charsmap = "user_defined", charsmap
    return bytes(proto.SerializeToString(deterministic=True))


def kind_of(model: bytes, name: str) -> Kind:
    """Returns the unit of a model's pieces; arguments and errors as in :func:`read_pieces`."""
    return _KINDS[_parse(model, name).trainer_spec.model_type]


def spelling(model: bytes, name: str) -> Callable[[str], list[int]]:
    """Returns a function from the text of a piece to the ids that ``model`` writes it with, inside or before a word."""
    proto = _parse(model, name)
    proto.normalizer_spec.add_dummy_prefix = proto.normalizer_spec.remove_extra_whitespaces = False
    processor = processor_of(proto.SerializeToString(), name)
    return lambda text: list(processor.encode(text.replace("\u2581", " ")))


def processor_of(model: bytes, name: str) -> SentencePieceProcessor:
    """Returns what splits text by a model; arguments and errors as in :func:`read_pieces`."""
    try:
        return SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise ConfigError(
            f"{name} is not a SentencePiece model ({in_short(error)}); expected a .model or .spm file"
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
