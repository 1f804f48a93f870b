"""The notebooks of the course run, and are stored without outputs."""

import gc
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from softsearch.extras.course import models, scores, words
from tests.support.commands import ROOT, made_once

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SHORT = [  # by night, except one; 10_deployment runs seven commands
    pytest.param(path, marks=[] if path.stem == "01_language_models" else pytest.mark.nightly, id=path.stem)
    for path in NOTEBOOKS
    if path.stem != "10_deployment"
]
EXERCISES = {**words.EXERCISES, **models.EXERCISES, **scores.EXERCISES}
FEW = {"STEPS": 3, "LENGTH": 5, "MERGES": 20}  # in the place of the notebooks' own parameters


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_of(path: Path) -> list[NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which a notebook runs; all workers have one cache, the golden bundle, and no window for figures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOFTSEARCH_CACHE", str(made_once(tmp_path_factory, "course", lambda folder: None)))
    monkeypatch.setenv("SOFTSEARCH_BUNDLE", str(ROOT / "tests" / "golden" / "bundle"))
    with mpl.rc_context():
        mpl.use("Agg")
        yield tmp_path
        plt.close("all")


def execute(path: Path, parameters: dict[str, int]) -> None:
    """Executes the code of a notebook in this process."""
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in code_of(path):
        exec(compile(cell.source, f"{path.name}, cell {cell.id}", "exec"), names)
        if "parameters" in cell.metadata.get("tags", []):
            names |= {name: value for name, value in parameters.items() if name in names}
        plt.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_as_it_is_taught(path: Path) -> None:
    notebook, cells = read(path), code_of(path)
    assert nbformat.writes(notebook) + "\n" == path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "you will be able to" in text
    assert "## Read next" in text
    checked = re.findall(r'^check\("(\w+)", ', text, re.MULTILINE)
    assert len(checked) == 3
    assert set(checked) <= set(EXERCISES)
    solution = path.parent / "solutions" / f"{path.stem}.py"
    assert all(f"def {name}(" in solution.read_text(encoding="utf-8") for name in checked)


@pytest.mark.day
@pytest.mark.parametrize("path", SHORT)
def test_notebook_runs(path: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(path, FEW)
    assert capsys.readouterr().out.count("not done yet") == 3


@pytest.mark.nightly
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_with_its_own_parameters(path: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(path, {})
    assert capsys.readouterr().out.count("not done yet") == 3


@pytest.mark.nightly
def test_notebook_runs_in_a_kernel(place: Path) -> None:
    notebook = read(ROOT / "notebooks" / "04_rnnsearch.ipynb")
    (parameters,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    parameters.source = f"STEPS = {FEW['STEPS']}"
    NotebookClient(notebook, resources={"metadata": {"path": str(place)}}).execute()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of a kernel that takes more than five seconds to end
        gc.collect()
    pictures = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 2
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    assert not [output.text for output in outputs if output.get("name") == "stderr"]  # such as tqdm's warning
