"""softsearch serve: its options, and what ends it before it serves."""

import asyncio
import errno
import json
import logging
import os
import signal
import sys
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from softsearch.extras.serve import running
from softsearch.extras.serve.pool import Pool
from softsearch.process import how_to_install
from softsearch.runtime import cli
from tests.support.programs import run_python
from tests.support.serving import BUNDLE

BLOCKED = """
import sys
sys.modules["uvicorn"] = None
from softsearch.runtime.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("code", "arguments", "complaint"),
    [
        (2, [str(BUNDLE), str(BUNDLE)], "are both named bundle; rename one: NAME="),
        (2, [f"a b={BUNDLE}"], "'a b' cannot be the name of a model"),
        (2, [f"../a={BUNDLE}"], "'../a' cannot be the name of a model"),
        (2, [str(BUNDLE), "--queue", "64"], "--max-sentences is 128, expected at most --queue (64)"),
        (1, [str(BUNDLE), "--host", "203.0.113.1", "--port", "0"], "cannot listen on 203.0.113.1 port 0: "),
        (1, [str(BUNDLE), "--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid port 8000: "),
        (2, [str(BUNDLE), "--processes", "3", "--workers", "2"], "--workers is 2, expected at least one for each of"),
        (1, [str(BUNDLE), "--processes", "2", "--host", "203.0.113.1"], "cannot listen on 203.0.113.1 port 8000: "),
        (2, [str(BUNDLE), "--api-keys", "no/such/file"], "no/such/file cannot be read"),
        (1, [str(BUNDLE), "--glossary", "x=no/such/file"], "no/such/file"),
        (1, [str(BUNDLE), "--glossary", f"x={BUNDLE / 'manifest.json'}"], "manifest.json is JSON"),
        (2, [str(BUNDLE), "--glossary", "a b=terms.tsv"], "'a b' cannot be the name of a glossary"),
    ],
)
def test_what_cannot_be_served_is_an_error(
    code: int, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", *arguments]) == code
    error = capsys.readouterr().err
    assert error.startswith("softsearch: error: ")
    assert complaint in error


@pytest.mark.parametrize("arguments", [["--port", "65536"], ["--deadline", "nan"], ["--queue", "0"], []])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["serve", *([str(BUNDLE), *arguments] if arguments else [])])
    assert caught.value.code == 2
    assert "usage: softsearch serve" in capsys.readouterr().err


def test_a_bundle_that_cannot_be_opened_ends_the_server(victim: Path) -> None:
    (victim / "encoder.onnx").unlink()
    done = run_python("-m", "softsearch", "serve", str(victim), "--port", "0")
    assert done.returncode == 1
    loading, error = done.stderr.splitlines()  # it never says that it listens, nor that it stops
    assert json.loads(loading)["event"] == "loading"
    assert error.startswith("softsearch: error: ")
    assert "encoder.onnx" in error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            RuntimeError("can't start new thread"),
            "the server cannot start: can't start new thread; give it more memory",
        ),
        (MemoryError(), "the server cannot start: out of memory; "),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "Resource temporarily unavailable; give"),
        (ImportError("x.so: failed to map segment from shared object"), "failed to map segment"),
    ],
)
def test_too_little_memory_is_one_line(
    error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Pool, "load", AsyncMock(side_effect=error))
    assert cli.main(["serve", str(BUNDLE), "--port", "0"]) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("softsearch")]
    assert len(lines) == 1
    assert said in lines[0]


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGHUP")
async def test_a_reload_that_fails_in_any_way_is_logged_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "softsearch.server")
    monkeypatch.setattr(running, "gc", Mock())
    failures = [ZeroDivisionError("a surprise"), MemoryError(), OSError("no such device")]
    dispatcher = Mock(load=AsyncMock(side_effect=[None, *failures, None]), models={}, workers=1)
    server = running.Server(Mock(), dispatcher)
    loading = asyncio.create_task(running._load(server, {"port": 1}))
    expected = ["listening", "ready", *["reload failed, the old models stay"] * len(failures), "reloaded"]
    for count in range(2, len(expected) + 1):
        while len(caplog.messages) < count:
            await asyncio.sleep(0.01)
            assert not loading.done(), loading
        if count < len(expected):
            os.kill(os.getpid(), signal.SIGHUP)
    loading.cancel()
    assert caplog.messages == expected
    assert str(caplog.records[2].exc_info[1]) == "a surprise"  # type: ignore[index]  # with its traceback


def test_without_the_extra_the_error_names_it() -> None:
    done = run_python("-c", BLOCKED, "serve", str(BUNDLE))
    assert done.returncode == 1
    (said,) = done.stderr.splitlines()
    assert said == f"softsearch: error: serve needs uvicorn, which is not installed: {how_to_install('serve')}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a=x", "a=y"], "--keep a=y: another pattern has this name; change it"),
        (["("], "keep='(' is not a regular expression"),
        (["a=("], "keep='(' is not a regular expression"),
    ],
)
def test_patterns_are_checked_before_the_server_starts(
    given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for each in given for word in ("--keep", each)]
    assert cli.main(["serve", str(BUNDLE), "--port", "0", *words]) == 2
    assert message in capsys.readouterr().err
