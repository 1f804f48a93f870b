"""One trial of a sweep: a run of ``src/train.py`` in processes of its own, and what can be read in its folder."""

import csv
import json
import logging
import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from softsearch.app.sweep import die_with_parent
from softsearch.training.run_folder import METRICS, read_metrics

log = logging.getLogger(__name__)
TRAIN: Sequence[str] = ("-m", "softsearch", "train")
FIGURES = "metrics.csv"
OUTPUT = "output.log"
_LAST_WORDS = 2000  # characters of the output that a failed trial keeps
_ENDING = 60.0  # seconds that a run has for its last checkpoint


class TrialFailed(Exception):  # noqa: N818 - what Optuna calls it
    """A trial without usable figures; the message says why."""


class Training:
    """A run in a process group of its own; whatever is left of it when the ``with`` block is left is ended.

    Args:
        folder: of the run.
        overrides: of the training config.
        resume: whether to go on from the folder's last checkpoint; otherwise its figures are removed.
        environment: variables for its processes, besides those of this one.
    """

    def __init__(
        self, folder: Path, overrides: Sequence[str], *, resume: bool, environment: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        if not resume:
            for name in (FIGURES, METRICS, OUTPUT):
                (folder / name).unlink(missing_ok=True)
        place = str(folder.absolute()).replace("'", "\\'")
        options = [*overrides, f"hydra.run.dir='{place}'", f"resume={'auto' if resume else 'null'}"]
        train = [sys.executable, *TRAIN, *options]
        self.command = [sys.executable, die_with_parent.__file__, str(os.getpid()), *train]
        self.environment = os.environ | dict(environment or {})

    def __enter__(self) -> "Training":
        """Starts it."""
        with (self.folder / OUTPUT).open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self.environment,
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it: it may save a checkpoint first, unless it takes too long or a second signal hurries us."""
        try:
            if self.running:
                self._signal(signal.SIGTERM)
                self.process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            log.warning("%s did not end within %.0f seconds of SIGTERM and is killed", self.folder, _ENDING)
        finally:
            self._signal(signal.SIGKILL)  # also what a first process has left behind
            self.process.wait()

    @property
    def running(self) -> bool:
        """Whether its first process is there."""
        return self.process.poll() is None

    def check(self) -> None:
        """Looks at how it ended.

        Raises:
            TrialFailed: not with exit code 0.
        """
        if self.process.returncode:
            raise TrialFailed(f"exit code {self.process.returncode}\n{last_words(self.folder)}")

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS says the second of a group of zombies
            os.killpg(self.process.pid, number)


def override(key: str, value: Any) -> str:
    """A parameter as train.py takes it; text stands as one writes it on the command line."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"


def column(folder: Path, metric: str) -> list[tuple[int, float]]:
    """Steps and values of a metric as far as a run has come."""
    try:
        with (folder / FIGURES).open(newline="", encoding="utf-8") as file:
            return [(int(row["step"]), float(row[metric])) for row in csv.DictReader(file) if row.get(metric)]
    except FileNotFoundError:
        return []


def figure(folder: Path, name: str, direction: str) -> float:
    """A figure of a run that has ended: a final one, or the best of those that were logged while it trained.

    Raises:
        TrialFailed: there is none, or it is not finite.
    """
    final = read_metrics(folder)
    best = max if direction == "maximize" else min
    logged = [value for _, value in column(folder, name)]
    value = final[name] if name in final else best(filter(math.isfinite, logged), default=math.nan)
    if name not in final and not logged:
        raise TrialFailed(f"the run has no figure {name}; final ones are {', '.join(final) or 'missing'}")
    if not math.isfinite(value):
        raise TrialFailed(f"{name} is {value}")
    return value


def last_words(folder: Path) -> str:
    """The end of what a run has printed, in whole lines."""
    try:
        text = (folder / OUTPUT).read_bytes()[-_LAST_WORDS:].decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.strip().split("\n")[-8:])
