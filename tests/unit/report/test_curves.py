"""Learning curves are those of metrics.csv, and a file that cannot be drawn stops nothing."""

import logging
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.evaluation.metrics import BLEU, ExactMatch, Metric, facts
from softsearch.report.curves import draw_curves, draw_panel, read_points
from softsearch.report.drawing import COLOURS
from softsearch.training.callbacks.curves import Curves

METRICS = """\
step,train/nll,lr,tokens/s,grad_norm/total,grad_norm/encoder,val/loss,val/bleu,val/exact_match
10,5.0,0.001,9000,2.0,1.0,,,
20,4.0,0.002,8000,,,4.5,12.5,0.1
30,3.0,0.001,nan,1.0,0.5,x,,,1
4"""


def colours(path: Path) -> set[str]:
    pixels = np.round(matplotlib.image.imread(path)[..., :3] * 255).astype(int).reshape(-1, 3)
    present = {"#{:02x}{:02x}{:02x}".format(*pixel) for pixel in np.unique(pixels, axis=0)}
    return present & {*COLOURS}


def test_points_are_the_cells_that_are_filled(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(METRICS)
    points = read_points(tmp_path / "metrics.csv")
    assert points["train/nll"] == ([10, 20, 30], [5.0, 4.0, 3.0])  # the line that was cut off is left out
    assert points["val/bleu"] == ([20], [12.5])


def test_a_run_has_a_colour_for_each_metric_and_several_runs_one_each(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(METRICS)
    points = read_points(tmp_path / "metrics.csv")
    draw_curves({"": points}, {}, tmp_path / "one.png")
    draw_curves(dict.fromkeys(("a", "$b", "c", "no curves"), points) | {"no curves": {}}, {}, tmp_path / "three.png")
    assert colours(tmp_path / "one.png") == {*COLOURS[:2]}  # train and val, bleu and exact_match, encoder and total
    assert colours(tmp_path / "three.png") == {*COLOURS[:4]}


class Rating(Metric):
    """From outside, 0 to 1, and shown as it is."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[tuple[float]]:
        return [(0.5,) for _ in references]

    def score(self, sums: NDArray[np.float64]) -> float:
        return float(sums[0])


class Found(Rating):
    percent = True


def test_a_score_is_in_per_cent_if_its_metric_is_a_share_however_small_others_are() -> None:
    metrics = facts({"bleu": BLEU(), "exact_match": ExactMatch(), "rating": Rating(), "found": Found()})
    values = {"bleu": [0.0, 0.95], "exact_match": [0.25, 1.0], "rating": [0.5, 0.8], "found": [0.5, 0.8], "gone": [0.1]}
    points = {f"val/{name}": ([*range(1, len(column) + 1)], column) for name, column in values.items()}
    figure = draw_panel("scores on the validation set", {"run": points}, metrics)
    assert figure is not None
    drawn = {str(line.get_label()): [*map(float, np.asarray(line.get_ydata()))] for line in figure.axes[0].lines}
    assert drawn == {
        "bleu": [0.0, 0.95],
        "exact_match in %": [25, 100],
        "rating": [0.5, 0.8],
        "found in %": [50, 80],
        "gone": [0.1],
    }


def test_what_cannot_be_drawn_is_told_once_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    callback, stage = Curves(folder=tmp_path), SimpleNamespace(is_global_zero=True, sanity_checking=False, callbacks=[])
    callback.on_validation_end(stage)
    assert not list(tmp_path.iterdir())
    (tmp_path / "metrics.csv").write_text(METRICS)
    callback.on_validation_end(stage)
    before = (tmp_path / "curves.png").read_bytes()
    (tmp_path / "metrics.csv").write_text("no,steps\n1,2\n")
    with caplog.at_level(logging.WARNING):
        callback.on_validation_end(stage)
        callback.on_validation_end(stage)
    assert caplog.text.count("cannot be drawn: KeyError: 'step'") == 1
    assert (tmp_path / "curves.png").read_bytes() == before


def test_a_table_larger_than_any_run_writes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "metrics.csv").open("wb") as file:
        file.write(b"step,loss\n")
        file.truncate(1 << 30)
    with pytest.raises(ValueError, match="it has 1,073,741,824 bytes"):
        read_points(tmp_path / "metrics.csv")
