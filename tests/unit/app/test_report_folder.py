"""A report's folder is written as a whole."""

import json
from pathlib import Path

import pytest

from softsearch.app.results import all_or_nothing, file_name
from softsearch.errors import ConfigError
from softsearch.evaluation.schema import Report, write_report
from tests.support.programs import run_python

REPORT = Report("test", "en", "de", "2026-01-01T00:00:00+00:00", "0", "none", ["ä"], ["ö"], [], {}, "")


def test_all_of_it_appears_at_once_over_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "alignments").mkdir()
    (tmp_path / "alignments" / "old.txt").write_text("old")
    (tmp_path / "mine.txt").write_text("mine")
    with all_or_nothing(tmp_path) as new:
        (new / "alignments").mkdir()
        (new / "alignments" / "new.txt").write_text("new")
        write_report(REPORT, new)
        assert not (tmp_path / "report.json").exists()
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == {
        "alignments",
        "alignments/new.txt",
        "mine.txt",
        "report.json",
    }
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["sources"] == ["ä"]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("old")

    def fail() -> None:
        with all_or_nothing(tmp_path) as new:
            write_report(REPORT, new)
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert (tmp_path / "report.json").read_text() == "old"


# Writes three files over older ones, and is stopped at a rename.
REPLACE = """
import os, signal, sys
from pathlib import Path
from softsearch.app.results import all_or_nothing

folder, how, at, calls, rename = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), 0, os.rename
def stopping(*arguments):
    global calls
    calls += 1
    if calls == at and how == "error":
        raise PermissionError(13, "Permission denied")
    rename(*arguments)
    if calls == at and how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if calls == at:
        sys.exit(143)
os.rename = stopping
with all_or_nothing(folder) as new:
    for name in "abc":
        (new / name).write_text("new")
"""


@pytest.mark.parametrize("how", ["kill", "signal", "error"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_moving_that_is_stopped_loses_nothing(tmp_path: Path, how: str, at: int) -> None:
    for name in "ab":
        (tmp_path / name).write_text("old")
    done = run_python("-c", REPLACE, tmp_path, how, at)
    assert done.returncode == {"kill": -9, "signal": 143, "error": 1}[how], done.stderr
    left = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    if how == "kill":
        beside = {f"{path.parent.name}/{path.name}": path.read_text() for path in tmp_path.glob(".unfinished-*/*/*")}
        assert set(left.values()) | set(beside.values()) == {"old", "new"}
        assert all(beside.get(f"old/{name}", left.get(name)) == "old" for name in "ab")
    else:
        assert left == {"a": "old", "b": "old"}
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write the report to .*file"), all_or_nothing(tmp_path / "file"):
        pass


@pytest.mark.parametrize(
    ("name", "expected"),
    [("run1", "run1"), ("run/best", "run-best"), ("a + b (2)", "a-+-b-2"), ("../..", "system"), ("größe", "größe")],
)
def test_names_of_systems_are_names_of_files(name: str, expected: str) -> None:
    assert file_name(name) == expected
