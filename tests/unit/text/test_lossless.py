"""What comes back when text is encoded and decoded, and what does not."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer

# Letters, marks, spaces of all kinds, line separators, signs that SentencePiece or the lab use for something.
ALPHABET = "abc \t\u00a0\u2003\u3000\u200b\u200d\u0301\u0308\u00e9\u2028\x85\x01\u2047\ufb01\u212b\u05d0<s>/2\U0001f468"
SUBWORDS_AND_CHARACTERS: tuple[Kind, ...] = ("char", "bpe", "unigram")


@cache
def of_alphabet(kind: Kind) -> SentencePieceTokenizer:
    lines = [f"{one}{two} {two}{one}a" for one in ALPHABET for two in ALPHABET]
    return train_tokenizer([*lines, "abc </s> <2de> ab"] * 2, kind=kind, vocab_size=90)


def without_surplus_spaces(text: str) -> str:
    return " ".join(part for part in text.split(" ") if part)


@pytest.mark.parametrize("kind", SUBWORDS_AND_CHARACTERS)
@given(text=st.text(ALPHABET))
def test_nothing_but_surplus_spaces_is_lost(kind: Kind, text: str) -> None:
    for reverse in (False, True):
        tokenizer = SentencePieceTokenizer(of_alphabet(kind).model, reverse=reverse)
        assert tokenizer.decode(tokenizer.encode(text)) == without_surplus_spaces(text)


@pytest.mark.parametrize("kind", SUBWORDS_AND_CHARACTERS)
@settings(max_examples=20)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x1f\r\n\u2581\u2585"), min_size=1))
def test_any_text_in_the_corpus_comes_back(kind: Kind, text: str) -> None:
    tokenizer = train_tokenizer([text, "a"], kind=kind, vocab_size=len(text) + 20)
    assert tokenizer.decode(tokenizer.encode(text)) == without_surplus_spaces(text)


@pytest.mark.parametrize("kind", SUBWORDS_AND_CHARACTERS)
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  a  b ", "a b"),
        ("a\u2581b", "a b"),
        ("\u2581a\u2581", "a"),
        ("a\u2585b", "a\u2047b"),
        ("a\x1fb\0", "a\u2047b\u2047"),
        ("\u20aca", "\u2047a"),
    ],
)
def test_what_is_not_kept(kind: Kind, text: str, kept: str) -> None:
    tokenizer = of_alphabet(kind)
    assert tokenizer.decode(tokenizer.encode(text)) == kept


WORDS = ["one", "small", "h\u00e4user", "<s>", "a\u0301", "x\u00a0y"]


@cache
def of_words() -> SentencePieceTokenizer:
    return train_tokenizer([" ".join(WORDS)], kind="word", vocab_size=11)


@given(st.lists(st.sampled_from(WORDS)))
def test_words_that_are_known_come_back(words: list[str]) -> None:
    assert of_words().decode(of_words().encode("  ".join(words))) == " ".join(words)
