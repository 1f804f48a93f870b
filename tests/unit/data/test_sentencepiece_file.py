"""Models of SentencePiece as lists of pieces."""

import io
from typing import Any

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from softsearch.data.sentencepiece_file import Piece, read_pieces, with_pieces
from softsearch.errors import ConfigError
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer

TYPES: Any = sentencepiece_model_pb2.ModelProto.SentencePiece  # of pieces

LINES = ["ein Hund läuft über die Wiese", "zwei Hunde laufen", "die Wiese ist grün", "ein Mann läuft"] * 5


def foreign(kind: str) -> bytes:
    """A model with SentencePiece's own special pieces and normalisation, as others train them."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, model_type=kind, vocab_size=30, minloglevel=2
    )
    return model.getvalue()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_model_of_others_segments_as_before_with_our_special_pieces(kind: str) -> None:
    theirs = sentencepiece.SentencePieceProcessor(model_proto=foreign(kind))
    pieces = read_pieces(foreign(kind), "x.spm")
    ours = SentencePieceTokenizer(with_pieces(foreign(kind), list(pieces.values()), "x.spm"))
    ids = {old: 4 + new for new, old in enumerate(pieces)}
    for line in [*LINES, "Ｅin  Hund", "ﬁn"]:
        before = theirs.encode(line)
        assert ours.encode(line) == [ids.get(token, 1) for token in before]
        assert ours.pieces(ours.encode(line)) == [
            p if p != "<unk>" else "<unk>" for p in map(theirs.id_to_piece, before)
        ]
    assert ours.encode("<s> </s>") != [2, 3]


def test_a_model_of_ours_stays_the_same() -> None:
    model = train_tokenizer(LINES, kind="bpe", vocab_size=60).model
    again = SentencePieceTokenizer(with_pieces(model, list(read_pieces(model, "x").values()), "x"))
    assert again.vocabulary() == SentencePieceTokenizer(model).vocabulary()
    assert again.encode("ein Hund unk") == SentencePieceTokenizer(model).encode("ein Hund unk")


def test_an_unused_piece_is_decoded_and_never_found() -> None:
    model = train_tokenizer(LINES, kind="unigram", vocab_size=60).model
    pieces = [*read_pieces(model, "x").values(), Piece("\u2581läuft\u2581über", 0.0, TYPES.UNUSED)]
    tokenizer = SentencePieceTokenizer(with_pieces(model, pieces, "x"))
    last = tokenizer.vocab_size - 1
    assert last not in tokenizer.encode("er läuft über die Wiese")
    assert tokenizer.decode([last]) == "läuft über"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04K\x01."])
def test_a_file_that_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(ConfigError, match=r"x.spm is not a SentencePiece model"):
        read_pieces(content, "x.spm")


@pytest.mark.parametrize("option", [{"add_dummy_prefix": False}, {"treat_whitespace_as_suffix": True}])
def test_a_model_that_cannot_find_tags_at_the_start_of_lines_gets_none(option: dict[str, bool]) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["one two"]), model_writer=model, vocab_size=20, hard_vocab_limit=False, minloglevel=2,
        **option,
    )  # fmt: skip
    pieces = list(read_pieces(model.getvalue(), "x.spm").values())
    with_pieces(model.getvalue(), pieces, "x.spm")
    with pytest.raises(ConfigError, match=r"x\.spm puts no space before the first word .* add_dummy_prefix=true"):
        with_pieces(model.getvalue(), [*pieces, Piece("\u2581<2de>", 0.0, TYPES.USER_DEFINED)], "x.spm")
