"""Points of hand-ins: notebooks and files, right, wrong, unfinished and broken."""

import json
from pathlib import Path

import pytest

from softsearch.extras.course import points as module
from softsearch.extras.course.points import main, points
from softsearch.extras.course.verdict import verdict

ROOT = Path(__file__).parents[3] / "notebooks"
HAND_IN = [
    "%matplotlib inline\nimport numpy as np\nassert False, 'a training'",
    """EMPTY = 0.0
softmax = lambda e: np.exp(e - e.max(-1, keepdims=True)) / np.exp(e - e.max(-1, keepdims=True)).sum(-1, keepdims=True)
def masked_softmax(energies, mask):
    return softmax(np.where(mask, energies, -np.inf)) + EMPTY
check("masked_softmax", masked_softmax)""",
    'def additive_energies(s, h, W_a, U_a, v_a):\n    ...\ncheck("additive_energies", additive_energies)',
    'def other(predicted, sure possible):\n    return 0\ncheck("alignment_error_rate", other)',
    'def maxout(x):\n    while True: pass\ncheck("maxout", maxout)',
]


def hand_in(folder: Path, cells: list[str]) -> Path:
    path = folder / "student.ipynb"
    both = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "x = ("}, *both]}), encoding="utf-8")
    return path


def test_each_exercise_of_a_notebook_is_a_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("masked_softmax", "maxout"):
        verdict(name, len)  # imports what they are compared with
    monkeypatch.setattr(module, "_SECONDS", 2)
    path = hand_in(tmp_path, HAND_IN)
    assert main([str(path)]) == 0
    (found,) = json.loads(capsys.readouterr().out).values()
    assert (found["points"], found["of"]) == (1, 4)
    told = {name: each["message"] for name, each in found["exercises"].items()}
    assert told["masked_softmax"].startswith("masked_softmax: correct for all ")
    assert told["additive_energies"].startswith("additive_energies: not done yet: ")
    assert told["alignment_error_rate"].startswith("alignment_error_rate: there is no function; line 1 of a cell")
    assert "TimeoutError: it took more than 2 seconds" in told["maxout"]


def test_solutions_have_all_points_and_the_notebooks_none() -> None:
    for stem in ("04_rnnsearch", "09_evaluation"):
        assert points(ROOT / "solutions" / f"{stem}.py") | {"exercises": {}} == {"points": 3, "of": 3, "exercises": {}}
        assert points(ROOT / f"{stem}.ipynb") | {"exercises": {}} == {"points": 0, "of": 3, "exercises": {}}


@pytest.mark.parametrize("text", ["{}", "[1]", "no JSON", '{"cells": []}'])
def test_what_is_no_hand_in_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text, encoding="utf-8")
    assert main([str(path)]) != 0
    assert f"error: {path} " in capsys.readouterr().err
