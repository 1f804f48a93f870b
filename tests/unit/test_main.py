"""Command ``softsearch``: the commands of the lab and of the runtime."""

import re
import sys

import pytest

from softsearch import __main__
from softsearch.commands import every_command


@pytest.mark.parametrize(
    ("typed", "started"),
    [
        ("train model=gru", ("train", ["model=gru"])),
        ("train", ("train", [])),
        ("demo", "the runtime's"),
        ("score ckpt=a.ckpt tokens=true", ("score", ["ckpt=a.ckpt", "tokens=true"])),
        ("score ++ckpt=a.ckpt", ("score", ["++ckpt=a.ckpt"])),
        ("score exports/a b=c.en d.de", "the runtime's"),
        ("score ./a=b c.en d.de", "the runtime's"),
        ("score", "the runtime's"),
        ("translate exports/a", "the runtime's"),
        ("help train", ("train", ["--help"])),
        ("help translate", "the runtime's"),
        ("", "the runtime's"),
    ],
)
def test_who_runs_a_command(typed: str, started: object, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(sys, "argv", ["softsearch", *typed.split()])
    monkeypatch.setattr(__main__, "start", lambda command, options: calls.append((command.name, options)))
    monkeypatch.setattr("softsearch.runtime.cli.main", lambda _: calls.append("the runtime's"))
    __main__.main()
    assert calls == [started]


@pytest.mark.parametrize("typed", ["--help", "help"])
def test_help_names_every_command(
    typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["softsearch", typed])
    with pytest.raises(SystemExit, match="0"):
        __main__.main()
    words = set(re.findall(r"\w+", capsys.readouterr().out))
    assert {command.name for command in every_command()} <= words
    assert {"train", "sweep", "translate", "serve"} <= words
