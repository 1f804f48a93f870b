"""The cache is listed and measured, and only what is known to be of it is removed; the doctor names what is missing."""

import io
import os
import time
from pathlib import Path

import pytest

from softsearch.app import doctor as doctor_module
from softsearch.app.cache import cache, cache_folder, entries
from softsearch.app.doctor import doctor
from softsearch.data.preparation.cache_folder import make_folder
from softsearch.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache beside files of a person."""
    monkeypatch.setenv("SOFTSEARCH_CACHE", str(tmp_path))
    for name in ("spellout-1", "prepared/2"):
        make_folder(tmp_path / name, lambda new: (new / "train.en").write_bytes(b"x" * 500_000) and None)
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / ("0" * 64)).write_bytes(b"x")
    for name in ("downloads/thesis.pdf", "mine/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    old = time.time() - 10 * 86_400
    os.utime(tmp_path / "prepared" / "2", (old, old))
    return tmp_path


def names(folder: Path) -> list[str]:
    return [entry.path.relative_to(folder).as_posix() for entry in entries(folder)]


def test_a_list_has_sizes_and_ages_and_removes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert names(folder) == ["downloads/" + "0" * 64, "prepared/2", "spellout-1"]
    cache([])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["0.5", "MB", "10.0", "days", "prepared/2"]
    assert lines[-1].endswith(f"1.0 MB in 3 folders and downloads of {folder}")


def test_home_is_where_training_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTSEARCH_CACHE", "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere"


def test_clear_asks_and_leaves_what_is_not_of_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="add --yes"):
        cache(["clear"])
    with monkeypatch.context() as patch:  # Ctrl-D at a terminal
        patch.setattr("sys.stdin", io.StringIO())
        patch.setattr("sys.stdin.isatty", lambda: True)
        cache(["clear"])
    assert len(names(folder)) == 3
    cache(["clear", "--older", "5", "--yes"])
    assert names(folder) == ["downloads/" + "0" * 64, "spellout-1"]
    cache(["clear", "--yes"])
    assert names(folder) == []
    assert (folder / "downloads" / "thesis.pdf").read_text() == (folder / "mine" / "notes.txt").read_text() == "mine"


def test_the_doctor_says_what_is_missing_for_what(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor()
    said = capsys.readouterr().out
    assert f"cache       {folder}, " in said
    assert "lab         ready  (train, " in said
    found = doctor_module._version
    monkeypatch.setattr(doctor_module, "_version", lambda name: "" if name in ("torch", "optuna") else found(name))
    doctor()
    said = capsys.readouterr().out
    assert "lab         lacks torch: pip install 'softsearch[lab]'  (train, " in said
    assert "sweep       lacks optuna: pip install 'softsearch[sweep]'  (sweep, " in said
