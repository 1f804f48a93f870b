"""Results become files that programs read and pictures that people can read."""

import csv
import json
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.report.sweep import draw_importances, write_rows

OBJECTIVES = {"test/bleu": "maximize", "train/tokens_per_second": "maximize", "model/parameters": "minimize"}


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
