"""Files: those that are read are regular, and those that are written are replaced as a whole."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from softsearch.files import new_file, open_file


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


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
def test_what_is_not_a_regular_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    (tmp_path / "link").symlink_to("a")
    for name in ("a", "link"):
        with open_file(tmp_path / name) as file:
            assert file.read() == b"text"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "devices").symlink_to("/dev")
    (tmp_path / "secrets").symlink_to("/proc/self/environ")
    for name in ("pipe", "devices/zero", "secrets", "devices/../proc/self/maps"):
        with pytest.raises(OSError, match="it is not a regular file"):
            open_file(tmp_path / name)
    for error, name in ((FileNotFoundError, "none"), (IsADirectoryError, "devices")):
        with pytest.raises(error):
            open_file(tmp_path / name)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_what_cannot_be_a_name_is_an_error_of_the_system(name: str) -> None:
    with pytest.raises(OSError, match="its name cannot be that of a file"):
        open_file(Path(name))
