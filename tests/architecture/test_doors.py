"""Public names: each package exports what it promises, and configs, docs and examples use nothing else."""

import ast
import importlib
import inspect
import re
import subprocess
from pathlib import Path

import pytest

from softsearch.app.config.validation import imported
from softsearch.doors import PACKAGES, public_name, with_public_names
from tests.api_pages import homes

TARGETS = re.compile(r"_target_[:=] *(softsearch\.[\w.]+)")
PRIVATE = {  # targets of configs that are no public names: parts of commands
    "softsearch.app.config.after_sweep.NextOfSweep",
    "softsearch.app.console.PrintableFormatter",
    "softsearch.app.systems.search.mbr",
    "softsearch.app.systems.search.rerank",
}


@pytest.mark.parametrize("package", PACKAGES)
def test_each_public_name_is_there_and_is_described(package: str) -> None:
    door = importlib.import_module(f"softsearch.{package}")
    for name in homes(package):
        found = getattr(door, name)
        if isinstance(found, type) or inspect.isroutine(found):
            assert (found.__doc__ or "").strip(), f"softsearch.{package}.{name} has no docstring"
        if isinstance(found, type) and found.__module__.startswith("softsearch."):
            assert public_name(f"{found.__module__}.{found.__qualname__}") == f"softsearch.{package}.{name}"


def test_configs_docs_and_examples_name_public_classes_alone(repo_root: Path) -> None:
    kinds = ("configs/*.yaml", "src/*.yaml", "*.md", "examples/*.py", "examples/*.yaml", "notebooks/*.ipynb")
    listed = subprocess.run(["git", "ls-files", *kinds], cwd=repo_root, capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.split() if not name.startswith(("docs/adr", "CHANGELOG", "benchmarks"))]
    named = {name for file in files for name in TARGETS.findall((repo_root / file).read_text(encoding="utf-8"))}
    assert len(named) > 100
    public = {f"softsearch.{package}.{name}" for package in PACKAGES for name in homes(package)}
    extras = {name for name in named if name.startswith("softsearch.extras.")}
    assert named - extras - PRIVATE <= public


def test_examples_import_public_names_alone(repo_root: Path) -> None:
    """What packages of others are modelled on; ranges, errors and commands are public modules."""
    files = (repo_root / "examples" / "my_attention").rglob("*.py")
    nodes = [(file.name, node) for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    imports = [(name, node.module or "") for name, node in nodes if isinstance(node, ast.ImportFrom)]
    private = [f"{name}: {module}" for name, module in imports if module.count(".") > 1]
    assert sorted(private) == [
        "test_model.py: softsearch.testing.contract",  # modules of tests, all of which are imported
        "test_model.py: softsearch.testing.export",
    ]


def test_names_in_old_files_become_public() -> None:
    old = {"_target_": "softsearch.models.cells.GRUCell", "of": [{"_target_": "softsearch.data.corpora.table.Table"}]}
    assert with_public_names(old) == {
        "_target_": "softsearch.models.GRUCell",
        "of": [{"_target_": "softsearch.data.Table"}],
    }
    assert public_name("softsearch.models.a_module_that_is_gone.GRUCell") == "softsearch.models.GRUCell"


@pytest.mark.parametrize(
    "name", ["torch.nn.GRUCell", "softsearch.models.GRUCell", "softsearch.models.cells.Norm", "softsearch.app.x.BLEU"]
)
def test_other_names_stay(name: str) -> None:
    assert public_name(name) == name


def test_a_public_name_is_imported() -> None:
    from softsearch.models.cells import GRUCell

    assert imported("softsearch.models.GRUCell") is GRUCell
