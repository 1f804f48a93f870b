"""Runs ``softsearch train`` in a separate process, for commands that start many trainings."""

import csv
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from softsearch.app import quoted
from softsearch.extras.shared import die_with_parent
from softsearch.files import METRICS, open_file

log = logging.getLogger(__name__)
TRAIN: Sequence[str] = ("-m", "softsearch", "train")
COUNT: Sequence[str] = ("-m", "softsearch", "count")
LOGGED = "metrics.csv"
OUTPUT = "output.log"
_GRACE = 60.0  # seconds for a run to save its last checkpoint


def train_command(folder: Path, overrides: Sequence[str], *, resume: bool, program: Sequence[str] = ()) -> list[str]:
    """Returns the command of a run in ``folder`` that ends with this process; on Windows it may live longer."""
    run_dir = f"hydra.run.dir={quoted(str(folder.absolute()))}"
    options = [*overrides, run_dir, "resume=auto" if resume else "overwrite=true"]
    # On Windows exec starts another process, which this one could not end.
    guard = (sys.executable, die_with_parent.__file__, str(os.getpid())) if hasattr(os, "killpg") else ()
    return [*guard, sys.executable, *(program or TRAIN), *options]


@contextmanager
def training(
    folder: Path, overrides: Sequence[str], *, resume: bool, program: Sequence[str] = (), threads: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs ``softsearch train``, or another ``program``, in a process group that ends with the block.

    Windows has no such groups: there only the process itself is ended, at once.

    With ``resume`` it continues from the last checkpoint in the folder; otherwise metrics there are removed first. It
    uses ``threads`` threads unless ``OMP_NUM_THREADS`` is set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in () if resume else (LOGGED, METRICS, OUTPUT):
        (folder / name).unlink(missing_ok=True)
    with (folder / OUTPUT).open("ab") as output:
        process = subprocess.Popen(
            train_command(folder, overrides, resume=resume, program=program),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=({} if threads is None else {"OMP_NUM_THREADS": str(threads)}) | os.environ,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        try:
            if process.poll() is None:
                _end(process, kill=False)  # so that it can save a checkpoint first
                process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            log.warning("%s did not end within %.0f seconds of SIGTERM and is killed", folder, _GRACE)
        finally:  # also after a second signal
            _end(process, kill=True)  # including processes that the first one left behind
            process.wait()


def _end(process: subprocess.Popen[bytes], *, kill: bool) -> None:
    if not hasattr(os, "killpg"):
        process.kill() if kill else process.terminate()
        return
    with suppress(ProcessLookupError, PermissionError):  # macOS denies permission for a group of zombies
        os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)


def logged_values(folder: Path, metric: str) -> list[tuple[int, float]]:
    """Returns the steps and values of a metric that a run has logged so far."""
    try:
        with io.TextIOWrapper(open_file(folder / LOGGED), "utf-8", newline="") as file:
            return [(int(row["step"]), float(row[metric])) for row in csv.DictReader(file) if row.get(metric)]
    except FileNotFoundError:
        return []


def last_lines(folder: Path) -> str:
    """Returns the last eight lines of a run's output, at most 2,000 characters."""
    text = (folder / OUTPUT).read_bytes()[-2000:].decode(errors="replace")
    return "\n".join(text.strip().split("\n")[-8:])
