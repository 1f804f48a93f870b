"""Charts put values where their axes say."""

import re
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from softsearch.evaluation.schema import MetricFacts, SearchPoint
from softsearch.report.charts import draw_by_length, draw_search_curve, length_chart
from softsearch.report.drawing import style, svg

BLEU = MetricFacts("BLEU", limits=[0.0, 100.0])
COUNTS = {"01-05": 3, "06-10": 1234, "11-15": 9}


def markers(chart: ET.Element, number: int) -> list[tuple[float, float]]:
    """Places of the markers of a line, in the picture's coordinates."""
    uses = [
        use for use in chart.iter("use") if use.find("title") is not None and use.get("fill") == f"var(--s{number})"
    ]
    return [(float(use.attrib["x"]), float(use.attrib["y"])) for use in uses]


def by_length(**options: Any) -> ET.Element:
    """Two lines; the second lacks a range."""
    values = {
        0: {"01-05": (10.0, 5.0, 15.0), "06-10": (20.0, 10.0, 30.0), "11-15": (40.0, 30.0, 50.0)},
        3: {"01-05": (40.0, 40.0, 40.0), "11-15": (10.0, 10.0, 10.0)},
    }
    with style():
        figure = draw_by_length(values, COUNTS, "BLEU", **options)
        return ET.fromstring(svg(figure, "chart", {0: ["a", "b", "<c>"], 3: ["d", "e"]}))


def test_values_are_where_the_axes_say_and_have_notes() -> None:
    chart = by_length()
    first, second = markers(chart, 0), markers(chart, 3)
    (x1, y1), (x2, y2), (x3, y3) = first
    assert x3 - x2 == pytest.approx(x2 - x1)
    assert (y1 - y3) / (y1 - y2) == pytest.approx(3, abs=1e-3)
    assert np.allclose(second, [(x1, y3), (x3, y1)])
    assert [note.text for note in chart.iter("title")] == ["a", "b", "<c>", "d", "e"]
    labels = [text.text for text in chart.iter("text")]
    assert {"01-05", "3", "06-10", "1,234", "words in the source, and number of sentences", "BLEU"} <= set(labels)


def test_a_level_is_a_dashed_line_from_side_to_side() -> None:
    (level,) = [path for path in by_length(level=20.0).iter("path") if path.get("stroke-dasharray")]
    (_, y1), (_, y2) = re.findall(r"([\d.]+) ([\d.]+)", level.attrib["d"])
    assert float(y1) == float(y2) == pytest.approx(markers(by_length(), 0)[1][1], abs=0.01)


def test_the_axis_ends_at_the_limit_and_scores_are_written_out() -> None:
    with style():
        figure = draw_by_length(
            {0: {"01-05": (100.0, 99.9, 100.0), "06-10": (4.56, 4.0, 5.0)}}, COUNTS, "BLEU", limits=(0, 100)
        )
        chart = ET.fromstring(svg(figure, "chart", {0: ["a", "b"]}))
    labels = [text.text for text in chart.iter("text")]
    assert {"100.0", "4.56", "100"} <= set(labels)
    assert "120" not in labels


@pytest.mark.parametrize(("value", "expected"), [(99.9, (95, 100)), (50.0, (47.5, 52.5)), (0.1, (0, 5))])
def test_an_axis_does_not_magnify_rounding(value: float, expected: tuple[float, float]) -> None:
    with style():
        line = {"01-05": (value,) * 3, "06-10": (value + 0.02,) * 3}
        figure = draw_by_length({0: line}, {"01-05": 10, "06-10": 10}, "BLEU", limits=(0.0, 100.0), least=5)
    assert figure.axes[0].get_ylim() == pytest.approx(expected, abs=0.1)


def test_a_page_gets_variables_as_colours_and_no_inline_styles() -> None:
    with style():
        figure = draw_by_length({0: {"\x00$": (1.0, 0.0, 2.0)}}, {"\x00$": 1}, "BLEU")
        text = svg(figure, "chart", {})
    assert ">\ufffd$<" in text
    assert not re.search(r"style|#[0-9a-f]{6}\b|xmlns", text)
    assert text.startswith('<svg viewBox="0 0 345.6 216" class="chart">')


def test_two_figures_of_a_page_share_no_ids() -> None:
    with style():
        figure = draw_by_length({0: {"01-05": (1.0, 0.0, 2.0)}}, {"01-05": 1}, "BLEU")
        first, second = (set(re.findall(r' id="([^"]+)"', svg(figure, name, {}))) for name in ("a", "b"))
    assert first
    assert not first & second


def test_a_name_is_on_the_side_that_the_line_does_not_take() -> None:
    curve = [SearchPoint(f"s{i}", bleu, -8.0, -0.6, 10.0**i, 0.0, None) for i, bleu in enumerate((30, 10, 40, 20))]
    with style():
        chart = ET.fromstring(svg(draw_search_curve({0: curve}, "BLEU"), "chart", {0: ["note"] * 4}))
    places = {text.text: float(text.attrib["y"]) for text in chart.iter("text") if (text.text or "").startswith("s")}
    above = [places[f"s{i}"] < y for i, (_, y) in enumerate(markers(chart, 0))]
    assert above == [True, False, True, False]


@pytest.mark.parametrize("points", [1, 4])
def test_every_search_has_its_name(points: int) -> None:
    names = ["greedy", "beam 2", "$beam$ \u0000<5>", "exact"][:points]
    curve = [SearchPoint(name, 30.0 - i, -8.0, -0.6, 10.0**i, 0.0, None) for i, name in enumerate(names)]
    with style():
        chart = ET.fromstring(svg(draw_search_curve({7: curve}, "BLEU"), "chart", {7: ["note"] * points}))
    assert {name.replace("\0", "\ufffd") for name in names} <= {text.text for text in chart.iter("text")}
    places = [x for x, _ in markers(chart, 7)]
    assert np.diff(places) == pytest.approx(np.diff(places)[:1].repeat(points - 1))  # the axis is logarithmic


def test_the_dashboard_gets_pixels_with_the_scores() -> None:
    image = length_chart({"01-05": 10.0, "06-10": 40.0}, COUNTS, BLEU)
    assert image.shape == (360, 576, 3)
    assert not np.array_equal(image, length_chart({"01-05": 11.0, "06-10": 40.0}, COUNTS, BLEU))
    assert length_chart({"01-05": 0.0}, {"01-05": 2}, BLEU).shape == image.shape
