"""Folders in the cache: made by one process, whole or absent, checked when opened."""

import errno
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from softsearch.data.preparation import cache_folder
from softsearch.data.preparation.cache_folder import INDEX, damage, lock, make_folder
from softsearch.errors import ConfigError, CorpusError

NEEDS_LOCKS = pytest.mark.skipif(cache_folder.fcntl is None, reason="the system has no locks")

Start = Callable[[Path], subprocess.Popen[str]]
# A process that makes a folder, says so, and ends when it is told to; what it writes says who it is.
PROCESS = """
import os, sys
from pathlib import Path
from softsearch.data.preparation.cache_folder import make_folder

def write(folder):
    (folder / "a").write_text("of a process")
    print("writing", flush=True)
    sys.stdin.readline()
    (folder / "b").write_text(str(os.getpid()))

print("started", flush=True)
make_folder(Path(sys.argv[1]), write)
print("done", flush=True)
"""


@pytest.fixture
def start(popen: Callable[..., subprocess.Popen[str]]) -> Start:
    """Starts a process that makes a folder."""

    def started(folder: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROCESS, folder]
        process = popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert says(process) == "started"
        return process

    return started


def says(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def write(folder: Path) -> None:
    (folder / "a").write_text("text")
    (folder / "b").write_bytes(bytes(range(256)))


def no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def visible(parent: Path) -> list[Path]:
    """What is there besides the files of locks."""
    return [path for path in parent.iterdir() if path.suffix != ".lock"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "corpus"


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (lambda f: os.truncate(f / "b", 255), "b: found 255 bytes, .*, expected 256 bytes, "),
    "empty": (lambda f: os.truncate(f / "b", 0), "b: found 0 bytes, .*, expected 256 bytes, "),
    "longer": (lambda f: (f / "a").write_text("text+"), "a: found 5 bytes, .*, expected 4 bytes, "),
    "missing": (lambda f: (f / "a").unlink(), "a: found no such file, expected 4 bytes, "),
    "additional": (lambda f: (f / "c").write_text("c"), "c: found 1 bytes, .*, expected no such file"),
    "flipped": (lambda f: flip(f / "b", 100), "b: found 256 bytes, .*, expected 256 bytes, "),
    "no longer a file": (lambda f: ((f / "a").unlink(), (f / "a").mkdir()), r"a cannot be read \(Is a directory\)"),
    "all missing": (lambda f: [path.unlink() for path in f.iterdir()], f"it has no {INDEX}"),
    "index missing": (lambda f: (f / INDEX).unlink(), f"it has no {INDEX}"),
    "index empty": (lambda f: os.truncate(f / INDEX, 0), f"{INDEX} cannot be read"),
    "index not UTF-8": (lambda f: (f / INDEX).write_bytes(b"\xff"), f"{INDEX} cannot be read"),
    "index of another kind": (lambda f: (f / INDEX).write_text("[]"), f"{INDEX} cannot be read"),
    "no folder": (
        lambda f: ([path.unlink() for path in f.iterdir()], f.rmdir(), f.write_text("a file")),
        r"cannot be read \(Not a directory\)",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_made_again_with_a_warning(
    name: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_folder(folder, write)
    assert caplog.text == ""
    harm, message = DAMAGES[name]
    harm(folder)
    make_folder(folder, write)
    (warning,) = caplog.messages
    assert warning.startswith(f"{folder} is damaged and will be rebuilt: ")
    assert re.search(message, warning), warning
    assert damage(folder) is None
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b", INDEX]
    assert visible(folder.parent) == [folder]


def test_every_byte_of_the_index_counts(folder: Path) -> None:
    make_folder(folder, write)
    whole = (folder / INDEX).read_bytes()
    for place, byte in enumerate(whole):
        flipped = bytes([byte ^ 1 << place % 8])
        (folder / INDEX).write_bytes(whole[:place] + flipped + whole[place + 1 :])
        assert damage(folder) or flipped.isspace(), place


def test_much_damage_is_told_shortly(folder: Path) -> None:
    make_folder(folder, lambda new: [(new / str(i)).write_text("x") for i in range(9)] and None)
    for path in folder.glob("[0-9]"):
        path.write_text("y")
    message = damage(folder)
    assert message is not None
    assert message.startswith("0: found 1 bytes")
    assert message.endswith("; and 8 more files")


def test_a_whole_folder_is_left_alone_and_hidden_files_do_not_count(folder: Path) -> None:
    make_folder(folder, write)
    (folder / ".nfs0001").write_text("left by the file system")
    folder.parent.chmod(0o500)  # nothing needs to be written
    make_folder(folder, lambda _: pytest.fail("made again"))
    folder.parent.chmod(0o700)


def test_of_a_folder_as_it_was_made_only_the_index_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy without times is read once; archives may cut times to whole seconds."""
    make_folder(folder, write)
    copy, archived = folder.with_name("copy"), folder.with_name("archived")
    shutil.copytree(folder, copy, copy_function=shutil.copyfile)
    shutil.copytree(folder, archived)
    for path in archived.iterdir():
        second = int(path.stat().st_mtime)
        os.utime(path, (second, second))
    assert damage(copy) is None
    monkeypatch.setattr(cache_folder, "_describe", lambda path: pytest.fail(f"{path} is read"))
    assert [damage(each) for each in (folder, copy, archived)] == [None] * 3


def test_of_large_files_blocks_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder, "_MAX_HASHED_BYTES", 4000)
    monkeypatch.setattr(cache_folder, "_BLOCK", 10)
    monkeypatch.setattr(cache_folder, "_BLOCKS", 5)
    make_folder(folder, lambda new: (new / "large").write_bytes(bytes(4010)) and None)
    found = []
    for place in (0, 9, 10, 999, 1000, 1009, 1010, 3999, 4000, 4009):
        flip(folder / "large", place)
        if damage(folder):
            found.append(place)
        flip(folder / "large", place)
    assert found == [0, 9, 1000, 1009, 4000, 4009]
    with (folder / "large").open("r+b") as file:  # longer than the distance of blocks: found wherever it is
        file.seek(1500)
        file.write(b"x" * 1010)
    assert damage(folder)


def test_a_failed_writer_leaves_nothing(folder: Path) -> None:
    def fail(new: Path) -> None:
        (new / "a").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_folder(folder, fail)
    assert visible(folder.parent) == []


def test_a_full_disk_is_an_error_with_advice(folder: Path) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CorpusError, match=r"cannot write .*/corpus \(No space left on device\); free space there or"):
        make_folder(folder, full)
    assert visible(folder.parent) == []


def test_one_process_writes_and_the_others_wait(folder: Path, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    first = start(folder)
    assert says(first) == "writing"
    others = [start(folder) for _ in range(2)]
    first.communicate("go on\n")
    for other in others:
        assert says(other) == "done"  # without having written
        other.communicate()
    make_folder(folder, lambda _: pytest.fail("made again"))
    assert (folder / "b").read_text() == str(first.pid)
    assert visible(folder.parent) == [folder]


def test_a_killed_process_holds_nobody_and_what_it_began_is_removed(folder: Path, start: Start) -> None:
    killed = start(folder)
    assert says(killed) == "writing"
    waiting = start(folder)
    killed.kill()
    killed.communicate()
    assert says(waiting) == "writing"
    assert len(list(folder.parent.glob(".unfinished-*"))) == 1
    waiting.communicate("go on\n")
    assert (folder / "b").read_text() == str(waiting.pid)
    assert visible(folder.parent) == [folder]


@pytest.mark.parametrize("locks", [True, pytest.param(False, marks=NEEDS_LOCKS)])
def test_what_another_process_is_writing_stays(
    folder: Path, start: Start, locks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that makes another folder, and one that makes the same where the file system has no locks."""
    running = start(folder)
    assert says(running) == "writing"
    elsewhere = folder.with_name(".unfinished-another-host-corpus-x1")
    (elsewhere / "new").mkdir(parents=True)
    if locks:
        make_folder(folder.with_name("other"), write)
    else:
        monkeypatch.setattr(cache_folder.fcntl, "flock", no_locks)
        make_folder(folder, write)
    assert elsewhere.is_dir()
    running.communicate("go on\n")
    assert running.returncode == 0
    assert (folder / "b").read_text() == str(running.pid) if locks else (folder / "a").read_text() == "text"
    assert damage(folder) is None
    now = (elsewhere / "new").stat().st_mtime
    for path in (elsewhere / "new", elsewhere):
        os.utime(path, (0, now - 1.1 * cache_folder.ABANDONED_AFTER))
    make_folder(folder.with_name("third"), write)
    assert not elsewhere.exists()


@NEEDS_LOCKS
def test_without_locks_the_first_to_finish_wins(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_folder.fcntl, "flock", no_locks)

    def slow(new: Path) -> None:
        (new / "a").write_text("slower")
        make_folder(folder, write)

    make_folder(folder, slow)
    assert (folder / "a").read_text() == "text"
    assert visible(folder.parent) == [folder]
    assert "its file system has no locks (No locks available)" in caplog.text
    assert "is damaged" not in caplog.text


def test_the_index_names_each_file(folder: Path) -> None:
    make_folder(folder, write)
    assert json.loads((folder / INDEX).read_text()) == {
        "a": "4 bytes, sha256 982d9e3eb996f559",
        "b": "256 bytes, sha256 40aff2e9d2d8922e",
    }


@NEEDS_LOCKS
def test_waiting_is_told(folder: Path, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    running = start(folder)
    assert says(running) == "writing"

    class Release(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "waiting for another process" in record.getMessage():
                assert running.stdin is not None
                running.stdin.write("go on\n")
                running.stdin.flush()

    release = Release()
    cache_folder.log.addHandler(release)
    try:
        with caplog.at_level("INFO"):
            make_folder(folder, lambda _: pytest.fail("made again"))
    finally:
        cache_folder.log.removeHandler(release)
        running.communicate()
    assert f"waiting for another process that is making {folder}" in caplog.messages


@NEEDS_LOCKS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_process_that_lives_longer_holds_no_lock(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        pytest.fail("the lock is held")

    (ends, told), (runs, says) = os.pipe(), os.pipe()
    with lock(tmp_path / ".lock", busy=fail, missing=fail):
        child = os.fork()
        if not child:
            os.close(told)
            os.write(says, b"x")
            os.read(ends, 1)  # until the test ends
            os._exit(0)
        os.read(runs, 1)
    try:
        with lock(tmp_path / ".lock", busy=fail, missing=fail) as locked:
            assert locked
    finally:
        os.close(told)
        os.waitpid(child, 0)


@NEEDS_LOCKS
def test_a_pipe_in_the_place_of_a_lock_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    held = lock(tmp_path / ".lock", busy=list, missing=str)
    with pytest.raises(ConfigError, match=r"\.lock is not a file, expected the lock of a folder; remove it"), held:
        pass
