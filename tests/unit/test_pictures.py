"""The documentation's pictures of measurements are those that `make pictures` draws."""

from pathlib import Path

import numpy as np
from PIL import Image

from tests.pictures import draw_recorded


def test_pictures_of_measurements_show_what_is_recorded(repo_root: Path, tmp_path: Path) -> None:
    for drawn in draw_recorded(tmp_path):
        new, old = (
            np.asarray(Image.open(path).convert("L"), dtype=int) for path in (drawn, repo_root / "docs" / drawn.name)
        )
        assert new.shape == old.shape, f"{drawn.name}: run `make pictures`"
        assert (abs(new - old) > 64).mean() < 1e-3, f"{drawn.name}: run `make pictures`"
