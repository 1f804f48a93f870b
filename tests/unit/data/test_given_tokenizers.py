"""Tokenizers that exist before the data take the place of a trainer."""

import pytest

from softsearch.data.given_tokenizers import GivenTokenizers, identity
from softsearch.errors import ConfigError
from softsearch.text.tokenizer import TokenizerTrainer, train_tokenizer

LINES = ["<2de> one two three", "<2de> two three four", "drei zwei eins"] * 3
OLD = train_tokenizer(LINES, kind="bpe", vocab_size=40, tags=["<2de>"])
OTHER = train_tokenizer(LINES, kind="char", vocab_size=30)


def given(**options: object) -> GivenTokenizers:
    return GivenTokenizers(**{"models": (OLD.model, OLD.model), "origin": "init=a.ckpt"} | options)  # type: ignore[arg-type]


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


def test_what_they_depend_on_is_the_models() -> None:
    assert identity(given()) == identity(given(origin="elsewhere", sampling=0.1))
    assert identity(given()) != identity(given(models=(OLD.model, OTHER.model)))
    assert (
        identity(TokenizerTrainer())
        == identity(TokenizerTrainer(sampling=0.1))
        != identity(TokenizerTrainer(kind="unigram"))
    )
