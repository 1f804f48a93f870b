"""Mistakes on the command line are answered at once, on one screen, without a traceback."""

import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.singleton import Singleton

from softsearch.app.config.command import run
from softsearch.app.config.composition import CONFIGS
from tests.integration.commands import run as run_script

AT_ONCE = [
    ("sead=3", "there is no config key 'sead'; did you mean 'seed'?"),
    ("optimizer.lrr=3", "there is no config key 'optimizer.lrr'; did you mean 'optimizer.lr'?"),
    ("model=rnnserch", "there is no model=rnnserch; did you mean 'rnnsearch'?"),
    ("batching.tokens=abc", "batching.tokens is 'abc' (str), expected a whole number"),
]
ALL_THE_REST = [
    ("modle=rnnsearch", "there is no config key 'modle'; did you mean 'model'?"),
    ("+optimizer.lrr=3", "optimizer.lrr is not an option of Adam: did you mean 'lr'?"),
    ("optimizer.lr=abc", "optimizer.lr is 'abc' (str), expected a number"),
    ("optimizer.lr=-1", "Invalid learning rate: -1"),
    ("data=parallel", "data.train"),
    ("search.beam=0", "search.beam is 0, expected 1 to 1000"),
    (
        "model.decoder.dropout=1.5",
        "model.decoder.dropout is 1.5 (float), expected a number of at least 0 and less than 1",
    ),
    ("resume=nowhere.ckpt", "resume=nowhere.ckpt: no such file"),
]


@pytest.mark.parametrize(
    ("option", "message"), [*AT_ONCE, *(pytest.param(*case, marks=pytest.mark.slow) for case in ALL_THE_REST)]
)
def test_a_mistake_is_one_screen_on_standard_error(tmp_path: Path, option: str, message: str) -> None:
    short = ("trainer.max_steps=1", "trainer.log_every_n_steps=1", f"hydra.run.dir={tmp_path / 'run'}")
    done = run_script("train.py", option, *short, SOFTSEARCH_CACHE=str(tmp_path / "cache"))
    assert done.returncode == (1 if option.startswith("resume") else 2)
    assert "error: " in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert len(done.stderr.splitlines()) <= 10, done.stderr
    for name in ("checkpoints", "metrics.csv", "metrics.json"):  # it did not train first
        assert not (tmp_path / "run" / name).exists()


CACHED = sorted(path.stem for path in CONFIGS.glob("*.yaml") if "cache_dir:" in path.read_text())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder; what a command changes of its process is put back."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setattr(logging, "raiseExceptions", True)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hydra, level = Singleton.get_state(), logging.root.level
    yield tmp_path
    logging.root.setLevel(level)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    Singleton.set_state(hydra)


def start(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[str]:
    """The cache that a command gets to see."""
    quiet = [f"hydra/{log}=disabled" for log in ("job_logging", "hydra_logging")]
    quiet += [f"hydra.{log}.disable_existing_loggers=false" for log in ("job_logging", "hydra_logging")]
    needed = ["ckpt=a.ckpt", "out=b"] if name in ("dictionary", "export") else []
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *quiet, f"hydra.run.dir={folder / 'run'}", *needed, *options])
    seen: list[str] = []

    def work(options: Any) -> None:
        seen.append(str(options.cache_dir))

    module = SimpleNamespace(work=work)
    monkeypatch.setattr("softsearch.app.config.command.import_module", lambda _: module)
    run(name, "module.work")
    return seen


@pytest.mark.parametrize("name", [*CACHED, "prepare"])
def test_a_tilde_in_the_cache_folder_is_the_home(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(name, home, monkeypatch, "cache_dir='~/there'") == [f"{home}/there"]
    monkeypatch.setenv("SOFTSEARCH_CACHE", "~/elsewhere")
    assert start(name, home, monkeypatch) == [f"{home}/elsewhere"]


def test_a_home_that_is_not_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        start("score", home, monkeypatch, "cache_dir='~nobody-of-that-name/there'")
    assert "error: cache_dir=~nobody-of-that-name/there: Could not determine home" in capsys.readouterr().err
