"""Which code ran, in a checkout and outside of one."""

import logging
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from softsearch.app.environment import git_state

UNKNOWN = {"commit": None, "dirty": None, "diff_stat": None}


def git(folder: Path, *arguments: str) -> str:
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    options = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *options, *arguments], cwd=folder, env=os.environ | alone, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git(tmp_path, "init", "-q")
    (tmp_path / "model.py").write_text("x = 1\n")
    git(tmp_path, "add", "model.py")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_a_clean_checkout(checkout: Path) -> None:
    assert git_state(checkout) == {"commit": git(checkout, "rev-parse", "HEAD"), "dirty": False, "diff_stat": ""}


def test_changes_are_named(checkout: Path) -> None:
    (checkout / "model.py").write_text("x = 2\ny = 3\n")
    found = git_state(checkout)
    assert found["dirty"] is True
    assert found["diff_stat"].splitlines()[0].split() == ["model.py", "|", "3", "++-"]


def test_a_new_file_makes_it_dirty(checkout: Path) -> None:
    (checkout / "new.py").write_text("")
    assert (git_state(checkout)["dirty"], git_state(checkout)["diff_stat"]) == (True, "")
    assert [git_state(checkout, path)["dirty"] for path in ("model.py", "new.py")] == [False, True]


def test_the_checkout_of_a_hook_is_not_ours(checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no index"))
    assert git_state(checkout)["dirty"] is False


def test_outside_a_checkout_nothing_is_known(checkout: Path) -> None:
    """An installed package below somebody's checkout is no part of it."""
    (checkout / "site-packages").mkdir()
    assert git_state(checkout / "site-packages") == UNKNOWN


def test_without_git_nothing_is_known(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert git_state(checkout) == UNKNOWN


def test_a_checkout_without_a_commit_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git(tmp_path, "init", "-q")
    with caplog.at_level(logging.WARNING):
        assert git_state(tmp_path) == UNKNOWN
    assert f"the state of the code in {tmp_path} is unknown" in caplog.text
