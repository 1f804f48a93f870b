"""softsearch serve: its options, and what ends it before it serves."""

from pathlib import Path

import pytest

from softsearch.runtime import cli
from tests.programs import run_python
from tests.serving import BUNDLE

BLOCKED = """
import sys
sys.modules["uvicorn"] = None
from softsearch.runtime.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("code", "arguments", "complaint"),
    [
        (2, [str(BUNDLE), str(BUNDLE)], "are both named bundle; give one another name: NAME="),
        (2, [f"a b={BUNDLE}"], "'a b' cannot be a model's name"),
        (2, [f"../a={BUNDLE}"], "'../a' cannot be a model's name"),
        (2, [str(BUNDLE), "--queue", "64"], "--max-sentences is 128, expected at most --queue (64)"),
        (1, [str(BUNDLE), "--host", "203.0.113.1", "--port", "0"], "cannot listen on 203.0.113.1 port 0: "),
        (1, [str(BUNDLE), "--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid port 8000: "),
        (2, [str(BUNDLE), "--api-keys", "no/such/file"], "no/such/file cannot be read"),
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


@pytest.mark.slow
def test_a_bundle_that_cannot_be_opened_ends_the_server(victim: Path) -> None:
    (victim / "encoder.onnx").unlink()
    done = run_python("-m", "softsearch", "serve", str(victim), "--port", "0")
    assert done.returncode == 1
    assert "encoder.onnx" in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("softsearch: error: ")


def test_without_the_extra_the_error_names_it() -> None:
    done = run_python("-c", BLOCKED, "serve", str(BUNDLE))
    assert done.returncode == 1
    assert done.stderr == "softsearch: error: softsearch serve needs uvicorn; run: pip install 'softsearch[serve]'\n"
