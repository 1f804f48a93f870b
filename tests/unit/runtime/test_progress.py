"""The progress line of a translation: only on a terminal, and without what an earlier run has translated."""

import io
from pathlib import Path

import pytest

from softsearch.runtime.progress import part_read, show_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Puts standard error on a terminal; not a fixture, because pytest captures anew when the test begins."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    return terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_it_shows_the_share_the_speed_and_the_time_left(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = on_terminal(monkeypatch)
    (tmp_path / "in.txt").write_bytes(b"x" * 1000)
    with (tmp_path / "in.txt").open("rb") as source, show_progress(part_read(source), tmp_path / "out.txt") as show:
        source.read(400)
        show(4000)  # of an earlier run
        assert terminal.getvalue() == ""
        source.read(100)
        clock[0] += 10.0
        show(5000)
    assert terminal.getvalue().rstrip() == "\r50%, 5,000 lines, 100 lines/s, 0:00:50 left"
    assert terminal.getvalue().endswith("\n")


def test_a_short_run_prints_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    (tmp_path / "in.txt").write_bytes(b"x\n")
    with (tmp_path / "in.txt").open("rb") as source, show_progress(part_read(source), tmp_path / "out.txt") as show:
        show(0)
    assert terminal.getvalue() == ""


def test_nothing_is_shown_where_translations_appear(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr("sys.stdout", Terminal())
    (tmp_path / "in.txt").write_bytes(b"x" * 10)
    with (tmp_path / "in.txt").open("rb") as source, show_progress(part_read(source), None) as show:
        show(0)
        clock[0] += 1.0
        show(10)
    assert terminal.getvalue() == ""
