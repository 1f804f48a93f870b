"""Every command tunes its process before it imports PyTorch, and leaves alone what the user has set."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from softsearch.errors import ConfigError
from softsearch.process import KERNELS, PYTORCH_KERNELS, SPIN_COUNT, fail, how_to_install, tune_cpu
from tests.support.programs import run_python


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        monkeypatch.setenv(name, "")  # so that it is put back, whatever the test does
        monkeypatch.delenv(name)
    monkeypatch.setattr("softsearch.process.sys.platform", "none")  # malloc's settings would stay after the test


def test_limits_are_set() -> None:
    tune_cpu()
    assert os.environ["GOMP_SPINCOUNT"] == str(SPIN_COUNT)
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == str(KERNELS)
    assert os.environ["LRU_CACHE_CAPACITY"] == str(PYTORCH_KERNELS)


@pytest.mark.parametrize(
    ("name", "value"),
    [("GOMP_SPINCOUNT", "7"), ("OMP_WAIT_POLICY", "active"), ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "9")],
)
def test_what_the_user_has_set_stays(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    tune_cpu()
    assert os.environ[name] == value
    assert ("GOMP_SPINCOUNT" in os.environ) == (name != "OMP_WAIT_POLICY")


@pytest.mark.parametrize("entry", ["run", "job"])
def test_commands_are_tuned_before_pytorch_is_imported(entry: str) -> None:
    """Launchers start processes that have only the job of a command."""
    code = f"""
import sys
import hydra
from softsearch.app.config import command, job
from softsearch.commands import Command

calls = []

def tuned():
    assert "torch" not in sys.modules
    calls.append(1)
    if len(calls) == {2 if entry == "job" else 1}:
        sys.exit("tuned")

def main(**_):
    return lambda job: lambda: job(None)

job.tune_cpu = tuned
hydra.main = main
command.run(Command("compare", "", "builtins:print", "key=value"))
"""
    done = run_python("-c", code)
    assert (done.returncode, done.stderr) == (1, "tuned\n")


def test_what_an_error_quotes_is_text_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fail(ConfigError("the file \x1b[2J\nis missing"))
    assert capsys.readouterr().err == "error: the file \\x1b[2J\nis missing\n"


@pytest.mark.parametrize("command", ["doctor", "cache"])
def test_a_reader_may_leave(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "softsearch", command], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (None, "pip install 'softsearch[serve]'"),
        ('{"url": "file:///opt/a%20clone", "dir_info": {"editable": true}}', "pip install -e '/opt/a clone[serve]'"),
        ('{"url": "file:///opt/clone", "dir_info": {}}', "pip install '/opt/clone[serve]'"),
        ('{"url": "file:///opt/x.whl", "archive_info": {}}', "pip install 'softsearch[serve] @ file:///opt/x.whl'"),
        (
            '{"url": "https://host/x.git", "vcs_info": {"vcs": "git", "commit_id": "ab12"}}',
            "pip install 'softsearch[serve] @ git+https://host/x.git@ab12'",
        ),
    ],
)
def test_extras_come_from_where_softsearch_came_from(
    origin: str | None, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (info := tmp_path / "softsearch-1.0.dist-info").mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: softsearch\nVersion: 1.0\n")
    if origin is not None:
        (info / "direct_url.json").write_text(origin)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert how_to_install("serve") == line
    if "clone" in line:
        monkeypatch.setattr(Path, "cwd", lambda: Path(line.partition("'")[2].partition("[")[0]))
        assert "'.[serve]'" in how_to_install("serve")
