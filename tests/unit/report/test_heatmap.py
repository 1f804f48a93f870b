"""Heatmaps of alignments."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from softsearch.report.heatmap import alignment_image, draw_alignments

SRC, TGT = ["▁the", "▁cat", "</s>"], ["▁die", "▁katz", "e", "</s>"]


def brightness(image: np.ndarray) -> np.ndarray:
    """The cells of a heatmap, top to bottom and left to right, from an image with a white margin."""
    inside = (image < 250).all(axis=2)
    # The axes' frame is the first and the last row and column that are dark for most of their length.
    rows, columns = (np.flatnonzero(inside.mean(axis=axis) > 0.5) for axis in (1, 0))
    cells = image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1, 0]
    height, width = cells.shape[0] / len(TGT), cells.shape[1] / len(SRC)
    return np.array(
        [[cells[int((i + 0.5) * height), int((j + 0.5) * width)] for j in range(len(SRC))] for i in range(len(TGT))]
    )


def test_each_weight_is_in_its_place() -> None:
    weights = np.array([[0.8, 0.15, 0.05], [0.05, 0.9, 0.05], [0.3, 0.6, 0.1], [0.0, 0.2, 0.8]])
    shown = brightness(alignment_image(weights, SRC, TGT)) / 255
    assert shown == pytest.approx(weights, abs=0.01)


def test_the_file_shows_the_same(tmp_path: Path) -> None:
    weights = np.full((4, 3), 1 / 3)
    draw_alignments(weights, SRC, TGT, tmp_path / "new" / "heatmap.png")
    written = (imread(tmp_path / "new" / "heatmap.png")[..., :3] * 255).round().astype(np.uint8)
    assert np.array_equal(written, alignment_image(weights, SRC, TGT))


def test_labels_may_be_any_pieces() -> None:
    """Warnings are errors: of glyphs that are missing, of formulas that cannot be parsed."""
    pieces = ["$", "▁$x", "日本", "\n", "", "\U0001f642", "</s>"]
    image = alignment_image(np.eye(7), pieces, pieces)
    assert image.ndim == 3
    assert not np.array_equal(image, alignment_image(np.eye(7), ["a"] * 7, pieces))
