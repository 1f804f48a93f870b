"""Unknown words replaced: by hand-made attention, in both orders of ids, and against a loop of its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import ConfigError, InputError
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.unknown_words import UnknownWords
from softsearch.text.vocabulary import UNK

SRC = train_tokenizer(["the a dog cat sees"] * 3, kind="word", vocab_size=20)
TGT = train_tokenizer(["der eine Hund Katze sieht"] * 3, kind="word", vocab_size=20)
DICTIONARY = {"poodle": "Pudel", "the": "das", "hot": "heißer Hund"}


def looking_at(places: list[int], src_len: int) -> NDArray[np.float32]:
    """Attention of which 0.6 goes to one place and the rest is shared."""
    weights = np.full((len(places), src_len), 0.4 / src_len, dtype=np.float32)
    weights[np.arange(len(places)), places] += 0.6
    return weights


def test_an_unknown_word_is_translated_or_copied() -> None:
    replace = UnknownWords(SRC, TGT, DICTIONARY)
    der, sieht = TGT.encode("der sieht")
    source = "the poodle sees Rex"
    assert len(SRC.encode(source)) == 4
    tokens = [der, UNK, sieht, UNK]
    assert replace(source, tokens, looking_at([0, 1, 2, 3, 4], 5)) == "der Pudel sieht Rex"
    assert replace(source, tokens, looking_at([0, 3, 2, 0], 5)) == "der Rex sieht das"
    assert UnknownWords(SRC, TGT, {})(source, tokens, looking_at([0, 1, 2, 3], 5)) == "der poodle sieht Rex"


def test_the_dictionary_has_words_in_other_forms() -> None:
    replace = UnknownWords(SRC, TGT, {"caf\u00e9": "Kaffee", "\u0643\u064a": "ki", "rock'n'roll": "Rock"})
    source = "cafe\u0301 \uff43af\u00e9 \u0643\u064a rock\u2019n\u2019roll"
    assert replace(source, [UNK] * 4, looking_at([0, 1, 2, 3], 5)) == "Kaffee Kaffee ki Rock"


def test_a_look_at_the_end_falls_to_the_best_word() -> None:
    weights = np.array([[0.1, 0.3, 0.6]])
    assert UnknownWords(SRC, TGT, {})("the Rex", [UNK], weights) == "Rex"


def test_a_language_tag_is_no_word() -> None:
    tagged = train_tokenizer(["<2de> the dog"] * 3, kind="word", vocab_size=10, tags=["<2de>"])
    replace = UnknownWords(tagged, TGT, {})
    assert replace("<2de> the Rex", [UNK], np.array([[0.8, 0.0, 0.1, 0.1]])) == "Rex"


def test_unknown_words_side_by_side_are_replaced_one_by_one() -> None:
    source = "the hot poodle Rex sees"
    replace = UnknownWords(SRC, TGT, DICTIONARY)
    assert SRC.encode(source).count(UNK) == 3
    assert replace(source, [UNK, UNK], looking_at([3, 1], 6)) == "Rex heißer Hund"
    assert replace(source, TGT.encode("der Hund Fifi Rex"), looking_at([0, 1, 2, 3], 6)) == "der Hund Pudel Rex"


def test_a_source_without_words_leaves_nothing_in_the_place() -> None:
    (der,) = TGT.encode("der")
    assert UnknownWords(SRC, TGT, {})("", [der, UNK], np.ones((2, 1))) == "der"


@pytest.mark.parametrize("reverse", [(True, False), (False, True), (True, True)])
def test_ids_that_run_backwards_change_nothing_in_the_text(reverse: tuple[bool, bool]) -> None:
    source, places = "the poodle sees Rex", [3, 0, 1]
    src, tgt = (SentencePieceTokenizer(t.model, reverse=r) for t, r in zip((SRC, TGT), reverse, strict=True))
    tokens = [UNK, TGT.encode("der")[0], UNK]
    weights = looking_at(places, 5)
    if reverse[0]:
        weights = weights[:, [3, 2, 1, 0, 4]]
    if reverse[1]:
        tokens, weights = tokens[::-1], weights[::-1]
    assert UnknownWords(src, tgt, DICTIONARY)(source, tokens, weights) == "Rex der Pudel"


@given(words=st.lists(st.sampled_from(["der", "eine", "Hund", "Katze", "sieht"]), max_size=6))
def test_without_unknown_words_the_text_is_the_tokenizer_s(words: list[str]) -> None:
    tokens = TGT.encode(" ".join(words))
    assert UnknownWords(SRC, TGT, DICTIONARY)("the poodle", tokens, None) == " ".join(words) == TGT.decode(tokens)


@given(text=st.text(st.sampled_from("a the\tdog \u2581xü\u00a0\0"), max_size=20))
def test_every_id_has_its_words(text: str) -> None:
    words, ids = SRC.words(text), SRC.encode(text)
    assert len(words) == len(ids)
    for word, token in zip(words, ids, strict=True):
        assert token == UNK or SRC.decode([token]) == word
    assert words == list(filter(None, text.replace("\u2581", " ").split(" ")))


def test_no_alignments_are_an_error_only_where_they_are_needed() -> None:
    with pytest.raises(InputError, match="needs alignments"):
        UnknownWords(SRC, TGT, {})("the Rex", [UNK], None)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_smaller_units_than_words_are_refused(side: str, kind: str) -> None:
    pieces = train_tokenizer(["the dog sees a cat", "hotdogs"] * 3, kind=kind, vocab_size=22)  # type: ignore[arg-type]
    src, tgt = (pieces, TGT) if side == "source" else (SRC, pieces)
    with pytest.raises(ConfigError, match=f"the {side} vocabulary has smaller units"):
        UnknownWords(src, tgt, {})
