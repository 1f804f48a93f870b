"""Whether a model looks, from its step function alone."""

import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.search.attention import has_attention
from softsearch.search.interface import Candidates
from tests.unit.search.tables import Row, TableModel


class Blind(TableModel):
    """A model that looks everywhere alike."""

    def step(self, tokens: NDArray[np.int64], state: list[list[Row]], k: int) -> tuple[Candidates, list[list[Row]]]:
        candidates, after = super().step(tokens, state, k)
        assert candidates.alignments is not None
        flat = np.full_like(candidates.alignments, 1 / candidates.alignments.shape[1])
        return candidates._replace(alignments=flat), after


@pytest.mark.parametrize(
    ("model", "expected"), [(TableModel(), True), (TableModel(has_alignments=False), False), (Blind(), False)]
)
def test_attention_is_seen(model: TableModel, expected: bool) -> None:
    assert has_attention(model) is expected
