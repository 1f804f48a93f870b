"""Charts of tables: words instead of names, seeds over their mean, and the paper's numbers beside ours."""

from typing import Any

import pytest
from matplotlib.axes import Axes

from softsearch.extras.claims.claim_figure import claim_chart, published_rows
from softsearch.extras.claims.table_chart import chart
from softsearch.report.drawing import style

ROWS = [
    {"run": run, "seed": seed, "bleu": bleu + seed} for run, bleu in (("a_30", 10.0), ("b", 20.0)) for seed in (0, 2)
]
NAMES = {"a_30": "A, 30 words", "b": "B", "bleu": "BLEU"}
RESULTS: dict[str, Any] = {
    "figure": {"measure": "scores", "kind": "dots", "x": "run", "y": "bleu"},
    "names": NAMES,
    "tables": {"scores": ROWS},
    "published": [
        {"cell": "scores.bleu[run=a_30]", "published": 13.5},
        {"cell": "scores.bleu[run=b]", "published": "38 to 39"},
        {"cell": "scores.bleu[run=b] - scores.bleu[run=a_30]", "published": 5},
        {"cell": None, "published": 6},
        {"cell": "scores.bleu[run=b]", "published": "O(1)"},
    ],
}


def offsets(axes: Axes) -> list[list[tuple[float, float]]]:
    return [[(float(x), float(y)) for x, y in each.get_offsets()] for each in axes.collections]


def test_dots_have_means_seeds_and_published_numbers_beside_words() -> None:
    with style():
        axes = claim_chart(RESULTS).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A, 30 words", "B"]
    assert axes.get_xlabel() == "BLEU"
    (means, seeds, published, *_) = offsets(axes)
    assert means == [(11, 0), (21, 1.5)]
    assert seeds == [(10, 0), (12, 0), (20, 1.5), (22, 1.5)]
    assert published == [(13.5, 0), (38, 1.5), (39, 1.5)]


def test_numbers_of_a_paper_that_are_of_one_row_are_a_point_of_the_plane() -> None:
    table = [{"run": "a", "seed": 1, "all": 1.0, "some": 2.0}]
    cells = [("scores.all[run=a]", 3), ("scores.some[run=a]", 4)]
    published = [{"cell": cell, "published": number} for cell, number in cells]
    rows = published_rows({"tables": {"scores": table}, "published": published})
    assert rows == [{"run": "a", "seed": 1, "all": 3, "some": 4, "measure": "scores"}]
    with style():
        axes = chart(table, kind="scatter", x="all", y="some", published=rows).axes[0]
    assert offsets(axes)[:2] == [[(1, 2)], [(3, 4)]]


def test_lines_share_a_colour_up_to_a_comma_and_have_three_at_most() -> None:
    runs = ["A, short", "A, long", "B", "C", "D"]
    rows = [{"run": run, "length": length, "bleu": 1.0} for run in runs for length in ("01-05", "06-10", "51+", "all")]
    with style():
        figure = chart(
            rows, kind="line", x="length", y="bleu", series="run", only={"length": ["01-05", "06-10", "51+"]}
        )
    lines = figure.axes[0].get_lines()
    looks = [(line.get_color(), line.get_linestyle()) for line in lines]
    assert (looks[0][0], len({colour for colour, _ in looks}), len({*looks})) == (looks[1][0], 3, 5)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1-5", "6-10", "51+"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == runs


def test_each_row_of_two_columns_has_words_of_its_own_or_those_of_its_parts() -> None:
    rows = [{"run": run, "measure": measure, "bleu": 1.0} for run in ("a", "b") for measure in ("one", "three")]
    names = {"a": "A", "one": "", "three": "three models", "b, three": "B thrice"}
    with style():
        axes = chart(rows, kind="dots", x=["run", "measure"], y="bleu", names=names).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "A, three models", "b", "B thrice"]


def test_panels_have_numbers_with_the_words_of_their_column() -> None:
    rows = [{"run": "a", "pairs": pairs, "loss": 1.0} for pairs in (1000, 20000)]
    with style():
        figure = chart(rows, kind="dots", x="run", y="loss", panel="pairs", names={"pairs": "sentence pairs"})
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["1,000 sentence pairs", "20,000 sentence pairs"]
    assert not figure.legends


@pytest.mark.parametrize("kind", ["line", "dots", "scatter"])
def test_rows_without_values_do_not_keep_a_page_from_being_written(kind: Any) -> None:
    with style():
        assert len(chart([{"run": "a", "loss": None}], kind=kind, x="run", y="loss").axes) == 1
