"""Outputs that would replace an input are refused, and everything else is not."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError
from softsearch.overwriting import refuse_overwriting


@dataclass
class Corpus:
    """Options of an inner part."""

    train: list[str]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text with links to it, a bundle, a run, and a pipe."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("one\n")
    Path("symbolic").symlink_to("text")
    Path("hard").hardlink_to("text")
    for name in ("bundle/manifest.json", "bundle/encoder.onnx", "run/metrics.csv", "run/checkpoints/last.ckpt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    Path("run/test.hypotheses.txt").write_text("eins\n")
    Path("corpus.de").write_text("eins\n")
    os.mkfifo("pipe")


REFUSED: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
    ({"src": Path("text"), "out": Path("text")}, ("out",), "out=text would overwrite text, which src reads"),
    ({"src": Path("./text"), "out": Path("bundle/../text")}, ("out",), "which src reads"),
    ({"src": Path("text"), "out": Path("symbolic")}, ("out",), "out=symbolic.new"),
    ({"src": Path("symbolic"), "out": Path("hard")}, ("out",), "overwrite symbolic"),
    ({"src": [Path("no"), Path("text")], "out": Path("text")}, ("out",), "which src reads"),
    ({"data": {"train": ["text"]}, "out": Path("text")}, ("out",), "which data.train reads"),
    ({"data": Corpus(["text"]), "out": Path("text")}, ("out",), "which data.train reads"),
    ({"data": {"train": "corpus"}, "out": Path("corpus.de")}, ("out",), "overwrite corpus.de, which data.train reads"),
    ({"words": "@text", "out": Path("text")}, ("out",), "which words reads"),
    ({"out": Path("new"), "trace": Path("./new")}, ("out", "trace"), "out and trace would both write new"),
    ({"bundle": Path("bundle"), "out": Path("bundle/encoder.onnx")}, ("out",), "write outside of the bundle"),
    ({"bundle": Path("bundle"), "out": Path("bundle/new")}, ("out",), "change bundle, which bundle reads"),
    ({"run": Path("run"), "out": Path("run/checkpoints/last.ckpt")}, ("out",), "which run reads"),
    ({"run": Path("run"), "out": Path("run/metrics.csv")}, ("out",), "out=run/metrics.new.csv"),
    ({"ckpt": Path("run/checkpoints/last.ckpt"), "out": Path("run")}, ("out/",), "overwrite run/checkpoints/last.ckpt"),
    ({"ckpt": Path("run"), "out": Path()}, ("out/",), "change run, which ckpt reads"),
    ({"ckpt": Path("run"), "out": Path("bundle/..")}, ("out/",), "change run, which ckpt reads"),
    ({"src": Path(".text.partial"), "out": Path("text")}, ("out",), "overwrite .text.partial"),
    ({"ref": Path("run/test.hypotheses.txt"), "run_dir": Path("run")}, ("run_dir/*.hypotheses.txt",), "another folder"),
]


@pytest.mark.parametrize(("values", "writes", "message"), REFUSED)
def test_an_output_that_replaces_an_input_is_refused(
    values: dict[str, Any], writes: tuple[str, ...], message: str
) -> None:
    Path(".text.partial").write_text("unfinished")
    with pytest.raises(ConfigError) as refused:
        refuse_overwriting(values, writes)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("values", "writes"),
    [
        ({"src": Path("text"), "out": Path("new")}, ("out",)),
        ({"src": Path("text"), "out": Path("text")}, ()),
        ({"src": Path("pipe"), "out": Path("pipe")}, ("out",)),
        ({"src": Path(os.devnull), "out": Path(os.devnull), "trace": Path(os.devnull)}, ("out", "trace")),
        ({"run": Path("run"), "table": Path("run/results.md")}, ("table",)),
        ({"run": Path("run"), "out": Path("run/checkpoints/average.ckpt")}, ("out",)),
        ({"ckpt": Path("run"), "run_dir": Path("run")}, ("run_dir/*.hypotheses.txt",)),
        ({"ref": Path("run/metrics.csv"), "run_dir": Path("run")}, ("run_dir/*.hypotheses.txt",)),
        ({"name": "no\0file", "other": "x" * 5000, "out": Path("x" * 5000)}, ("out",)),
    ],
)
def test_others_are_not(values: dict[str, Any], writes: tuple[str, ...]) -> None:
    refuse_overwriting(values, writes)


def test_text_is_a_file_only_where_it_may_be() -> None:
    refuse_overwriting({"search": "text", "out": Path("text")}, ("out",), text=False)


@pytest.mark.parametrize(
    ("given", "out", "message"),
    [
        ("text", "", "standard output is .*text, which standard input reads"),
        ("text", "text", "out=text would overwrite .*text, which standard input reads"),
    ],
)
def test_files_that_the_shell_opens_count(given: str, out: str, message: str) -> None:
    script = (
        "import sys; from pathlib import Path; from softsearch.overwriting import refuse_overwriting\n"
        "refuse_overwriting({'out': Path(sys.argv[1]) if sys.argv[1] else None}, ('out',))"
    )
    with Path(given).open("rb") as stdin, Path("text" if not out else os.devnull).open("ab") as stdout:
        done = subprocess.run(
            [sys.executable, "-c", script, out],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
    assert done.returncode == 1
    assert re.search(message, done.stderr)
