"""The study of a sweep: what is searched for, and the database that its workers share."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from softsearch.errors import ConfigError
from softsearch.ranges import AtLeastOne, NotNegative, Positive, Seed

SILENCE = 3  # heartbeats that a worker may miss
_RETRIES = 3  # of a trial that takes its worker with it
_DIRECTIONS = ("maximize", "minimize")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep as ``configs/sweep.yaml`` describes it.

    Raises:
        ConfigError: a value is out of range, or the parts do not fit together.
    """

    study: str | None
    storage: str
    trials: AtLeastOne
    timeout: NotNegative | None
    trial_timeout: Positive | None
    heartbeat: AtLeastOne
    seed: Seed
    sampler: Callable[..., BaseSampler]
    pruner: BasePruner | None
    report: str
    objectives: dict[str, str]
    fixed: list[str]
    overrides: list[str]
    space: dict[str, BaseDistribution]
    run_dir: str

    def __post_init__(self) -> None:
        """Checks what signatures cannot say."""
        if not self.study or not self.space or not self.objectives:
            raise ConfigError("there is no search space or no objective; choose a sweep=NAME of configs/sweep")
        for key in ("trials", "heartbeat"):
            if getattr(self, key) < 1:
                raise ConfigError(f"{key} is {getattr(self, key)}, expected at least 1; change it")
        for name, direction in self.objectives.items():
            if direction not in _DIRECTIONS:
                raise ConfigError(f"objectives.{name} is {direction!r}, expected maximize or minimize; change it")
        for name, distribution in self.space.items():
            if not isinstance(distribution, BaseDistribution):
                raise ConfigError(f"space.{name} is {distribution!r}, expected one of optuna.distributions; change it")
        if self.pruner is not None and len(self.objectives) > 1:
            raise ConfigError(
                f"pruner is set, and there are {len(self.objectives)} objectives, but Optuna prunes by a single one; "
                "set pruner=null"
            )

    @property
    def folder(self) -> Path:
        """Of the whole sweep."""
        return Path(self.run_dir)


class SeededByTrial(BaseSampler):
    """A sampler that is seeded anew, by the sweep's seed and the trial's number, before it draws a trial.

    Otherwise workers that share a seed would draw the same trials, and a resumed sweep its first ones again.

    Args:
        make: makes the sampler, given ``seed``.
        seed: the sweep's.
    """

    def __init__(self, make: Callable[..., BaseSampler], seed: int) -> None:
        self.make, self.seed = make, seed
        self.sampler = make(seed=seed)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Seeds."""
        seed = int(np.random.SeedSequence([self.seed, trial.number]).generate_state(1)[0])
        self.sampler = self.make(seed=seed)
        self.sampler.before_trial(study, trial)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """As the sampler does, like all that follows."""
        return self.sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Parameters drawn together."""
        return self.sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """One parameter."""
        return self.sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Any) -> None:
        """What it keeps of a trial."""
        self.sampler.after_trial(study, trial, state, values)


@contextmanager
def opened(plan: Plan) -> Iterator[optuna.Study]:
    """The study of ``plan``, made if there is none; the database is let go of afterwards.

    Raises:
        ConfigError: the database cannot be used, or holds a study of that name with another search.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # the sweep's own lines say it
    storage = _storage(plan)
    try:
        study = optuna.create_study(
            storage=storage,
            study_name=plan.study,
            directions=[StudyDirection[way.upper()] for way in plan.objectives.values()],
            sampler=SeededByTrial(plan.sampler, plan.seed),
            pruner=plan.pruner or NopPruner(),
            load_if_exists=True,
        )
        _refuse_another_search(study, plan)
        yield study
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _refuse_another_search(study: optuna.Study, plan: Plan) -> None:
    search = {
        "space": {name: optuna.distributions.distribution_to_json(d) for name, d in plan.space.items()},
        "objectives": [f"{name}: {direction}" for name, direction in plan.objectives.items()],
        "fixed": plan.fixed,
    }
    begun: Mapping[str, Any] = study.user_attrs.get("search", search)
    for key, value in search.items():
        if begun.get(key) != value:
            raise ConfigError(
                f"the study {plan.study} was begun with another {key}: {begun.get(key)}; it is now {value}; "
                "name a new one with study=NAME, or take the old one's"
            )
    study.set_user_attr("search", search)


def _storage(plan: Plan) -> RDBStorage:
    lite = plan.storage.startswith("sqlite")
    for attempt in range(2):
        try:
            with _experimental():
                return RDBStorage(
                    plan.storage,
                    engine_kwargs={"connect_args": {"timeout": 60}} if lite else {"pool_pre_ping": True},
                    heartbeat_interval=plan.heartbeat,
                    grace_period=SILENCE * plan.heartbeat,
                    heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=_RETRIES),
                )
        except (SQLAlchemyError, ImportError) as error:
            if attempt:
                raise ConfigError(f"storage={_shown(plan.storage)} cannot be used: {error}") from error
            time.sleep(1)  # perhaps another worker is just making the tables
    raise AssertionError


def _shown(url: str) -> str:
    """A URL without its password."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "..."


def suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    """Draws a parameter."""
    match distribution:
        case FloatDistribution(low=low, high=high, log=log, step=step):
            return trial.suggest_float(name, low, high, step=step, log=log)
        case IntDistribution(low=low, high=high, log=log, step=step):
            return trial.suggest_int(name, low, high, step=step, log=log)
        case CategoricalDistribution(choices=choices):
            return trial.suggest_categorical(name, choices)
    raise AssertionError(distribution)


def finished(trials: list[FrozenTrial]) -> int:
    """How many count: those that ended by themselves, well or not, and not those that lost their worker."""
    ended = (TrialState.COMPLETE, TrialState.PRUNED)
    return sum(t.state in ended or (t.state is TrialState.FAIL and "error" in t.user_attrs) for t in trials)


def revive_lost(study: optuna.Study) -> None:
    """Fails trials whose worker has been silent, and queues them again."""
    with _experimental():
        fail_stale_trials(study)


def put_back(study: optuna.Study, number: int) -> bool:
    """Fails a trial that was interrupted, and queues it again; whether there was anything to do."""
    trial = study.get_trials(deepcopy=False)[number]
    if trial.state is TrialState.RUNNING:
        study.tell(number, state=TrialState.FAIL)
    elif trial.state is not TrialState.FAIL or "error" in trial.user_attrs:
        return False
    with _experimental():
        RetryHeartbeatStaleTrialCallback()(study, trial)
    return True


@contextmanager
def _experimental() -> Iterator[None]:
    """Heartbeats are "experimental" since 2021, and Optuna says so each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield
