"""``sweep``, a hyperparameter search: Optuna proposes trials, and workers run them until enough are finished."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, sleep
from typing import Any

import optuna
from hydra import compose
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from optuna.distributions import CategoricalDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from softsearch.app import CommandLine, build, plain
from softsearch.errors import ConfigError
from softsearch.extras.sweep.results import report
from softsearch.extras.sweep.study import MISSED_HEARTBEATS, Plan, failed, finished, open_study, requeue
from softsearch.extras.sweep.trial import TrialFailed, override, run_trial

log = logging.getLogger(__name__)
Run = Callable[[optuna.Trial, Plan], list[float]]  # runs one trial and returns its objectives
_MAX_INITIAL_FAILURES = 5  # failed trials before any succeeds


def sweep(config: DictConfig) -> None:
    """Runs trials until ``trials`` are finished, and reports; can be interrupted and resumed at any time.

    Raises:
        ConfigError: something is wrong with the config or the database, or no trial succeeded.
    """
    plan: Plan = build(config)
    check_composition(plan)
    os.environ["WANDB_RUN_GROUP"] = str(plan.study)  # read by the processes of trials
    run_study(plan, run_trial)


def run_study(plan: Plan, run: Run, first: Iterable[Mapping[str, Any]] = ()) -> list[FrozenTrial]:
    """Runs trials until ``plan.trials`` are finished, beginning with ``first``; reports and returns them.

    Raises:
        ConfigError: something is wrong with the database, or no trial succeeded.
    """
    with open_study(plan) as study:
        for point in () if study.trials else first:
            study.enqueue_trial(dict(point), skip_if_exists=True)
        worker = Worker(study, plan, run)
        log.info("study %s in %s: %s", plan.study, plan.folder, worker.progress())
        try:
            worker.work()
        finally:
            report(study, plan)
        failures = failed(worker.trials())
        if failures and len(failures) == finished(worker.trials()):
            raise ConfigError(
                f"all {len(failures)} trials failed{_reason(failures)}; fix it and begin another study (study=NAME)"
            )
        return worker.trials()


def check_composition(plan: Plan) -> None:
    """Composes the training config with each choice and both ends of each range, before a trial costs time.

    Raises:
        ConfigError: there is no such key or choice, or a value is missing.
    """
    spaces: Mapping[str, Any] = plan.space
    extremes = {
        name: space.choices if isinstance(space, CategoricalDistribution) else (space.low, space.high)
        for name, space in spaces.items()
    }
    for index in range(max(map(len, extremes.values()))):
        drawn = [override(name, values[index % len(values)]) for name, values in extremes.items()]
        try:
            composed = compose("train", [*plan.fixed, *plan.overrides, *drawn, "name=sweep", f"run_dir={plan.run_dir}"])
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(f"a trial with {' '.join(drawn)}: {CommandLine('train').explain(error)}") from error
        plain(composed)


def _reason(failures: list[FrozenTrial]) -> str:
    """Returns the last line that failed trials printed, or the most frequent one if they differ."""
    lines = Counter(trial.user_attrs["error"].rpartition("\n")[2] for trial in failures)
    line, count = lines.most_common(1)[0]
    return f": {line}" if len(lines) == 1 else f"; {count} of them with: {line}"


class Worker:
    """Runs trials of a study one after another, possibly in parallel with other workers."""

    def __init__(self, study: optuna.Study, plan: Plan, run: Run = run_trial) -> None:
        self.study, self.plan, self.run = study, plan, run
        self.current: int | None = None
        self.ended_well: list[bool] = []  # one entry per trial of this worker

    def trials(self) -> list[FrozenTrial]:
        """Returns all trials of the study."""
        return self.study.get_trials(deepcopy=False)

    def work(self) -> None:
        """Runs trials until no more are needed.

        Raises:
            ConfigError: the first trials all fail.
            KeyboardInterrupt, SystemExit: on Ctrl-C or SIGTERM; the trial is queued again.
        """
        timeout, start = self.plan.timeout, monotonic()
        while self._more_needed():
            if timeout is not None and monotonic() - start > timeout:
                log.info("timeout=%g: no more trials start; run the same command to continue", timeout)
                return
            self._run_one()
            if len(self.ended_well) == _MAX_INITIAL_FAILURES and not any(self.ended_well):
                raise ConfigError(
                    f"the first {_MAX_INITIAL_FAILURES} trials of this worker all failed, so others would fail too"
                    f"{_reason(failed(self.trials()))}; their reasons are above and in results.csv"
                )

    def _more_needed(self) -> bool:
        """Tells whether another trial is needed; waits for running ones until heartbeats of dead workers are stale."""
        end = None
        while True:
            fail_stale_trials(self.study)
            running = sum(trial.state is TrialState.RUNNING for trial in self.trials())
            missing = self.plan.trials - finished(self.trials())
            if missing <= 0 or missing > running:
                return missing > 0
            if end is None:
                end = monotonic() + (MISSED_HEARTBEATS + 1) * self.plan.heartbeat
                log.info("waiting for %d running trials, in case their workers are dead", running)
            elif monotonic() > end:
                return False
            sleep(1)

    def _run_one(self) -> None:
        try:
            self.study.optimize(self._objective, n_trials=1, catch=(TrialFailed,), callbacks=[self._log_end])
        except (KeyboardInterrupt, SystemExit):
            if self.current is not None and requeue(self.study, self.current):
                log.info("trial %d was interrupted; run the same command to continue it", self.current)
            raise
        except (ValueError, UpdateFinishedTrialError):
            if self.current is None or self.trials()[self.current].state is TrialState.RUNNING:
                raise
            log.warning("trial %d: its heartbeats were late, so it has been queued again", self.current)
        finally:
            self.current = None

    def _objective(self, trial: optuna.Trial) -> list[float]:
        self.current = trial.number
        try:
            return self.run(trial, self.plan)
        except TrialFailed as failure:
            trial.set_user_attr("error", str(failure))
            raise

    def _log_end(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self.ended_well.append(trial.state is not TrialState.FAIL)
        if trial.state is TrialState.FAIL:
            error = trial.user_attrs["error"].replace("\n", "\n    ")
            log.info("trial %d failed; %s\n    %s", trial.number, self.progress(), error)
            return
        pruned = trial.state is TrialState.PRUNED
        end = f"pruned at step {trial.last_step}" if pruned else self._values(trial)
        log.info("trial %d: %s; %s", trial.number, end, self.progress())

    def _values(self, trial: FrozenTrial) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in zip(self.plan.objectives, trial.values, strict=True))

    def progress(self) -> str:
        """Describes the number of finished trials, and the best so far."""
        done, best = f"{finished(self.trials())} of {self.plan.trials} done", self.study.best_trials
        if not best:
            return done
        if len(self.plan.objectives) > 1:
            return f"{done}; on the Pareto front: {', '.join(str(trial.number) for trial in best)}"
        return f"{done}; best: {self._values(best[0])} (trial {best[0].number})"
