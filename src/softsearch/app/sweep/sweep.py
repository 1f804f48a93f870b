"""A search for good settings: Optuna proposes, each trial is a run of ``src/train.py`` in processes of its own."""

import logging
import math
import socket
from collections import Counter
from time import monotonic, sleep
from typing import Any

import optuna
from hydra import compose
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from softsearch.app.config.command import explain
from softsearch.app.config.instantiate import build
from softsearch.app.config.validation import check, plain
from softsearch.app.sweep.results import report
from softsearch.app.sweep.study import SILENCE, Plan, finished, opened, put_back, revive_lost, suggest
from softsearch.app.sweep.trial import Training, TrialFailed, column, figure, last_words, override
from softsearch.errors import ConfigError

log = logging.getLogger(__name__)
_LOOK = 0.5  # seconds between two looks at a running trial
_HOPELESS = 5  # trials that fail before any other ends well


def sweep(config: DictConfig) -> None:
    """Runs trials until as many as wanted are finished, and reports; may be ended and called again at any time.

    Raises:
        ConfigError: something is wrong with the config or the database, or no trial ended well.
    """
    check(plain(config), "sweep")
    plan: Plan = build(config)
    refuse_what_does_not_compose(plan)
    with opened(plan) as study:
        log.info("study %s in %s: %d of %d trials done", plan.study, plan.folder, _done(study), plan.trials)
        try:
            Worker(study, plan).work()
        finally:
            report(study, plan)
        trials = study.get_trials(deepcopy=False)
        failed = _failed(trials)
        if failed and len(failed) == finished(trials):
            raise ConfigError(
                f"all {len(failed)} trials failed{_reason(failed)}; mend it and begin another study (study=NAME)"
            )


def refuse_what_does_not_compose(plan: Plan) -> None:
    """Composes the training config with each choice and both ends of each range, before a trial costs time.

    Raises:
        ConfigError: there is no such key or choice, or a value is missing.
    """
    extremes = [(name, _extremes(distribution)) for name, distribution in plan.space.items()]
    for turn in range(max(len(values) for _, values in extremes)):
        drawn = [override(name, values[turn % len(values)]) for name, values in extremes]
        try:
            composed = compose("train", [*plan.fixed, *plan.overrides, *drawn, "name=sweep", f"run_dir={plan.run_dir}"])
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(f"a trial with {' '.join(drawn)}: {explain(error, 'train')}") from error
        plain(composed)


def _extremes(distribution: optuna.distributions.BaseDistribution) -> list[Any]:
    match distribution:
        case CategoricalDistribution(choices=choices):
            return list(choices)
        case FloatDistribution(low=low, high=high) | IntDistribution(low=low, high=high):
            return [low, high]
    raise AssertionError(distribution)


def _done(study: optuna.Study) -> int:
    return finished(study.get_trials(deepcopy=False))


def _failed(trials: list[FrozenTrial]) -> list[FrozenTrial]:
    """Those that ended by themselves, and not well."""
    return [trial for trial in trials if trial.state is TrialState.FAIL and "error" in trial.user_attrs]


def _reason(failed: list[FrozenTrial]) -> str:
    """The last line of what failed trials said, or the most frequent one where they differ."""
    lines = Counter(trial.user_attrs["error"].rpartition("\n")[2] for trial in failed)
    line, count = lines.most_common(1)[0]
    return f": {line}" if len(lines) == 1 else f"; {count} of them with: {line}"


