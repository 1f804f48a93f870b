"""The ``tokenizer.json`` of a bundle gives our ids and our text."""

import io
import logging
from functools import cache

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK

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
)
KINDS: tuple[Kind, ...] = ("word", "char", "bpe", "unigram")


@cache
def trained(kind: Kind, tags: tuple[str, ...] = TAGS) -> SentencePieceTokenizer:
    lines = [f"{one}{two} {two}{one}a" for one in WORDS[:13] for two in WORDS[:13]]
    return train_tokenizer(lines, kind=kind, vocab_size=60, tags=tags)


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
        "src.tokenizer.json is left out, hosts need SentencePiece: its ids run from the end of the text"
    ]


def test_a_file_that_would_give_other_ids_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    model = io.BytesIO()
    names = {
        f"{name}_{part}": value
        for value, name in enumerate(("pad", "unk", "bos", "eos"))
        for part, value in (("id", value), ("piece", f"\n{name}"))
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["fi full \ufb01"] * 3), model_writer=model, model_type="char", vocab_size=20,
        hard_vocab_limit=False, normalization_rule_name="nmt_nfkc", minloglevel=2, **names,
    )  # fmt: skip
    tokenizer = SentencePieceTokenizer(model.getvalue())
    assert tokenizer_files((tokenizer, tokenizer)) == {}
    assert caplog.records[0].levelno == logging.WARNING
    assert "tokenizer.json is left out" in caplog.messages[0]
    assert "has the ids" in caplog.messages[0]
