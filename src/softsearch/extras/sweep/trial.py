"""One trial of a sweep: ``softsearch train`` in separate processes, monitored and pruned through its files."""

import json
import logging
import math
import socket
import subprocess
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution

from softsearch.app import read_metrics
from softsearch.extras.shared.train_process import last_lines, logged_values, training
from softsearch.extras.sweep.study import Plan

log = logging.getLogger(__name__)
_POLL = 0.5  # seconds between two polls of a running trial


class TrialFailed(Exception):  # noqa: N818 - Optuna's name for it
    """A trial without usable metrics; the message says why."""


def run_trial(trial: optuna.Trial, plan: Plan) -> list[float]:
    """Trains with the parameters of a trial, or resumes it if it was interrupted, and returns its objectives.

    Raises:
        TrialFailed: training failed, took too long, or has no finite value for an objective.
        optuna.TrialPruned: the pruner ended it.
    """
    drawn = [override(name, suggest(trial, name, distribution)) for name, distribution in plan.space.items()]
    resume = "folder" in trial.user_attrs  # kept when a trial is queued again
    name = str(trial.user_attrs.get("folder", f"trials/{trial.number:04d}"))
    trial.set_user_attr("folder", name)
    trial.set_user_attr("host", socket.gethostname())
    log.info("trial %d%s: %s", trial.number, " (continued)" if resume else "", " ".join(drawn))
    folder, overrides = plan.folder / name, [*plan.fixed, *plan.overrides, *drawn]
    with training(folder, overrides, resume=resume) as process:
        _watch(trial, plan, folder, process)
    return [objective_value(folder, *objective) for objective in plan.objectives.items()]


def suggest(trial: optuna.Trial, name: str, space: Any) -> Any:
    """Draws a parameter from an Optuna distribution."""
    if isinstance(space, CategoricalDistribution):
        return trial.suggest_categorical(name, space.choices)
    draw: Any = trial.suggest_float if isinstance(space, FloatDistribution) else trial.suggest_int
    return draw(name, space.low, space.high, step=space.step, log=space.log)


def override(key: str, value: Any) -> str:
    """Returns a parameter as an option of train.py; text is passed unchanged."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"


def _watch(trial: optuna.Trial, plan: Plan, folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Waits for a run to end; raises for the pruner, the time limit, a value that is not finite, or an exit code."""
    start = monotonic()
    reported: set[int] = set()
    while True:
        running = process.poll() is None  # before reading the metrics, so that none are missed
        for step, value in logged_values(folder, plan.report) if plan.pruner else ():
            if step in reported:
                continue
            reported.add(step)
            if not math.isfinite(value):
                raise TrialFailed(f"{plan.report} is {value} at step {step}")
            trial.report(value, step)
            if running and trial.should_prune():
                raise optuna.TrialPruned
        if process.returncode:
            raise TrialFailed(f"exit code {process.returncode}\n{last_lines(folder)}")
        if not running:
            return
        if plan.trial_timeout is not None and monotonic() - start > plan.trial_timeout:
            raise TrialFailed(f"it took longer than trial_timeout={plan.trial_timeout:g} s\n{last_lines(folder)}")
        sleep(_POLL)


def objective_value(folder: Path, metric: str, direction: str) -> float:
    """Returns a final metric of a finished run, or else the best value that it logged in training.

    Raises:
        TrialFailed: there is none, or none is finite.
    """
    final = read_metrics(folder)
    values = [final[metric]] if metric in final else [value for _, value in logged_values(folder, metric)]
    if not values:
        raise TrialFailed(f"the run has no metric {metric}; final ones are {', '.join(final) or 'missing'}")
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        raise TrialFailed(f"{metric} is {values[-1]}")
    return max(finite) if direction == "maximize" else min(finite)
