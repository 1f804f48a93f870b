"""The ``tokenizer.json`` of a bundle gives our ids and our text."""

import io
import logging
from functools import cache
from typing import Any

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer

from softsearch.data.sentencepiece_file import Piece, read_pieces, with_folding, with_pieces
from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK

TYPES: Any = sentencepiece_model_pb2.ModelProto.SentencePiece  # of pieces

TAGS = ("<2d", "<2de>")
WORDS = (
    "abab",
    "aba",
    " ",
    "  ",
    "a",
    "b",
    "c",
    *TAGS,
    "\u2581",
    "\t",
    "\u00a0",
    "e\u0301",
    "</s>",
    "\neos",
    "\0",
    "\u4e2d",
    "\U0010fffd",
    "a\u0302\u0323",
    "a\u0323",
    "\ufb01\uff42\uff11\uff04",
    "\u3000\x1d\u2028",
    "\ufeff\u00ad\U000e0001",
    "\u1100\u1161\u11a8",
)
KINDS: tuple[Kind, ...] = ("word", "char", "bpe", "unigram")


@cache
def trained(kind: Kind, tags: tuple[str, ...] = TAGS) -> SentencePieceTokenizer:
    """As the lab has it, with rules of folding."""
    lines = [f"{one}{two} {two}{one}a" for one in WORDS[:13] for two in WORDS[:13]] + ["\u1ead\u00e2 fi \uac01 1$"]
    return SentencePieceTokenizer(with_folding(train_tokenizer(lines, kind=kind, vocab_size=66, tags=tags).model))


@cache
def read(kind: Kind) -> Tokenizer:
    files = tokenizer_files((trained(kind), trained(kind)))
    return Tokenizer.from_str(files["tokenizer.json"].decode())


@pytest.mark.parametrize("kind", KINDS)
@given(parts=st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), max_size=20))
def test_ids_and_texts_are_ours(kind: Kind, parts: list[str]) -> None:
    text, ours, theirs = "".join(parts), trained(kind), read(kind)
    ids = ours.encode(text)
    found = theirs.encode(text).ids
    if kind == "unigram" and sorted(found) == sorted([*ids, EOS]):  # pieces in another order are as likely
        found = [*ids, EOS]
    assert found == [*ids, EOS]
    assert theirs.decode([BOS, *ids, EOS, PAD], skip_special_tokens=False) == ours.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_the_host_can_tell_the_special_ids(kind: Kind) -> None:
    theirs, ours = read(kind), trained(kind)
    assert theirs.get_vocab_size() == ours.vocab_size
    assert [theirs.token_to_id(f"\n{name}") for name in ("pad", "unk", "bos", "eos")] == [PAD, UNK, BOS, EOS]
    assert theirs.encode("<2de> a", add_special_tokens=False).ids == ours.encode("<2de> a")
    assert theirs.decode([UNK]).strip() == "\u2047"


def test_two_vocabularies_have_a_file_each_and_a_reversed_side_none(caplog: pytest.LogCaptureFixture) -> None:
    src, tgt = trained("bpe"), trained("unigram")
    assert list(tokenizer_files((src, tgt))) == ["src.tokenizer.json", "tgt.tokenizer.json"]
    assert not caplog.messages
    reversed_src = SentencePieceTokenizer(tgt.model, reverse=True)
    assert list(tokenizer_files((reversed_src, tgt))) == ["tgt.tokenizer.json"]
    assert caplog.messages == [
        "src.tokenizer.json was not written, so hosts need SentencePiece: its ids run from the end of the text"
    ]


def foreign(lines: list[str], **options: object) -> SentencePieceTokenizer:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, hard_vocab_limit=False, minloglevel=2, **options
    )
    pieces = list(read_pieces(model.getvalue(), "foreign").values())
    return SentencePieceTokenizer(with_pieces(model.getvalue(), pieces, "foreign"))


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc"},
        {"model_type": "bpe", "normalization_rule_name": "nmt_nfkc_cf"},
        {"model_type": "char", "normalization_rule_name": "nfkc"},
        {"model_type": "word", "normalization_rule_name": "nfkc_cf"},
        {"model_type": "unigram", "add_dummy_prefix": False, "remove_extra_whitespaces": False},
        {"model_type": "bpe", "user_defined_symbols": ["<SEP>", "<sep>"]},
        {"model_type": "unigram", "treat_whitespace_as_suffix": True},
    ],
)
def test_a_model_of_another_tool_keeps_its_normalisation(
    options: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["Two OLD men, one dog <sep>", "a wo\ufb01 \uff26ull \u00bd", "caf\u00e9 na\u00efve\u00a0text"]
    ours = foreign(lines * 5, vocab_size=60, **options)
    theirs = Tokenizer.from_str(tokenizer_files((ours, ours))["tokenizer.json"].decode())
    assert not caplog.messages
    for text in [
        *lines,
        "  TWO  men ",
        "cafe\u0301 \uff2d\uff25\uff2e\u3000\uff0c",
        "<SEP>x<sep>",
        "\u2460\ttwo\u200bmen\ufeff",
    ]:
        assert theirs.encode(text).ids == [*ours.encode(text), EOS]
        assert theirs.decode(ours.encode(text)) == ours.decode(ours.encode(text))


def test_pieces_that_are_only_written_are_not_read(caplog: pytest.LogCaptureFixture) -> None:
    pieces = list(read_pieces(foreign(["two men"] * 5, model_type="unigram", vocab_size=20).model, "x").values())
    lowest = min(piece.score for piece in pieces)
    written = [Piece(">>men<<", lowest - 1, TYPES.UNUSED), Piece("\u2581two\u2581men", lowest - 2, TYPES.UNUSED)]
    ours = SentencePieceTokenizer(with_pieces(trained("unigram", ()).model, [*pieces, *written], "x"))
    theirs = Tokenizer.from_str(tokenizer_files((ours, ours))["tokenizer.json"].decode())
    assert not caplog.messages
    for text in ("two men", "two >>men<< two men", "\U0010fffd>>men<<"):
        assert theirs.encode(text).ids == [*ours.encode(text), EOS]
    assert theirs.decode([ours.vocab_size - 1, ours.vocab_size - 2]) == "two men>>men<<"


def test_a_file_that_would_give_other_ids_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = foreign(["fi full \ufb01"] * 3, model_type="unigram", vocab_size=300, byte_fallback=True)
    assert tokenizer_files((tokenizer, tokenizer)) == {}
    assert caplog.records[0].levelno == logging.WARNING
    assert "tokenizer.json was not written, so hosts need SentencePiece: " in caplog.messages[0]
    assert "expected" in caplog.messages[0]
