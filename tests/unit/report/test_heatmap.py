"""Heatmaps of attention, as values and as pixels."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from softsearch.report.drawing import draw_heatmap
from softsearch.report.heatmap import heatmap, pictures, pixels_without_text

SRC, TGT = ["▁the", "▁cat", "</s>"], ["▁die", "▁katz", "e", "</s>"]
WEIGHTS = np.array([[0.8, 0.15, 0.05], [0.05, 0.9, 0.05], [0.3, 0.6, 0.1], [0.0, 0.2, 0.8]], dtype=np.float32)


def test_each_weight_is_in_its_place() -> None:
    drawn = heatmap(SRC, TGT, WEIGHTS, "a caption")
    assert (drawn.src, drawn.tgt, drawn.caption, drawn.picture) == (SRC, TGT, "a caption", None)
    assert drawn.weights == pytest.approx(WEIGHTS, abs=1e-4)
    pixels = pixels_without_text(drawn)
    rows, columns = (size // count for size, count in zip(pixels.shape, WEIGHTS.shape, strict=False))
    blue = pixels[rows // 2 :: rows, columns // 2 :: columns, 2]  # from 0xf5 to 0x3d, that of 100 %
    assert (0xF5 - blue) / (0xF5 - 0x3D) == pytest.approx(WEIGHTS, abs=0.01)


def test_a_figure_has_words_and_per_cents_and_is_on_one_scale() -> None:
    axes = Figure().add_subplot()
    draw_heatmap(axes, SRC, TGT, WEIGHTS, "a title")
    assert axes.images[0].get_clim() == (0, 1)
    assert [text.get_text() for text in axes.texts] == ["80", "15", "5", "5", "90", "5", "30", "60", "10", "20", "80"]
    assert [label.get_text() for label in axes.get_xticklabels()] == [*SRC[:2], "end"]
    assert [label.get_text() for label in axes.get_yticklabels()] == [*TGT[:3], "end"]


def test_heads_are_rows_of_whole_per_cents() -> None:
    drawn = heatmap(SRC, TGT, WEIGHTS, "a caption", heads={"layer 0, head 1": WEIGHTS, "other": 1 - WEIGHTS})
    assert drawn.heads["layer 0, head 1"] == ["80 15 5", "5 90 5", "30 60 10", "0 20 80"]
    assert drawn.heads["other"][0] == "20 85 95"


def test_the_attended_region_of_a_picture_is_white_and_the_rest_dark() -> None:
    """Four patches of a red picture: the first word attends to the second patch, the other to all alike."""
    red = np.zeros((20, 20, 3), dtype=np.uint8) + np.array([255, 0, 0], dtype=np.uint8)
    weights = np.array([[0.0, 1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25, 0.0]])
    drawn = heatmap(["<feature>"] * 4 + ["</s>"], ["a", "square"], weights, "a square", red)
    source, first, second = (np.asarray(picture).astype(int) for picture in pictures(drawn))
    corners = [0, -1]
    assert np.unique(source.reshape(-1, 3), axis=0).tolist() == [[255, 0, 0]]
    green = first[..., 1][np.ix_(corners, corners)]
    assert green[0, 1] > 150 > 20 > green[0, 0] == green[1, 0] == green[1, 1]  # white over red has green
    assert np.ptp(second.reshape(-1, 3), axis=0).tolist() == [0, 0, 0]
    assert pixels_without_text(drawn).shape == (144, 3 * 144, 3)
