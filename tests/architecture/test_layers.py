"""The import contracts of pyproject.toml hold, and the checker notices when they are broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BREACHES = {
    "torch in search": ("search/greedy.py", "import torch", "Text, search and runtime never import torch"),
    "hydra in training": ("training/module.py", "import hydra", "Hydra and OmegaConf are at home in the app alone"),
    "lightning in models": ("models/layers.py", "import lightning", "Models stand alone"),
    "text in models": ("models/layers.py", "import softsearch.text.corpus", "Models stand alone"),
    "lightning in data": ("data/dataset.py", "import lightning", "Data imports Lightning in its datamodule only"),
    "upwards": ("text/vocabulary.py", "import softsearch.runtime.cli", "Layers, from the bottom up"),
    "a package without a layer": ("elsewhere/__init__.py", "", "Layers, from the bottom up"),
}


def _check_layers(repo_root: Path, src: Path) -> tuple[int, str]:
    """Run the checker on a source tree; returns its exit status and what it says."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())",
            "--config",
            str(repo_root / "pyproject.toml"),
            "--no-cache",
        ],
        cwd=src,
        env=os.environ | {"PYTHONPATH": str(src), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_layers_hold(repo_root: Path) -> None:
    status, output = _check_layers(repo_root, repo_root / "src")
    assert status == 0, output


@pytest.mark.parametrize("breach", BREACHES)
def test_checker_notices(breach: str, repo_root: Path, tmp_path: Path) -> None:
    file, line, contract = BREACHES[breach]
    shutil.copytree(repo_root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    broken = tmp_path / "src" / "softsearch" / file
    broken.parent.mkdir(exist_ok=True)
    with broken.open("a", encoding="utf-8") as stream:
        stream.write(f"\n{line}\n")
    status, output = _check_layers(repo_root, tmp_path / "src")
    assert status == 1, output
    broken_contracts = [text for text in output.splitlines() if text.endswith("BROKEN")]
    assert any(text.startswith(contract) for text in broken_contracts), output
