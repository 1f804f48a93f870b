"""Files and folders are replaced as a whole; reports, caches, bundles and checkpoints test the moments in between."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from softsearch.files import new_file


def test_a_new_file_keeps_the_mode_and_overwrites_what_a_killed_process_left(tmp_path: Path) -> None:
    path, partial = tmp_path / "a", tmp_path / ".a.partial"
    path.write_text("old")
    path.chmod(0o640)
    partial.write_text("half of it")
    with new_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)
    assert [*tmp_path.iterdir()] == [path]


def test_of_two_that_write_one_file_the_first_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with ExitStack() as first:
        first.enter_context(new_file(path)).write(b"first")
        with new_file(path) as second:
            second.write(b"second")
            with pytest.raises(OSError, match="another process is writing it"):
                first.close()
    assert path.read_text() == "second"
