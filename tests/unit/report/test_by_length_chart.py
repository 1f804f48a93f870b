"""The chart of scores by the length of the source."""

import numpy as np

from softsearch.report.by_length_chart import length_chart


def test_a_bar_is_as_high_as_its_score() -> None:
    image = length_chart({"01-05": 10.0, "06-10": 40.0}, {"01-05": 3, "06-10": 1234}, "BLEU")
    bars = (image == round(0.35 * 255)).all(axis=2)  # [height, width]
    columns = np.flatnonzero(bars.sum(axis=0) > 20)  # text has a few such pixels too
    gap = int(np.flatnonzero(np.diff(columns) > 1)[0]) + 1
    low, high = (bars[:, side].sum(axis=0).max() for side in (columns[:gap], columns[gap:]))
    assert 3.9 < high / low < 4.1


def test_a_model_that_knows_nothing_has_a_chart_too() -> None:
    assert length_chart({"01-05": 0.0}, {"01-05": 2}, "BLEU").shape == (432, 720, 3)
