"""Charts put values where their axes say."""

import math
import re
from pathlib import Path

import pytest

from softsearch.report.page.charts import Axis, Point, Series, category_axis, line_chart, linear_axis, log_axis
from softsearch.report.page.markup import tag
from tests.unit.report.page.pages import Element, Page

SQUARE = Axis("x", 0.0, 10.0, [(0.0, "0"), (10.0, "10")])


def drawn(tmp_path: Path, *series: Series, x: Axis = SQUARE, y: Axis = SQUARE, level: float | None = None) -> Element:
    path = tmp_path / "chart.html"
    path.write_text(tag("div", line_chart("a chart", series, x, y, level=level)), encoding="utf-8")
    return Page(path).root


def places(path: Element) -> list[tuple[float, float]]:
    numbers = list(map(float, re.findall(r"-?\d+\.?\d*", str(path.attributes["d"]))))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.parametrize(
    ("values", "low", "high"), [([36.9, 38.2], 36.75, 38.5), ([0.5], 0.4, 0.6), ([0.0, 0.0], 0.0, 0.1), ([], 0, 1)]
)
def test_a_linear_axis_holds_its_values_and_no_negative_ones_without_need(
    values: list[float], low: float, high: float
) -> None:
    axis = linear_axis("BLEU", values)
    assert 0 <= axis.low <= low
    assert axis.high >= high
    assert axis.ticks[0][0] == axis.low
    assert 3 <= len(axis.ticks) <= 9


def test_values_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    assert linear_axis("BLEU", [1.0, math.nan, math.inf]).high < 2
    line = Series("a", 0, [Point(0.0, 0.0), Point(5.0, math.nan), Point(10.0, 10.0)])
    assert len(places(drawn(tmp_path, line).all("path", class_="line")[0])) == 2


@pytest.mark.parametrize("values", [[0.3], [4.1, 812.0], [1e-3, 1e4], [0.0, 3.0], []])
def test_a_logarithmic_axis_holds_its_values(values: list[float]) -> None:
    axis = log_axis("seconds", values)
    assert all(0 <= axis.share(value) <= 1 for value in values if value > 0)
    assert 2 <= len(axis.ticks) <= 8
    assert axis.share(math.sqrt(axis.low * axis.high)) == pytest.approx(0.5)


def test_lines_and_bands_are_where_the_values_are(tmp_path: Path) -> None:
    line = Series("a", 3, [Point(0.0, 0.0, 0.0, 5.0), Point(10.0, 10.0, 5.0, 10.0)])
    chart = drawn(tmp_path, line)
    (left, bottom), (right, top) = places(chart.all("path", class_="line")[0])
    assert left < right
    assert top < bottom
    middle = (top + bottom) / 2
    band = places(chart.all("path", class_="band s3")[0])
    assert band == [(left, middle), (right, top), (right, middle), (left, bottom)]
    assert chart.all("g", class_="s3")


def test_a_level_is_a_line_from_side_to_side(tmp_path: Path) -> None:
    line = Series("a", 0, [Point(0.0, 5.0), Point(10.0, 5.0)])
    chart = drawn(tmp_path, line, level=5.0)
    assert places(chart.all("path", class_="level")[0]) == places(chart.all("path", class_="line")[0])


def test_only_several_lines_need_a_legend(tmp_path: Path) -> None:
    one, two = (Series(name, number, [Point(1.0, 1.0)]) for number, name in enumerate(("a", "<b>")))
    assert not drawn(tmp_path, one).all("ul")
    assert [entry.text for entry in drawn(tmp_path, one, two).all("li")] == ["a", "<b>"]


def test_names_have_a_place_each(tmp_path: Path) -> None:
    axis = category_axis("words", ["01-05\nn=3", "06-10\nn=4"])
    chart = drawn(tmp_path, Series("a", 0, [Point(1, 5.0)]), x=axis)
    texts = [text.text for text in chart.all("text")]
    assert {"01-05", "n=3", "06-10", "n=4", "words"} <= set(texts)


def test_labels_keep_out_of_the_way_of_the_line(tmp_path: Path) -> None:
    line = Series("a", 0, [Point(float(x), y, label=f"p{x}") for x, y in enumerate((2.0, 9.0, 9.0, 1.0))])
    chart = drawn(tmp_path, line)
    tops = [top for _, top in places(chart.all("path", class_="line")[0])]
    labels = [text for text in chart.all("text") if text.text.startswith("p")]
    below = [float(str(text.attributes["y"])) > top for text, top in zip(labels, tops, strict=True)]
    assert below == [True, False, False, True]
