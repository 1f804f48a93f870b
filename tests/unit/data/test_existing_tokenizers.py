"""Tokenizers that exist before the data take the place of a trainer."""

import pytest

from softsearch.data.existing_tokenizers import ExistingTokenizers, identity
from softsearch.errors import ConfigError
from softsearch.text.tokenizer import Kind, TokenizerTrainer, train_tokenizer

LINES = ["<2de> one two three", "<2de> two three four", "drei zwei eins"] * 3
OLD = train_tokenizer(LINES, kind="bpe", vocab_size=40, tags=["<2de>"])
OTHER = train_tokenizer(LINES, kind="char", vocab_size=30)


def given(**options: object) -> ExistingTokenizers:
    return ExistingTokenizers(**{"models": (OLD.model, OLD.model), "origin": "init=a.ckpt"} | options)  # type: ignore[arg-type]


def test_they_come_back_as_they_are() -> None:
    src, tgt = given().train(["any"], ["text"], tags=["<2de>"])
    assert src is tgt
    assert src.model == OLD.model
    assert given().kinds == ("bpe", "bpe")
    src, tgt = given(models=(OLD.model, OTHER.model)).train([], [])
    assert (src.model, tgt.model) == (OLD.model, OTHER.model)
    assert given(models=(OLD.model, OTHER.model)).kinds == ("bpe", "char")
    assert given(models=(OLD.model, OTHER.model)).vocab_size == OTHER.vocab_size


def test_a_tag_without_a_piece_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"init=a\.ckpt has no piece for the tag <2fr>.*init\.vocabulary=grow"):
        given().train([], [], tags=["<2de>", "<2fr>"])


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "char"])
def test_grown_ones_have_the_tag_of_one_more_language(kind: Kind) -> None:
    old = train_tokenizer(LINES, kind=kind, vocab_size=40, tags=["<2de>"])
    grow = TokenizerTrainer(vocab_size=60)  # whose kind is that of the old one
    new, _ = given(models=(old.model, old.model), grow=grow).train(LINES, ["deux trois"], tags=["<2de>", "<2fr>"])
    assert new.encode("<2de>") == old.encode("<2de>")
    assert new.pieces(new.encode("<2fr> two"))[0] == "\u2581<2fr>"
    assert new.decode(new.encode("deux trois")) == "deux trois"


def test_what_they_depend_on_is_the_models() -> None:
    assert identity(given()) == identity(given(origin="elsewhere", sampling=0.1))
    assert identity(given()) != identity(given(models=(OLD.model, OTHER.model)))
    assert (
        identity(TokenizerTrainer())
        == identity(TokenizerTrainer(sampling=0.1))
        != identity(TokenizerTrainer(kind="unigram"))
    )
