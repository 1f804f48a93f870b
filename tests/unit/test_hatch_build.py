"""The page is built when a package is made: once, from the lock file, and never a reason to fail."""

import os
import stat
from pathlib import Path

import pytest

from hatch_build import PageBuildHook, build_page, is_stale

BUILT = "src/softsearch/extras/serve/web/assets/index.html"


class App:
    """What hatchling gives to hooks."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, message: str) -> None:
        self.warnings.append(message)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Sources of a page, and an npm that writes down what it is asked."""
    web = tmp_path / "clone" / "src" / "web"
    (web / "node_modules").mkdir(parents=True)
    (web / "main.js").write_text("run()")
    return tmp_path / "clone"


def npm(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Puts a program of this name on the PATH, alone."""
    folder.mkdir()
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin" if script else str(folder / "nothing"))


def run_hook(clone: Path) -> list[str]:
    app = App()
    hook = PageBuildHook(str(clone), {}, None, None, "", "wheel", app)  # type: ignore[arg-type]
    hook.initialize("standard", {})
    return app.warnings


def test_it_installs_from_the_lock_file_and_builds_once(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tmp_path / "calls"
    built = clone / BUILT
    npm(
        tmp_path / "bin",
        monkeypatch,
        f'echo "$PWD $@" >> "{calls}"\n[ "$1" = ci ] || {{ mkdir -p "{built.parent}"; touch "{built}"; }}',
    )
    assert run_hook(clone) == []
    web = clone / "src" / "web"
    install, build = calls.read_text().splitlines()
    assert install.startswith(f"{web} ci --ignore-scripts ")
    assert build == f"{web} run build"
    assert run_hook(clone) == []
    assert len(calls.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("script", "problem"),
    [("", "there is no npm on the PATH"), ("echo npm error ENOTFOUND >&2; exit 1", "failed: npm error ENOTFOUND")],
)
def test_without_npm_or_its_registry_it_warns(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    npm(tmp_path / "bin", monkeypatch, script)
    (warning,) = run_hook(clone)
    assert problem in warning
    assert warning.endswith("; run `make web` later")
    assert problem in build_page(clone / "src" / "web")


def test_a_page_is_stale_when_a_source_is_newer(clone: Path) -> None:
    built, source = clone / BUILT, clone / "src" / "web" / "main.js"
    assert is_stale(clone)
    built.parent.mkdir(parents=True)
    built.write_text("")
    for path in (clone / "src" / "web", source, built):
        os.utime(path, (1000, 1000))  # as in an sdist
    assert not is_stale(clone)
    os.utime(clone / "src" / "web" / "node_modules", (2000, 2000))
    assert not is_stale(clone)
    os.utime(source, (2000, 2000))
    assert is_stale(clone)
