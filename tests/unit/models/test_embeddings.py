"""Embeddings, their ties to the output layer, and position encodings."""

import math

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings, Tie, sinusoids


@pytest.mark.parametrize(("tie", "same_src", "same_output"), [("none", 0, 0), ("output", 0, 1), ("all", 1, 1)])
def test_ties(tie: Tie, same_src: int, same_output: int) -> None:
    parts = Embeddings(src_vocab_size=7, tgt_vocab_size=7, dim=4, tie=tie)
    output = parts.make_output(4)
    assert (parts.src.weight is parts.tgt.weight) == bool(same_src)
    assert (output.weight is parts.tgt.weight) == bool(same_output)
    assert output(torch.randn(2, 4)).shape == (2, 7)


def test_separate_vocabularies_and_widths() -> None:
    parts = Embeddings(src_vocab_size=5, tgt_vocab_size=9, dim=4)
    assert parts.src.weight.shape == (5, 4)
    assert parts.tgt.weight.shape == (9, 4)
    assert parts.make_output(6).weight.shape == (9, 6)


def test_one_matrix_needs_one_vocabulary() -> None:
    with pytest.raises(ConfigError, match=r"tie=all needs one joint vocabulary, found 5 source and 9 target"):
        Embeddings(src_vocab_size=5, tgt_vocab_size=9, dim=4, tie="all")


def test_tied_output_needs_features_of_the_same_width() -> None:
    parts = Embeddings(src_vocab_size=5, tgt_vocab_size=5, dim=4, tie="output")
    with pytest.raises(
        ConfigError, match=r"tie=output needs features as wide as the embeddings, found model.embeddings.dim=4 and the"
    ):
        parts.make_output(6)


def test_sinusoids_equal_the_paper() -> None:
    dim, positions = 6, [0, 1, 2, 77, 511]
    found = sinusoids(torch.tensor(positions), dim)
    for row, pos in zip(found, positions, strict=True):
        for i in range(dim // 2):
            angle = pos / 10000 ** (2 * i / dim)
            assert float(row[2 * i]) == pytest.approx(math.sin(angle), abs=1e-4)
            assert float(row[2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-4)


def test_sinusoids_of_any_shape() -> None:
    grid = torch.arange(6).reshape(2, 3)
    assert torch.equal(sinusoids(grid, 4)[1, 2], sinusoids(torch.tensor(5), 4))
