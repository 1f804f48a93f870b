"""Public names: each package exports what it promises, and configs, docs and examples use nothing else."""

import importlib
import inspect
import re
import subprocess
from pathlib import Path

import pytest

from softsearch.app.config.validation import imported
from softsearch.doors import PACKAGES, public_name, with_public_names
from tests.api_pages import homes
from tests.architecture.outside import Import, imports, is_allowed, outside_doors, public_names, room_names

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


def test_only_doors_and_rooms_are_imported(repo_root: Path) -> None:
    """By extras, benchmarks, docs, notebooks, examples, and the packages that ``softsearch new`` writes."""
    assert len({found.file for found in imports(repo_root)}) > 120
    assert not outside_doors(repo_root)


@pytest.mark.parametrize(
    ("file", "module", "name"),
    [
        ("docs/a.md", "softsearch.models.cells", "GRUCell"),
        ("docs/a.md", "softsearch.models", "Norm"),
        ("docs/a.md", "softsearch.app", "build"),  # a room is not for packages of others
        ("docs/a.md", "softsearch.extras.sweep.study", "Plan"),
        ("docs/a.md", "softsearch.files", "_sync"),
        ("docs/a.md", "softsearch.runtime.cli", ""),
        ("benchmarks/a.py", "softsearch.search.blocks", "MOST"),
        ("src/softsearch/extras/serve/a.py", "softsearch.extras.claims.claim", "Claim"),
        ("src/softsearch/extras/serve/a.py", "softsearch.runtime.system", "System"),
    ],
)
def test_other_names_are_refused(file: str, module: str, name: str, repo_root: Path) -> None:
    assert not is_allowed(Import(file, module, name), public_names(repo_root), room_names(repo_root))


def test_each_name_of_a_room_is_there_and_used(repo_root: Path) -> None:
    used = {(found.module, found.name) for found in imports(repo_root)}
    for room, names in room_names(repo_root).items():
        if room not in ("softsearch.process", "softsearch.suggestions"):  # modules of the core
            assert {name for name in names if (room, name) not in used} == set()
            assert all(hasattr(importlib.import_module(room), name) for name in names)


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
