"""The import contracts of pyproject.toml and of the tests hold, and the checker notices when they are broken."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.programs import run_python

CHECK = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
BREACHES = {  # file: what it is made to import, what the checker says of it, in which contract
    "search/greedy.py": ("import torch", "softsearch.search.greedy -> torch", "Text, search, runtime and server never"),
    "training/module.py": ("import hydra", "softsearch.training.module -> hydra", "Hydra and OmegaConf are at home"),
    "models/layers.py": ("import lightning", "softsearch.models.layers -> lightning", "Models stand alone"),
    "models/cells.py": (
        "import softsearch.text.corpus",
        "models.cells -> softsearch.text.corpus",
        "Models stand alone",
    ),
    "data/dataset.py": ("import lightning", "softsearch.data.dataset -> lightning", "Data imports Lightning in its"),
    "text/corpus.py": ("import softsearch.runtime.cli", "text.corpus -> softsearch.runtime.cli", "Layers, from the"),
    "elsewhere/__init__.py": ("", "- softsearch.elsewhere", "Layers, from the bottom up"),
}


def _check_layers(repo_root: Path, src: Path) -> tuple[int, str]:
    """Run the checker on a source tree; returns its exit status and what it says."""
    check = ("-c", CHECK, "--config", repo_root / "pyproject.toml", "--no-cache")
    done = run_python(*check, cwd=src, PYTHONPATH=str(src), COLUMNS="200")
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def broken_tree_output(repo_root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the checker says of a copy of the sources with every breach in it."""
    src = tmp_path_factory.mktemp("broken") / "src"
    shutil.copytree(repo_root / "src", src, ignore=shutil.ignore_patterns("__pycache__"))
    for file, (line, _, _) in BREACHES.items():
        path = src / "softsearch" / file
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(f"\n{line}\n")
    status, output = _check_layers(repo_root, src)
    assert status == 1, output
    return output


def test_layers_hold(repo_root: Path) -> None:
    status, output = _check_layers(repo_root, repo_root / "src")
    assert status == 0, output


@pytest.mark.parametrize("file", BREACHES)
def test_checker_notices(file: str, broken_tree_output: str) -> None:
    _, complaint, contract = BREACHES[file]
    verdicts = [line for line in broken_tree_output.splitlines() if line.startswith(contract)]
    assert any("BROKEN" in verdict for verdict in verdicts), broken_tree_output
    assert complaint in broken_tree_output


def test_folders_of_tests_import_nothing_of_one_another(repo_root: Path) -> None:
    """What several use is in tests/support: each folder can be run, and left out, alone."""
    tests = repo_root / "tests"
    folders = sorted({path.relative_to(tests).parts[0] for path in tests.glob("*/**/test_*.py")})
    assert folders[:3] == ["architecture", "contract", "extras"]
    line = re.compile(rf"^ *(?:from|import) tests\.({'|'.join(folders)})\b.*", re.MULTILINE)
    found = [
        f"{path.relative_to(tests)}: {match[0]}"
        for path in tests.rglob("*.py")
        for match in line.finditer(path.read_text(encoding="utf-8"))
        if match[1] != path.relative_to(tests).parts[0]
    ]
    assert not found
