"""Folders that are complete or absent."""

from pathlib import Path

import pytest

from softsearch.data.sources.base import complete_folder


def test_failed_writer_leaves_nothing(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "a").write_text("half")
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        complete_folder(tmp_path / "corpus", ["a", "b"], write)
    assert list(tmp_path.iterdir()) == []


def test_slower_of_two_writers_keeps_the_folder_of_the_faster(tmp_path: Path) -> None:
    target = tmp_path / "corpus"

    def write(folder: Path) -> None:
        (folder / "a").write_text("slower")
        target.mkdir()
        (target / "a").write_text("faster")

    complete_folder(target, ["a"], write)
    assert (target / "a").read_text() == "faster"
    assert list(tmp_path.iterdir()) == [target]
