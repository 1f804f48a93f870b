"""Ids of one tokenizer as ids of another: exact where the pieces are the same, by the text where they are not."""

import pytest

from softsearch.text.id_mapping import id_mapping, same_pieces, texts_of_ids
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK

LINES = ["a black dog runs", "two men are running", "a man with a black hat", "dogs and men"] * 5
BPE = train_tokenizer(LINES, kind="bpe", vocab_size=50)
CHARS = train_tokenizer(LINES, kind="char", vocab_size=40)


def backwards(tokenizer: SentencePieceTokenizer) -> SentencePieceTokenizer:
    return SentencePieceTokenizer(tokenizer.model, reverse=True)


def test_the_same_ids_stay_as_they_are() -> None:
    assert id_mapping(BPE, SentencePieceTokenizer(BPE.model)) is None
    assert id_mapping(backwards(BPE), backwards(BPE)) is None
    assert same_pieces(BPE, backwards(BPE))


def test_the_same_pieces_in_the_other_direction_are_turned_round_whatever_they_are() -> None:
    unusual = [CHARS.encode("x")[0], 9, 9, UNK, 5]  # no segmentation that a tokenizer would choose
    for one, other in ((BPE, backwards(BPE)), (backwards(BPE), BPE)):
        recode = id_mapping(one, other)
        assert recode is not None
        assert recode(unusual) == unusual[::-1]


@pytest.mark.parametrize("one", [BPE, backwards(BPE)])
@pytest.mark.parametrize("other", [CHARS, backwards(CHARS)])
def test_other_pieces_go_through_the_text(one: SentencePieceTokenizer, other: SentencePieceTokenizer) -> None:
    recode = id_mapping(one, other)
    assert recode is not None
    assert not same_pieces(one, other)
    for line in LINES:
        assert recode(one.encode(line)) == other.encode(line)
    assert recode([]) == []


def test_what_one_does_not_know_is_unknown_to_the_other() -> None:
    recode = id_mapping(BPE, CHARS)
    assert recode is not None
    assert UNK in recode(BPE.encode("a 犬 runs"))


def test_each_unknown_word_stays_one() -> None:
    many, few = (train_tokenizer(LINES, kind="word", vocab_size=size) for size in (16, 12))
    recode = id_mapping(many, few)
    assert recode is not None
    for line in (*LINES, "x y a z"):
        assert len(recode(many.encode(line))) == len(line.split())


def test_the_same_size_is_not_the_same_pieces() -> None:
    other = train_tokenizer([line.replace("dog", "cat") for line in LINES], kind="bpe", vocab_size=BPE.vocab_size)
    assert other.vocab_size == BPE.vocab_size
    assert not same_pieces(BPE, other)


def test_pieces_count_and_not_the_bytes_around_them() -> None:
    again = train_tokenizer([*LINES, *LINES], kind="bpe", vocab_size=50)
    assert same_pieces(BPE, again) == (BPE.vocabulary().keys() == again.vocabulary().keys())


@pytest.mark.parametrize("tokenizer", [BPE, CHARS, backwards(BPE)])
def test_what_ids_write_is_the_text(tokenizer: SentencePieceTokenizer) -> None:
    texts, turn = texts_of_ids(tokenizer), -1 if tokenizer.reverse else 1
    for line in LINES:
        assert "".join(texts[token] for token in tokenizer.encode(line)).strip() == line[::turn]
    assert [texts[token] for token in (PAD, UNK, BOS, EOS)] == [""] * 4
