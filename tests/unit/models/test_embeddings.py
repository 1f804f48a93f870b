"""Embeddings and their ties to the output layer."""

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings, Tie


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
