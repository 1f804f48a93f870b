"""Threads of a busy machine do not wait for each other at full speed, in any command that computes with PyTorch."""

import ast
import os
import sys
from pathlib import Path

import pytest

from softsearch.app import SPIN_COUNT, limit_spinning


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that it is put back, whatever the test does
        monkeypatch.delenv(name)


def test_a_limit_is_set() -> None:
    limit_spinning()
    assert os.environ["GOMP_SPINCOUNT"] == str(SPIN_COUNT)


@pytest.mark.parametrize(("name", "value"), [("GOMP_SPINCOUNT", "7"), ("OMP_WAIT_POLICY", "active")])
def test_what_the_user_has_set_stays(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    limit_spinning()
    assert os.environ[name] == value
    assert ("GOMP_SPINCOUNT" in os.environ) == (name == "GOMP_SPINCOUNT")


def imported_first(path: Path) -> list[str]:
    """The modules that a file imports at its top, in order."""
    found: list[str] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(str(node.module).partition(".")[0] if node.module != "softsearch.app.start" else node.module)
    return found


def test_it_is_set_before_any_command_imports_pytorch(repo_root: Path) -> None:
    """A package's ``__init__`` runs before its modules, so that nothing but it must come before PyTorch."""
    src = repo_root / "src"
    assert set(imported_first(src / "softsearch" / "__init__.py")) <= sys.stdlib_module_names
    package = src / "softsearch" / "app" / "__init__.py"
    assert set(imported_first(package)) <= sys.stdlib_module_names
    assert "limit_spinning()" in package.read_text(encoding="utf-8").splitlines()[-1]
    assert set(imported_first(src / "softsearch" / "__main__.py")) <= sys.stdlib_module_names | {"softsearch.app.start"}
    scripts = list(src.glob("*.py"))
    assert len(scripts) >= 11
    for script in scripts:
        assert imported_first(script) == ["softsearch.app.start"], script
    assert set(imported_first(src / "softsearch" / "app" / "start.py")) <= sys.stdlib_module_names
