"""Blocks in several processes: same bytes in the same order, answers to co-processes, bad lines, deaths, Ctrl-C."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from softsearch import Translator
from softsearch.errors import InputError, SoftsearchError
from softsearch.runtime import block_processes
from softsearch.runtime.block_processes import in_processes
from softsearch.runtime.block_translation import Block, TranslatedBlock
from softsearch.runtime.cli import main
from tests.support.serving import BUNDLE, eventually

Start = Callable[..., subprocess.Popen[bytes]]
pytestmark = pytest.mark.multiprocess


def translated(translator: Translator, block: Block) -> TranslatedBlock:
    """A translation without a model; some blocks are errors, or end the process."""
    (line,) = block.lines or [""]
    if line == "bad":
        raise InputError(f"line {block.first_line} is bad")
    if line == "death":
        os._exit(7)
    return TranslatedBlock([], [(int(line), InputError(line))])


def numbers(lines: list[str], count: int = 2) -> Iterator[int]:
    blocks = (Block([line] if line else [], None, None, at) for at, line in enumerate(lines, start=1))
    work = in_processes(None, blocks, translated, count)  # type: ignore[arg-type]  # no translator is needed
    return (found.blank[0][0] for _, found in work)


def test_blocks_come_back_in_order_and_errors_after_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_processes, "_AHEAD", 1)
    many = [str(n) for n in range(40)]
    assert list(numbers([*many[:20], "", *many[20:]])) == list(range(40))
    for last, error, message in (
        ("bad", InputError, "line 6 is bad"),
        ("death", SoftsearchError, "died with exit code 7 while it translated lines from 6 on"),
    ):
        found = []
        with pytest.raises(error, match=message):
            found.extend(numbers([*many[:5], last]))
        assert found == [0, 1, 2, 3, 4]


def test_what_was_read_before_an_error_is_translated() -> None:
    def blocks() -> Iterator[Block]:
        for number in range(3):
            yield Block([str(number)], None, None, number + 1)
        raise InputError("line 4 cannot be read")

    found: list[int] = []
    answers = in_processes(None, blocks(), translated, 2)  # type: ignore[arg-type]  # no translator is needed
    with pytest.raises(InputError, match="line 4 cannot be read"):
        found.extend(answer.blank[0][0] for _, answer in answers)
    assert found == [0, 1, 2]


def start(popen: Start) -> subprocess.Popen[bytes]:
    return popen(
        [sys.executable, "-m", "softsearch", "translate", str(BUNDLE), "--processes", "2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.day
def test_the_same_bytes_as_from_one_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [b"one", b"ten", b"\xff", b"four euro"] * 600
    (tmp_path / "in.txt").write_bytes(b"\n".join(lines) + b"\n")
    said = []
    for count in (1, 2):
        options = ["--on-error", "blank", "--processes", str(count), "--search", "greedy", "--alignments"]
        files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / f"{count}.gz")]
        assert main(["translate", str(BUNDLE), *files, *options, str(tmp_path / f"{count}.json")]) == 0
        said.append(capfd.readouterr().err)
    assert said[0] == said[1]
    assert "600 of 2,400 lines could not be translated" in said[0]
    for kind in ("gz", "json"):
        assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()


@pytest.mark.day
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_co_process_is_answered_and_a_killed_process_is_an_error(popen: Start) -> None:
    """Fault: a process of `translate --processes` is killed. Effect: an error after the lines before."""
    process = start(popen)
    assert process.stdin is not None
    assert process.stdout is not None
    for line, expected in ((b"one\n", b"ein\n"), (b"ten\n", b"zehn\n")):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == expected
    for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(int(pid), signal.SIGKILL)
    _, error = process.communicate(b"one\n", timeout=60)
    assert process.returncode == 1
    assert b"one of the processes died with exit code -9 while it translated lines from 3 on" in error


def is_group(pid: int) -> bool:
    """Whether any process of a group lives."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.day
def test_ctrl_c_of_a_terminal_ends_all_processes(sigint: None, popen: Start) -> None:
    process = start(popen)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 130
    eventually(lambda: not is_group(process.pid))


def test_one_sentence_needs_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(BUNDLE), "one two", "--processes", "2"]) == 2
    assert "'one two' is text, but --input, --features, --resume or --processes is given" in capsys.readouterr().err
