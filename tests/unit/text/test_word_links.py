"""Links of words: their files, and the tokens of the words."""

from pathlib import Path

import numpy as np
import pytest

from softsearch.errors import CorpusError
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.word_links import WordNumbers, lines_of_links, link_weights, read_pharaoh, word_starts

LINES = ["one small red house", "two small houses", "three red cars", "ein kleines rotes Haus"] * 5
SIZES: dict[Kind, int] = {"word": 100, "char": 60, "bpe": 70, "unigram": 36}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", SIZES)
def test_each_token_has_the_number_of_its_word(kind: Kind, reverse: bool) -> None:
    plain = train_tokenizer(LINES, kind=kind, vocab_size=SIZES[kind])
    tokenizer = SentencePieceTokenizer(plain.model, reverse=reverse)
    numbers = WordNumbers(tokenizer)
    for line in ("three small houses", "one red qqq car", "houses", "xx yy", ""):
        ids = tokenizer.encode(line)
        found, words = numbers(ids), line.split()
        assert numbers.count(words) == len(words)
        assert sorted({*found.tolist()}) == list(range(len(words)))
        for number, word in enumerate(words):
            own = [token for token, index in zip(ids, found, strict=True) if index == number]
            assert own == tokenizer.encode(word)


def test_a_word_may_end_with_the_space() -> None:
    """As the pieces of some imported tokenizers do."""

    class Suffixes:
        has_words, reverse = False, False

        def names(self) -> list[str]:
            return ["<pad>", "<unk>", "<s>", "</s>", "ab", "c\u2581", "\u2581", "d"]

    assert WordNumbers(Suffixes())([4, 5, 7, 4, 5, 4]).tolist() == [0, 0, 1, 1, 1, 2]  # type: ignore[arg-type]


def test_weights_share_a_target_token_among_the_tokens_of_its_words() -> None:
    src, tgt = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])
    found = link_weights([(0, 0), (0, 1), (2, 1)], src, tgt)
    third = 1 / 3
    expected = [[0.5, 0.5, 0, 0], [third, third, 0, third], [third, third, 0, third], [0, 0, 0, 0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_pharaoh_names_the_words() -> None:
    assert read_pharaoh(" 0-1  2-0\t1-1 ", 3, 2) == [(0, 1), (2, 0), (1, 1)]
    assert read_pharaoh("", 3, 2) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0-0 3-1", "has the link '3-1', but the source has 3 words and the target 2, numbered from 0"),
        ("0-2", "has the link '0-2'"),
        ("0-0 1:1", "has '1:1', expected word links such as '0-0 1-2'"),
        ("1--1", "has '1--1'"),
        ("0?1", "has '0\\?1'"),
        ("\u0661-1", "expected word links"),
        ("a dog", "has 'a'"),
    ],
)
def test_bad_links_are_told(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_pharaoh(line, 3, 2)


def test_a_file_has_a_line_for_each_pair(tmp_path: Path) -> None:
    path = tmp_path / "links"
    path.write_text("0-0\n\n1-1\n2-2\n", encoding="utf-8")
    assert list(lines_of_links(path, [2, 3], 4)) == [(2, ""), (3, "1-1")]
    with pytest.raises(CorpusError, match="links has 4 lines, but its text has 5; expected one line of links per"):
        list(lines_of_links(path, [1, 5], 5))


@pytest.mark.parametrize(
    ("pieces", "whole_words", "expected"),
    [
        (["▁the", "▁ca", "t", "</s>"], False, [0, 1, 3]),
        (["▁", "a", "b", "▁", "c"], False, [0, 3]),
        (["▁ca", "<unk>", "s", "▁", "<unk>"], False, [0, 3]),
        (["▁the", "<unk>", "▁cat", "<unk>"], True, [0, 1, 2, 3]),
        (["t", "▁x"], False, [0, 1]),
        (["the▁", "ca", "t▁", "▁", "x▁", "</s>"], False, [0, 1, 3, 5]),
        ([], False, []),
    ],
)
def test_words_start_where_a_space_or_the_end_is(pieces: list[str], whole_words: bool, expected: list[int]) -> None:
    assert word_starts(pieces, whole_words=whole_words) == expected


def test_pieces_of_scripts_without_spaces_are_words_where_wanted() -> None:
    pieces = ["▁", "我", "们", "▁Haus", "e", "来", "</s>"]
    assert word_starts(pieces, whole_words=False) == [0, 3, 6]
    assert word_starts(pieces, whole_words=False, unspaced=True) == [0, 2, 3, 5, 6]
