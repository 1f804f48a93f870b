"""A trial's process starts, is watched and ends with everything that it started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from softsearch.extras.shared import die_with_parent
from softsearch.extras.shared.train_process import last_lines, logged_values, train_command, training
from softsearch.extras.sweep.trial import TrialFailed, objective_value, override
from softsearch.process import protect_children
from tests.support.serving import alive

WITH_A_CHILD = """
import os, pathlib, signal, subprocess, sys, time
here = pathlib.Path(__file__).parent
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143) if os.environ["POLITE"] == "yes" else None)
(here / "tmp").write_text(f"{os.getpid()} {child.pid}")
(here / "tmp").rename(here / "pids")
while True:
    time.sleep(0.1)
"""


def wait_for(path: Path) -> str:
    """What a file holds, once it is there."""
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.02)
    return path.read_text()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1e-05, 1e-05), (3, 3), (True, True), (None, None), ("rnnsearch", "rnnsearch"), ("[1,2]", [1, 2])],
)
def test_hydra_reads_a_parameter_as_it_was_drawn(value: object, expected: object) -> None:
    parsed = OverridesParser.create().parse_override(override("a.b", value))
    assert (parsed.key_or_group, parsed.value()) == ("a.b", expected)
    assert type(parsed.value()) is type(expected)


def test_the_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "o'clock, a=b [1] {x}"
    options = train_command(folder, ["seed=1"], resume=True)[-3:]
    parsed = [OverridesParser.create().parse_override(option) for option in options]
    assert [(p.key_or_group, p.value()) for p in parsed] == [
        ("seed", 1),
        ("hydra.run.dir", str(folder)),
        ("resume", "auto"),
    ]


def test_objectives_are_final_metrics_or_the_best_of_a_column(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,val/bleu,train/loss\n1,2.0,\n2,,0.5\n3,7.5,\n4,nan,\n5,3.0,0.1\n")
    (tmp_path / "metrics.json").write_text('{"test/bleu": 3, "test/loss": NaN, "signatures": {}}')
    assert logged_values(tmp_path, "train/loss") == [(2, 0.5), (5, 0.1)]
    assert objective_value(tmp_path, "test/bleu", "minimize") == 3
    assert objective_value(tmp_path, "val/bleu", "maximize") == 7.5
    assert objective_value(tmp_path, "val/bleu", "minimize") == 2.0
    with pytest.raises(TrialFailed, match="test/loss is nan"):
        objective_value(tmp_path, "test/loss", "minimize")
    with pytest.raises(TrialFailed, match="no metric val/chrf; final ones are test/bleu"):
        objective_value(tmp_path, "val/chrf", "maximize")


def test_a_run_keeps_the_last_lines_of_its_output_and_its_metrics_if_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys\nfor i in range(99): print('line', i, flush=True)\nsys.exit('error: no such data')\n")
    monkeypatch.setattr("softsearch.extras.shared.train_process.TRAIN", (str(script),))
    for resume, logged in ((True, [(1, 2.0)]), (False, [])):
        (tmp_path / "metrics.csv").write_text("step,val/bleu\n1,2.0\n")
        with training(tmp_path, [], resume=resume) as process:
            assert process.wait(60) == 1
        lines = last_lines(tmp_path).split("\n")
        assert (len(lines), lines[-2:]) == (8, ["line 98", "error: no such data"])
        assert logged_values(tmp_path, "val/bleu") == logged
        assert (tmp_path / "output.log").read_text().count("line 98") == 1


def test_trainings_of_commands_import_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protect_children()  # as every command does
    (tmp_path / "csv.py").write_text("print('imported')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "softsearch.extras.shared.train_process.TRAIN", ("-c", "import csv, sys; print(sys.flags.safe_path)")
    )
    with training(tmp_path / "run", [], resume=False) as process:
        assert process.wait(60) == 0
    assert last_lines(tmp_path / "run") == "True"


@pytest.fixture(params=["yes", "no"])
def polite(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Trainings are a script that has a child, and ends on SIGTERM if it is polite."""
    script = tmp_path / "train.py"
    script.write_text(WITH_A_CHILD)
    monkeypatch.setattr("softsearch.extras.shared.train_process.TRAIN", (str(script),))
    monkeypatch.setattr("softsearch.extras.shared.train_process._GRACE", 60.0 if request.param == "yes" else 0.3)
    monkeypatch.setenv("POLITE", request.param)
    return str(request.param)


def test_without_process_groups_the_run_is_ended(polite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.delattr(os, "killpg", raising=False)
    with training(tmp_path / "run", [], resume=False) as process:
        first, child = map(int, wait_for(tmp_path / "pids").split())
        assert first == process.pid
    assert process.returncode == (143 if polite == "yes" else -signal.SIGKILL)
    os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_is_left_of_a_run(polite: str, tmp_path: Path) -> None:
    with training(tmp_path / "run", [], resume=False) as process:
        first, child = map(int, wait_for(tmp_path / "pids").split())
        assert process.poll() is None
        assert alive(first)
        assert alive(child)
    assert process.returncode == (143 if polite == "yes" else -signal.SIGKILL)
    until = time.monotonic() + 30  # whoever adopts the child has to notice
    while alive(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive(first)
    assert not alive(child)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part is Linux's")
def test_a_run_ends_when_its_sweep_is_killed(tmp_path: Path, popen: Callable[..., subprocess.Popen[bytes]]) -> None:
    script = tmp_path / "train.py"
    script.write_text(WITH_A_CHILD)
    sweep = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, {die_with_parent.__file__!r}, str(os.getpid()), sys.executable, {str(script)!r}])
time.sleep(60)
"""
    process = popen([sys.executable, "-c", sweep], env=os.environ | {"POLITE": "yes"})
    run, child = map(int, wait_for(tmp_path / "pids").split())
    assert alive(run)
    process.kill()
    process.wait()
    until = time.monotonic() + 30
    while alive(run) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive(run)
    os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part is Linux's")
def test_a_run_does_not_start_after_its_sweep_has_died(tmp_path: Path) -> None:
    command = [sys.executable, die_with_parent.__file__, "1" if os.getpid() != 1 else "2", "/bin/echo", "started"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (143, "")
