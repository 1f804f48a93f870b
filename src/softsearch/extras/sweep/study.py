"""The study of a sweep: its plan, its sampler, and the database that its workers share."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from softsearch.app import choices
from softsearch.errors import ConfigError
from softsearch.ranges import AtLeastOne, NotNegative, Positive, Seed

MISSED_HEARTBEATS = 3  # missed heartbeats after which a worker counts as dead
_RETRIES = 3  # of a trial that kills its worker


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The options of ``softsearch sweep`` (``configs/sweep.yaml``).

    Raises:
        ConfigError: the options contradict each other.
    """

    study: str | None
    storage: str
    trials: AtLeastOne
    timeout: NotNegative | None = None
    trial_timeout: Positive | None = None
    heartbeat: AtLeastOne = 60
    seed: Seed
    sampler: Callable[..., BaseSampler]
    pruner: BasePruner | None = None
    report: str = ""
    objectives: dict[str, Literal["maximize", "minimize"]]
    fixed: list[str]
    overrides: Sequence[str] = ()
    space: dict[str, BaseDistribution]
    run_dir: str

    def __post_init__(self) -> None:
        """Checks what types cannot express."""
        if not self.study or not self.space or not self.objectives:
            names = ", ".join(choices("sweep"))
            raise ConfigError(f"there is no search space or no objective; set sweep=NAME, one of {names}")
        if self.pruner is not None and len(self.objectives) > 1:
            raise ConfigError(
                f"pruner is set, but there are {len(self.objectives)} objectives, and Optuna prunes by a single one; "
                "set pruner=null"
            )

    @property
    def folder(self) -> Path:
        """Returns the folder of the whole sweep."""
        return Path(self.run_dir)


class SeededByTrial:
    """A sampler that is recreated before every trial, seeded by the sweep's seed and the trial's number.

    Otherwise workers with the same seed would draw the same trials, and a resumed sweep would repeat its first ones.
    """

    def __init__(self, make: Callable[..., BaseSampler], seed: int) -> None:
        self.make, self.seed = make, seed
        self.sampler = make(seed=seed)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Creates and seeds the sampler, which all other methods delegate to."""
        seed = int(np.random.SeedSequence([self.seed, trial.number]).generate_state(1)[0])
        self.sampler = self.make(seed=seed)
        self.sampler.before_trial(study, trial)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sampler, name)


@contextmanager
def open_study(plan: Plan) -> Iterator[optuna.Study]:
    """Opens the study of ``plan``, or creates it; closes its database afterwards.

    Raises:
        ConfigError: the database cannot be used, or its study with that name has another search space.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # the sweep logs trials itself
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)  # heartbeats and plots are "experimental" since 2021
        storage = _open_storage(plan)
        try:
            study = optuna.create_study(
                storage=storage,
                study_name=plan.study,
                directions=list(plan.objectives.values()),
                sampler=cast(BaseSampler, SeededByTrial(plan.sampler, plan.seed)),
                pruner=plan.pruner or NopPruner(),
                load_if_exists=True,
            )
            _check_same_search(study, plan)
            yield study
        finally:
            storage.remove_session()
            storage.engine.dispose()


def _check_same_search(study: optuna.Study, plan: Plan) -> None:
    search = {
        "space": {name: distribution_to_json(distribution) for name, distribution in plan.space.items()},
        "objectives": [f"{name}: {direction}" for name, direction in plan.objectives.items()],
        "fixed": plan.fixed,
    }
    first: Mapping[str, Any] = study.user_attrs.get("search", search)
    for key, value in search.items():
        if first.get(key) != value:
            raise ConfigError(
                f"the study {plan.study} was begun with another {key}: {first.get(key)}; it is now {value}; "
                "name a new study with study=NAME (tune: sweep.study=NAME), or use the old value"
            )
    study.set_user_attr("search", search)


def _open_storage(plan: Plan, attempts: int = 2) -> RDBStorage:
    lite = plan.storage.startswith("sqlite")
    try:
        return RDBStorage(
            plan.storage,
            engine_kwargs={"connect_args": {"timeout": 60}} if lite else {"pool_pre_ping": True},
            heartbeat_interval=plan.heartbeat,
            grace_period=MISSED_HEARTBEATS * plan.heartbeat,
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=_RETRIES),
        )
    except (SQLAlchemyError, ImportError) as error:
        if attempts > 1:
            time.sleep(1)  # another worker may be creating the tables
            return _open_storage(plan, attempts - 1)
        raise ConfigError(
            f"the database cannot be used: {error}; set storage=URL, for example sqlite:///FILE"
        ) from error


def failed(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Returns the trials that failed themselves, not because their worker was interrupted or died."""
    return [trial for trial in trials if trial.state is TrialState.FAIL and "error" in trial.user_attrs]


def finished(trials: Sequence[FrozenTrial]) -> int:
    """Returns the number of trials that are complete, pruned, or failed themselves."""
    return sum(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in trials) + len(failed(trials))


def requeue(study: optuna.Study, number: int) -> bool:
    """Marks an interrupted trial as failed and queues it again; returns whether it was interrupted."""
    trial = study.get_trials(deepcopy=False)[number]
    if trial.state is TrialState.RUNNING:
        study.tell(number, state=TrialState.FAIL)
    elif trial.state is not TrialState.FAIL or failed([trial]):
        return False
    RetryHeartbeatStaleTrialCallback()(study, trial)
    return True
