"""The drawing of a Pareto front."""

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from softsearch.extras.shared.pareto import draw_pareto

OBJECTIVES = {"test/bleu": "maximize", "train/tokens_per_second": "maximize", "model/parameters": "minimize"}
RED = (197, 34, 31)  # of the front


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_pareto_front_has_a_panel_for_each_pair(objectives: int, tmp_path: Path) -> None:
    chosen = dict(list(OBJECTIVES.items())[:objectives])
    points = np.array([[30.0, 900.0, 5e6], [20.0, 9000.0, 1e6], [10.0, 100.0, 9e6]])[:, :objectives]
    path = tmp_path / "pareto.png"
    draw_pareto(points, [0, 1, 2], chosen, [True, True, False], path)
    drawn = (matplotlib.image.imread(path)[..., :3] * 255).round().astype(np.uint8)
    panels = {2: 1, 3: 3}[objectives]
    assert drawn.shape[1] == pytest.approx(panels * 5.2 * 120, abs=2)
    for panel in np.array_split(drawn, panels, axis=1):
        assert (panel == RED).all(axis=-1).sum() > 40  # both trials of the front
