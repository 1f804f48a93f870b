"""Output files: they keep their mode and links, and are replaced atomically."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from softsearch.errors import InputError
from softsearch.runtime.output import open_output
from softsearch.runtime.resume import resume_outputs
from softsearch.text import read_lines


def write(path: Path, text: bytes = b"new\n") -> None:
    with open_output(path) as output:
        output.write(text)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    (tmp_path / "out").write_text("older, and longer\n")
    (tmp_path / "out").chmod(mode)
    write(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"new\n"
    assert (tmp_path / "out").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_goes_on_to_lead_to_the_file(tmp_path: Path, there: bool) -> None:
    (tmp_path / "results").mkdir()
    if there:
        (tmp_path / "results/target").write_text("older\n")
    (tmp_path / "link").symlink_to("results/target")
    write(tmp_path / "link")
    assert (tmp_path / "link").readlink() == Path("results/target")
    assert (tmp_path / "results/target").read_bytes() == b"new\n"
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["target"]


def test_links_in_a_circle_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new\n"


def test_a_new_file_has_the_mode_that_others_get(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write(tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="needs a user who may not write any file")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("older\n")
    (tmp_path / "out").chmod(0o400)
    with pytest.raises(InputError, match=r"out cannot be written \(Permission denied\)"):
        write(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "older\n"


@pytest.mark.parametrize("name", ["out.gz", "out.xz", "out.bz2", "out.ZST"])
def test_a_suffix_compresses_what_is_read_again(tmp_path: Path, name: str) -> None:
    if name == "out.ZST":
        pytest.importorskip("pyarrow")
    write(tmp_path / name, b"one\nten\n" * 1000)
    assert (tmp_path / name).stat().st_size < 1000
    assert list(read_lines(tmp_path / name)) == ["one", "ten"] * 1000
    with (
        pytest.raises(InputError, match=r"would be compressed, and --resume continues plain files"),
        ExitStack() as stack,
    ):
        stack.enter_context(resume_outputs(tmp_path / name, None, {}))
