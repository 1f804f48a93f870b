"""Alignments of translations that are given."""

import numpy as np
import pytest

from softsearch.search.forced import forced_alignments
from softsearch.text.vocabulary import EOS
from tests.unit.search.tables import Row, TableModel, alignment_of

SRC = [[4, EOS], [4, 4, 3 + 1, EOS], [EOS]]
TGT = [[4, 4, EOS], [EOS], [4]]


@pytest.mark.parametrize("batch_tokens", [1, 8, 100])
def test_each_row_is_where_the_model_looked(batch_tokens: int) -> None:
    found = forced_alignments(TableModel(seed=1), SRC, TGT, batch_tokens=batch_tokens)
    assert found is not None
    for src, tgt, matrix in zip(SRC, TGT, found, strict=True):
        assert matrix.shape == (len(tgt), len(src))
        prefixes = [(2, *tgt[:place]) for place in range(len(tgt))]  # BOS is what is read first
        expected = [alignment_of(Row(tuple(src), prefix), len(src)) for prefix in prefixes]
        assert matrix == pytest.approx(np.array(expected))


def test_a_model_without_alignments_has_none() -> None:
    assert forced_alignments(TableModel(has_alignments=False), SRC, TGT, batch_tokens=8) is None


def test_nothing_and_an_empty_translation() -> None:
    assert forced_alignments(TableModel(), [], [], batch_tokens=8) == []
    (matrix,) = forced_alignments(TableModel(), [[4, EOS]], [[]], batch_tokens=8) or []
    assert matrix.shape == (0, 2)
