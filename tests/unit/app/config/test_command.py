"""Mistakes on the command line are answered at once, on one screen, without a traceback."""

import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra.core.hydra_config import HydraConfig

from softsearch.app.config.command import run
from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import CONFIGS
from softsearch.commands import named
from softsearch.errors import ConfigError
from tests.support.commands import run as run_script


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("sead=3", "error: there is no config key 'sead'; did you mean 'seed'?"),
        ("batching.tokens=abc", "error: batching.tokens is 'abc' (str), expected a whole number"),
    ],
)
def test_a_mistake_is_a_line_on_standard_error(tmp_path: Path, option: str, message: str) -> None:
    """Typed as users do; test_mistakes.py has many more, in one process."""
    run_dir = tmp_path / "run"
    done = run_script("train.py", option, f"hydra.run.dir={run_dir}", SOFTSEARCH_CACHE=str(tmp_path / "cache"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(message)
    for name in ("checkpoints", "metrics.csv", "metrics.json"):  # it did not train first
        assert not (run_dir / name).exists()


CACHED = sorted(path.stem for path in CONFIGS.glob("*.yaml") if "cache_dir:" in path.read_text())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder; what a command changes of its process is put back."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setattr(logging, "raiseExceptions", True)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    level = logging.root.level
    yield tmp_path
    logging.root.setLevel(level)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    HydraConfig.instance().cfg = None


def start(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[str]:
    """The cache that a command gets to see."""
    quiet = [f"hydra/{log}=disabled" for log in ("job_logging", "hydra_logging")]
    quiet += [f"hydra.{log}.disable_existing_loggers=false" for log in ("job_logging", "hydra_logging")]
    needed = ["ckpt=a.ckpt", "out=b"] if name in ("dictionary", "export") else ["claim=all"] * (name == "reproduce")
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *quiet, f"hydra.run.dir={folder / 'run'}", *needed, *options])
    seen: list[str] = []

    def work(options: Any) -> None:
        seen.append(str(options.cache_dir))

    monkeypatch.setattr("softsearch.app.config.job.resolve_name", lambda _: work)
    command = named(name)
    assert command is not None
    run(command)
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


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["experiment=demo", "model=gru"], "; experiment=demo sets it for another model than model=gru, leave one out"),
        (["experiment=demo", "model=gru", "+model.encoder.x=1"], ""),
        (["experiment=demo"], ""),
        (["model=gru"], ""),
        (["loss=mine"], "; the model's recipe may set it, ~loss.bfloat16 leaves it out"),
        (["loss=mine", "loss.bfloat16=true"], ""),
    ],
)
def test_an_option_that_was_not_typed_is_said_to_be_of_an_experiment_or_a_recipe(words: list[str], advice: str) -> None:
    key = "loss.bfloat16" if words[0] == "loss=mine" else "model.encoder"
    message = f"{key} is not an option of Mine: there are: steps"
    assert str(CommandLine("train", words).with_origin(ConfigError(message))) == message + advice
