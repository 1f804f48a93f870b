"""Files of the current folder are not run, whatever they are named: a folder that somebody sent may be the current one.

The command itself starts from its own folder; the processes that it starts would have the current one first on their
path.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from softsearch.commands import every_command
from tests.support.commands import SMALL
from tests.support.serving import BUNDLE

pytestmark = pytest.mark.day

PROGRAM = Path(sys.executable).with_name("softsearch")
WORK = [
    ["doctor"],
    ["plugins"],
    ["translate", BUNDLE],
    ["prepare", *SMALL, "processes=2"],
    [
        "train",
        *SMALL,
        "trainer.devices=2",
        "trainer.strategy=ddp",
        "trainer.max_steps=2",
        "trainer.val_check_interval=2",
    ],
]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a module for each name of the standard library and of installed packages, which tells if it ran."""
    for name in filter(str.isidentifier, {*sys.stdlib_module_names, *packages_distributions()}):
        (tmp_path / f"{name}.py").write_text("open(__file__ + '.ran', 'w').close()\n")
    return tmp_path


def _start(arguments: Sequence[object], folder: Path) -> "subprocess.Popen[str]":
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    words = [str(word) for word in (PROGRAM, *arguments)]
    return subprocess.Popen(words, cwd=folder, env=environment | {"OMP_NUM_THREADS": "1"}, text=True, **streams)


@pytest.mark.parametrize(
    "arguments", [*([name, "--help"] for name in sorted({each.name for each in every_command()})), *WORK], ids=str
)
def test_no_command_runs_them(arguments: Sequence[object], hostile: Path) -> None:
    process = _start(arguments, hostile)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    assert not [*hostile.glob("*.ran")]


def test_the_server_and_its_workers_do_not_run_them(hostile: Path) -> None:
    with _start(["serve", BUNDLE, "--port", 0, "--workers", 2], hostile) as process:
        assert process.stdout is not None
        is_ready = any('"event": "ready"' in line for line in process.stdout)
        process.terminate()
    assert is_ready
    assert not [*hostile.glob("*.ran")]