class Worker:
    """Does trials of a study, one after the other; others may do so beside it.

    Args:
        study: shared by all workers.
        plan: of the sweep.
    """

    def __init__(self, study: optuna.Study, plan: Plan) -> None:
        self.study, self.plan = study, plan
        self.current: int | None = None
        self.failed_only = 0

    def work(self) -> None:
        """Goes on until nothing is left to do.

        Raises:
            ConfigError: the first trials all fail.
            SystemExit: with 128 + the signal's number on SIGTERM or Ctrl-C; the trial is queued again.
        """
        end = monotonic() + self.plan.timeout if self.plan.timeout is not None else float("inf")
        try:
            while self._wanted():
                if monotonic() > end:
                    log.info("timeout=%g: no other trial starts; the same command goes on", self.plan.timeout)
                    return
                self._do_one()
                if self.failed_only == _HOPELESS:
                    reason = _reason(_failed(self.study.get_trials(deepcopy=False)))
                    raise ConfigError(
                        f"the first {_HOPELESS} trials of this worker all failed, so its next ones would too{reason}; "
                        "each one's reason is above and in results.csv"
                    )
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    def _wanted(self) -> bool:
        """Whether one more trial is needed; waits for those of others long enough to tell the living from the dead."""
        patience = monotonic() + (SILENCE + 1) * self.plan.heartbeat
        told = False
        while True:
            revive_lost(self.study)
            trials = self.study.get_trials(deepcopy=False)
            running = sum(trial.state is TrialState.RUNNING for trial in trials)
            missing = self.plan.trials - finished(trials)
            if missing <= 0 or (missing <= running and monotonic() > patience):
                return False
            if missing > running:
                return True
            if not told:
                log.info("waiting for %d running trials, in case their workers are dead", running)
                told = True
            sleep(1)

    def _do_one(self) -> None:
        try:
            self.study.optimize(self._objective, n_trials=1, catch=(TrialFailed,), callbacks=[self._say])
        except (KeyboardInterrupt, SystemExit):
            if self.current is not None and put_back(self.study, self.current):
                log.info("trial %d was interrupted; the same command goes on with it", self.current)
            raise
        except (ValueError, UpdateFinishedTrialError):
            if self.current is None or self._state(self.current) is TrialState.RUNNING:
                raise
            log.warning("trial %d: its heartbeats were late, and it has been queued again", self.current)
        finally:
            self.current = None

    def _state(self, number: int) -> TrialState:
        return self.study.get_trials(deepcopy=False)[number].state

    def _objective(self, trial: optuna.Trial) -> list[float]:
        plan, self.current = self.plan, trial.number
        drawn = [override(name, suggest(trial, name, distribution)) for name, distribution in plan.space.items()]
        again = "folder" in trial.user_attrs  # kept when a trial is queued again
        place = str(trial.user_attrs.get("folder", f"trials/{trial.number:04d}"))
        trial.set_user_attr("folder", place)
        trial.set_user_attr("host", socket.gethostname())
        log.info("trial %d%s: %s", trial.number, " (continued)" if again else "", " ".join(drawn))
        options = [*plan.fixed, *plan.overrides, *drawn]
        group = {"WANDB_RUN_GROUP": str(plan.study)}
        try:
            with Training(plan.folder / place, options, resume=again, environment=group) as training:
                self._watch(trial, training)
            training.check()
            return [figure(training.folder, *objective) for objective in plan.objectives.items()]
        except TrialFailed as failure:
            trial.set_user_attr("error", str(failure))
            raise

    def _watch(self, trial: optuna.Trial, training: Training) -> None:
        """Waits for the end of a run, or ends it: for the pruner, for the clock, or because a figure is not finite."""
        plan, started = self.plan, monotonic()
        seen: set[int] = set()
        while True:
            running = training.running  # asked first, so that the last look misses nothing
            for step, value in column(training.folder, plan.report) if plan.pruner else ():
                if step in seen:
                    continue
                seen.add(step)
                if not math.isfinite(value):
                    raise TrialFailed(f"{plan.report} is {value} at step {step}")
                trial.report(value, step)
                if running and trial.should_prune():
                    raise optuna.TrialPruned
            if not running:
                return
            if plan.trial_timeout is not None and monotonic() - started > plan.trial_timeout:
                raise TrialFailed(
                    f"it took longer than trial_timeout={plan.trial_timeout:g} s\n{last_words(training.folder)}"
                )
            sleep(_LOOK)

    def _say(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """One line for a trial that has ended."""
        so_far = f"{_done(study)} of {self.plan.trials} done{self._best()}"
        if trial.state is TrialState.FAIL:
            self.failed_only += self.failed_only >= 0
            why = trial.user_attrs["error"].replace("\n", "\n    ")
            log.info("trial %d failed; %s\n    %s", trial.number, so_far, why)
            return
        self.failed_only = -1  # something works
        pruned = trial.state is TrialState.PRUNED
        ending = f"pruned at step {trial.last_step}" if pruned else self._values(trial)
        log.info("trial %d: %s; %s", trial.number, ending, so_far)

    def _values(self, trial: FrozenTrial) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in zip(self.plan.objectives, trial.values, strict=True))

    def _best(self) -> str:
        """The best so far, in words."""
        best = self.study.best_trials
        if not best:
            return ""
        if len(self.plan.objectives) > 1:
            return f"; on the Pareto front: {', '.join(str(trial.number) for trial in best)}"
        return f"; best: {self._values(best[0])} (trial {best[0].number})"
