"""A study is opened by all workers alike, outlives them, and refuses what does not belong to it."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler
from optuna.storages import fail_stale_trials
from optuna.trial import TrialState, create_trial

from softsearch.errors import ConfigError
from softsearch.extras.sweep.study import finished, open_study, requeue
from softsearch.extras.sweep.trial import suggest
from tests.support.stand_in import plan

# The tests ask for trials by hand, without the worker's loop and its heartbeats.
pytestmark = pytest.mark.filterwarnings("ignore:Heartbeat of storage is supposed:UserWarning")
SPACE = {
    "a": FloatDistribution(1e-4, 1e-1, log=True),
    "b": IntDistribution(1, 9, step=2),
    "c": CategoricalDistribution(["x", "y"]),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": {}}, "set sweep=NAME, one of quality, "),
        ({"objectives": {}}, "set sweep=NAME, one of quality, "),
        (
            {"objectives": {"test/bleu": "maximize", "test/loss": "minimize"}, "pruner": MedianPruner()},
            "there are 2 objectives, and Optuna prunes by a single one",
        ),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(tmp_path, "good", **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": {"kind": CategoricalDistribution(["good"])}}, "another space"),
        ({"objectives": {"test/bleu": "minimize"}}, "another objectives"),
        ({"fixed": ["seed=4"]}, "another fixed"),
    ],
)
def test_another_search_under_the_same_name_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with open_study(plan(tmp_path, "good", "bad")) as study:
        assert study.trials == []
    with pytest.raises(ConfigError, match=message), open_study(plan(tmp_path, "good", "bad", **changes)):
        pass
    with open_study(plan(tmp_path, "good", "bad", trials=9, overrides=["trainer=cpu"])) as study:
        assert study.study_name == "tried"
    with open_study(plan(tmp_path, "good", "bad", study="new", **changes)) as study:
        assert study.study_name == "new"


def test_a_database_that_cannot_be_used_is_refused_without_its_password(tmp_path: Path) -> None:
    wrong = plan(tmp_path, "good", storage="nosql://me:secret@host/data")
    with pytest.raises(ConfigError, match=r"the database cannot be used: .*nosql.*; set storage=URL") as refused:
        open_study(wrong).__enter__()
    assert "secret" not in str(refused.value)


def draw(folder: Path, trials: int, seed: int = 1) -> list[dict[str, Any]]:
    """The parameters of all trials of a study after this process has done some."""

    def objective(trial: Any) -> float:
        return float(
            sum(suggest(trial, name, SPACE[name]) for name in ("a", "b")) + len(suggest(trial, "c", SPACE["c"]))
        )

    with open_study(plan(folder, space=SPACE, sampler=TPESampler, seed=seed)) as study:
        study.optimize(objective, n_trials=trials)
        return [trial.params for trial in study.trials]


def test_a_resumed_sweep_draws_what_it_would_have_drawn(tmp_path: Path) -> None:
    for name in ("at once", "in parts", "other seed"):
        (tmp_path / name).mkdir()
    at_once = draw(tmp_path / "at once", 14)
    draw(tmp_path / "in parts", 4)
    draw(tmp_path / "in parts", 9)
    assert draw(tmp_path / "in parts", 1) == at_once
    assert len({params["a"] for params in at_once}) == 14
    assert draw(tmp_path / "other seed", 1, seed=2)[0] != at_once[0]


def test_parameters_are_drawn_from_their_range(tmp_path: Path) -> None:
    drawn = draw(tmp_path, 25)
    assert all(1e-4 <= params["a"] <= 1e-1 for params in drawn)
    assert sum(params["a"] < 3e-3 for params in drawn) >= 5  # evenly on a logarithmic scale
    assert {params["b"] for params in drawn} <= {1, 3, 5, 7, 9}
    assert {params["c"] for params in drawn} == {"x", "y"}


def test_an_interrupted_trial_is_queued_again_with_what_it_knew(tmp_path: Path) -> None:
    with open_study(plan(tmp_path, "good", "bad")) as study:
        trial = study.ask({"kind": CategoricalDistribution(["good", "bad"])})
        trial.set_user_attr("folder", "trials/0000")
        assert requeue(study, 0)
        assert not requeue(study, 1)  # it waits already
        assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.WAITING]
        assert finished(study.trials) == 0
        again = study.ask()
        assert again.number == 1
        assert again.user_attrs == {"folder": "trials/0000"}
        assert again.suggest_categorical("kind", ["good", "bad"]) == trial.params["kind"]
        study.tell(again, 1.0)
        assert not requeue(study, 1)
        assert finished(study.trials) == 1


def test_a_failed_trial_counts_and_is_not_queued_again(tmp_path: Path) -> None:
    with open_study(plan(tmp_path, "good")) as study:
        study.add_trial(create_trial(state=TrialState.FAIL, user_attrs={"error": "exit code 1"}))
        assert not requeue(study, 0)
        assert [t.state for t in study.trials] == [TrialState.FAIL]
        assert finished(study.trials) == 1


def test_a_trial_whose_worker_is_silent_is_queued_again(tmp_path: Path) -> None:
    with open_study(plan(tmp_path, "good", heartbeat=60)) as study:
        for number in range(2):
            study.ask({"kind": CategoricalDistribution(["good"])})
            study._storage._backend.record_heartbeat(study._storage.get_trial_id_from_study_id_trial_number(1, number))
        with sqlite3.connect(tmp_path / "study.db") as database:
            database.execute(
                "UPDATE trial_heartbeats SET heartbeat = datetime('now', '-200 seconds') WHERE trial_id = 1"
            )
        database.close()
        fail_stale_trials(study)
        assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.RUNNING, TrialState.WAITING]
