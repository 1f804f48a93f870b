"""Files of pretrained embeddings: what is taken from them, and what is refused with its place."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.data.pretrained_embeddings import fill_vectors
from softsearch.errors import CorpusError
from softsearch.text.vocabulary import SPECIALS

PIECES = [*SPECIALS, "\u2581cat", "cat", "s", "\u2581", "\u2581Haus", "\u2581dog"]
DIM = 3


def fill(folder: Path, content: str | bytes) -> tuple[NDArray[np.float32], str]:
    path = folder / "vectors.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    matrix = np.full((len(PIECES), DIM), 9, dtype=np.float32)
    return matrix, fill_vectors(matrix, PIECES, path)


@pytest.mark.parametrize("header", ["", "4 3\n"])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
def test_pieces_take_the_vector_of_their_name(tmp_path: Path, header: str, end: str) -> None:
    lines = ("cat 1 2 3", "mouse 7 7 7", "Haus -4e-1 .5 +6", "\u2581 0 0 1")
    matrix, summary = fill(tmp_path, header + "".join(line + end for line in lines))
    taken = {"\u2581cat": [1, 2, 3], "cat": [1, 2, 3], "\u2581Haus": [-0.4, 0.5, 6], "\u2581": [0, 0, 1]}
    expected = np.array([taken.get(piece, [9, 9, 9]) for piece in PIECES], dtype=np.float32)
    np.testing.assert_array_equal(matrix, expected)
    assert summary.endswith("vectors.txt: 4 of 6 pieces found among 4 (2 exactly, 2 without the space mark)")


@pytest.mark.parametrize("lines", [("cat 1 1 1", "\u2581cat 2 2 2"), ("\u2581cat 2 2 2", "cat 1 1 1")])
def test_the_exact_name_takes_precedence_wherever_it_stands(tmp_path: Path, lines: tuple[str, str]) -> None:
    matrix, summary = fill(tmp_path, "\n".join(lines))
    assert matrix[PIECES.index("\u2581cat")].tolist() == [2, 2, 2]
    assert matrix[PIECES.index("cat")].tolist() == [1, 1, 1]
    assert "(2 exactly, 0 without the space mark)" in summary


def test_special_pieces_are_no_words(tmp_path: Path) -> None:
    matrix, _ = fill(tmp_path, "</s> 1 1 1\n<unk> 1 1 1\ncat 2 2 2")
    assert (matrix[: len(SPECIALS)] == 9).all()


def test_compressed_files_and_spaces_other_than_ascii(tmp_path: Path) -> None:
    text = "new\u00a0york 1 1 1\n\u2028 2 2 2\ncat 3 3 3\n"
    matrix, summary = fill(tmp_path, gzip.compress(text.encode()))
    assert matrix[PIECES.index("cat")].tolist() == [3, 3, 3]
    assert "found among 3 (" in summary


def test_words_with_spaces_as_in_glove(tmp_path: Path) -> None:
    matrix, summary = fill(tmp_path, ". . . 7 7 7\ncat 1 2 3\nat name@domain.com 4 4 4\nNew York -1 1e-3 3\n")
    assert matrix[PIECES.index("cat")].tolist() == [1, 2, 3]
    assert "found among 4 (" in summary


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("2 300\ncat 1 2 3\n", r"vectors.txt:1 has 300 values, expected a token and model.embeddings.dim=3 values"),
        ("cat 1 2 3\ndog 1 2\n", r"vectors.txt:2 has 2 values"),
        ("cat 1 2 3 4\n", r"vectors.txt:1 has 4 values"),
        ("cat 1 2 3\ndog 1 2 3 4\n", r"vectors.txt:2 has 4 values"),
        ("cat 1 2 3\n\n", r"vectors.txt:2 has 0 values"),
        ("cat 1 2 3\ndog 1\t2 3\n", r"vectors.txt:2 has 2 values"),
        ("cat 1 x 3\n", r"vectors.txt:1: value 2 is 'x', expected a finite number"),
        ("cat 1  3\n", r"vectors.txt:1: value 2 is ''"),
        ("mouse 1 2 3\ncat 1 2 nan\n", r"vectors.txt:2: value 3 is 'nan'"),
        ("cat -inf 2 3\n", r"vectors.txt:1: value 1 is '-inf'"),
        ("cat 1 1e39 3\n", r"vectors.txt:1: value 2 is '1e39'"),
        ("cat 1 2 3\nmouse 1 1 1\ncat 1 2 3\n", r"vectors.txt:3 is the second vector of 'cat', the first is on line 1"),
        (b"cat 1 2 3\nm\xffs 1 2 3\n", r"vectors.txt:2:2 is not UTF-8: byte 0xff"),
        ("3 3\ncat 1 2 3\ndog 1 2 3\n", r"vectors.txt has 2 vectors, but its first line says 3"),
        ("mouse 1 2 3\n", r"vectors.txt: 0 of 6 pieces found among 1 .*; expected words from the training text"),
        ("", r"vectors.txt is empty"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        fill(tmp_path, content)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="does not exist"):
        fill_vectors(np.zeros((5, 3), np.float32), PIECES[:5], tmp_path / "no.vec")
