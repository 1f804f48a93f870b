"""Results become files that programs read and pictures that people can read."""

import csv
import json
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.report.sweep import draw_importances, draw_pareto, write_rows

OBJECTIVES = {"test/bleu": "maximize", "train/tokens_per_second": "maximize", "model/parameters": "minimize"}
RED = (197, 34, 31)  # of the front


def picture(path: Path) -> NDArray[np.uint8]:
    """``[height, width, 3]``."""
    return (matplotlib.image.imread(path)[..., :3] * 255).round().astype(np.uint8)


def test_rows_are_written_twice(tmp_path: Path) -> None:
    rows = [{"trial": 0, "bleu": 1.5, "error": None}, {"trial": 1, "bleu": None, "error": "a, b\nc"}]
    assert write_rows(rows, tmp_path) == ("results.csv", "results.json")
    assert json.loads((tmp_path / "results.json").read_text()) == rows
    with (tmp_path / "results.csv").open(newline="") as file:
        assert [row["error"] for row in csv.DictReader(file)] == ["", "a, b\nc"]
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "results.json"}


@pytest.mark.parametrize("parameters", [1, 12])
def test_importances_have_room_for_each_bar(parameters: int, tmp_path: Path) -> None:
    shares = {f"model.decoder.some_long_name_{i}": 1 / parameters for i in range(parameters)}
    path = tmp_path / "importance.png"
    draw_importances(dict.fromkeys(OBJECTIVES, shares), 9, path)
    height, width, _ = picture(path).shape
    assert width == 960
    assert height >= 120 * 0.4 * parameters * len(OBJECTIVES)


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_pareto_front_has_a_panel_for_each_pair(objectives: int, tmp_path: Path) -> None:
    chosen = dict(list(OBJECTIVES.items())[:objectives])
    points = np.array([[30.0, 900.0, 5e6], [20.0, 9000.0, 1e6], [10.0, 100.0, 9e6]])[:, :objectives]
    path = tmp_path / "pareto.png"
    draw_pareto(points, [0, 1, 2], chosen, [True, True, False], path)
    drawn = picture(path)
    panels = {2: 1, 3: 3}[objectives]
    assert drawn.shape[1] == pytest.approx(panels * 5.2 * 120, abs=2)
    for panel in np.array_split(drawn, panels, axis=1):
        assert (panel == RED).all(axis=-1).sum() > 40  # both trials of the front
