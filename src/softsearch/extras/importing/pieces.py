"""Types of SentencePiece's pieces, and normalisation from its compiled rules."""

from typing import Any

from sentencepiece import sentencepiece_model_pb2

_schema: Any = sentencepiece_model_pb2  # protobuf creates its names on import
_Piece = _schema.ModelProto.SentencePiece
USER_DEFINED: int = _Piece.USER_DEFINED  # one piece wherever it occurs in a text
UNUSED: int = _Piece.UNUSED  # decoded as text, never the result of a segmentation
CONTROL: int = _Piece.CONTROL  # decoded as nothing, never in a text


def with_normalizer(model: bytes, charsmap: bytes) -> bytes:
    """Returns a model that replaces characters by SentencePiece's compiled map; an empty map replaces nothing."""
    proto = _schema.ModelProto.FromString(model)
    proto.normalizer_spec.name, proto.normalizer_spec.precompiled_charsmap = "user_defined", charsmap
    return bytes(proto.SerializeToString(deterministic=True))
