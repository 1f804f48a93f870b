"""A worker does trials, in whatever way they end; a script stands in for train.py."""

import csv
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.pruners import MedianPruner, ThresholdPruner
from optuna.trial import FrozenTrial, TrialState, create_trial

from softsearch.app.config.composition import CONFIGS, composed, config_loader
from softsearch.app.config.validation import build
from softsearch.errors import ConfigError
from softsearch.extras.sweep.results import report
from softsearch.extras.sweep.study import Plan, open_study
from softsearch.extras.sweep.sweep import Worker, check_composition, sweep
from tests.support.stand_in import install, options_of, plan


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path)


@pytest.fixture
def hydra() -> Iterator[None]:
    """What surrounds a command."""
    with config_loader():
        yield


def work(plan: Plan) -> list[FrozenTrial]:
    """All trials, after a worker has done its work."""
    with open_study(plan) as study:
        Worker(study, plan).work()
        return study.trials


def soon(condition: Callable[[], bool], action: Callable[[], None]) -> threading.Thread:
    """Acts from another thread once something holds."""

    def watch() -> None:
        until = time.monotonic() + 60
        while not condition() and time.monotonic() < until:
            time.sleep(0.02)
        action()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_trials_are_runs_with_folders_of_their_own(tmp_path: Path) -> None:
    trials = work(plan(tmp_path, "good", "better", trials=4, overrides=["trainer=cpu"]))
    assert [t.state for t in trials] == [TrialState.COMPLETE] * 4
    assert {t.params["kind"]: t.value for t in trials} == {"good": 4.0, "better": 8.0}
    for number, trial in enumerate(trials):
        options = options_of(tmp_path, number)
        assert options == {
            "seed": "3",
            "trainer": "cpu",
            "kind": trial.params["kind"],
            "hydra.run.dir": f"{tmp_path}/trials/{number:04d}",
            "overwrite": "true",
        }


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        ("bad", {}, "exit code 1\nerror: nothing works"),
        ("nan", {}, "test/bleu is nan"),
        ("good", {"objectives": {"test/chrf": "maximize"}}, "no metric test/chrf"),
        ("diverging", {"pruner": MedianPruner()}, "val/bleu is nan at step 20"),
        ("endless", {"trial_timeout": 0.3}, "it took longer than trial_timeout=0.3 s"),
    ],
)
def test_a_failed_trial_says_why_and_the_sweep_goes_on(
    kind: str, changes: dict[str, Any], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    started = time.monotonic()
    with caplog.at_level("INFO"):
        trials = work(plan(tmp_path, kind, trials=2, **changes))
    assert [t.state for t in trials] == [TrialState.FAIL] * 2
    assert reason in trials[0].user_attrs["error"]
    assert "trial 1 failed; 2 of 2 done" in caplog.text
    assert time.monotonic() - started < 50  # the script would have slept for 60 seconds


def test_a_running_trial_is_pruned_and_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    started = time.monotonic()
    with caplog.at_level("INFO"):
        trials = work(plan(tmp_path, "endless", pruner=ThresholdPruner(lower=2.0)))
    assert [(t.state, t.intermediate_values) for t in trials] == [(TrialState.PRUNED, {10: 1.0})]
    assert "trial 0: pruned at step 10; 1 of 1 done" in caplog.text
    assert time.monotonic() - started < 50


def test_what_was_reported_last_is_not_missed(tmp_path: Path) -> None:
    trials = work(plan(tmp_path, "good", pruner=MedianPruner()))
    assert [(t.state, t.intermediate_values) for t in trials] == [(TrialState.COMPLETE, {10: 1.0, 20: 5.0, 30: 3.0})]


@pytest.mark.usefixtures("sigint")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_goes_on_with_its_trial(number: int, tmp_path: Path) -> None:
    def exit_as_commands_do(*_: Any) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, exit_as_commands_do)
    begun = tmp_path / "trials" / "0000" / "metrics.csv"
    try:
        killer = soon(begun.exists, lambda: os.kill(os.getpid(), number))
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            work(plan(tmp_path, "endless", trials=2))
        killer.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    with open_study(plan(tmp_path, "endless", trials=2)) as study:
        assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.WAITING]
    trials = work(plan(tmp_path, "endless", trials=1))
    assert [t.state for t in trials] == [TrialState.FAIL, TrialState.COMPLETE]
    assert trials[1].user_attrs["folder"] == "trials/0000"
    assert trials[1].params == trials[0].params
    assert options_of(tmp_path, 0)["resume"] == "auto"
    assert len(work(plan(tmp_path, "endless", trials=1))) == 2  # nothing is left to do


def test_a_worker_waits_for_a_trial_whose_worker_may_be_dead(tmp_path: Path) -> None:
    """The trial's heartbeat is older than three intervals after some seconds; then it is done anew."""
    dead = plan(tmp_path, "endless", heartbeat=1)
    with open_study(dead) as study:
        heart = study._storage
        study.add_trial(
            create_trial(
                state=TrialState.RUNNING,
                params={"kind": "endless"},
                distributions=dict(dead.space),
                user_attrs={"folder": "trials/0000"},
            )
        )
        heart._backend.record_heartbeat(study.trials[0]._trial_id)
    trials = work(dead)
    assert [t.state for t in trials] == [TrialState.FAIL, TrialState.COMPLETE]
    assert options_of(tmp_path, 0)["resume"] == "auto"


def test_no_trial_starts_after_the_timeout(tmp_path: Path) -> None:
    assert work(plan(tmp_path, "good", trials=3, timeout=0.0)) == []


def test_a_sweep_of_which_nothing_works_stops(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"the first 5 trials of this worker all failed.*: error: nothing works; their"
    ):
        work(plan(tmp_path, "bad", trials=50))


def swept(config: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, with a plan in the place of its config."""
    monkeypatch.setattr("softsearch.extras.sweep.sweep.build", lambda _: config)
    monkeypatch.setattr("softsearch.extras.sweep.sweep.check_composition", lambda _: None)
    sweep(OmegaConf.create({}))


def test_a_sweep_whose_trials_all_failed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):  # the second time nothing is left to do
        with pytest.raises(ConfigError, match=r"all 2 trials failed: error: nothing works; .* \(study=NAME\)"):
            swept(plan(tmp_path, "bad", trials=2), monkeypatch)
    rows = json.loads((tmp_path / "results.json").read_text())
    assert [row["state"] for row in rows] == ["failed", "failed"]


def test_the_most_frequent_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = plan(tmp_path, "good", trials=3)
    with open_study(tried) as study:
        for reason in ("exit code 1\nerror: this", "exit code 1\nerror: that", "it took longer\nerror: that"):
            study.add_trial(create_trial(state=TrialState.FAIL, user_attrs={"error": reason}))
    with pytest.raises(ConfigError, match="all 3 trials failed; 2 of them with: error: that; "):
        swept(tried, monkeypatch)


@pytest.mark.parametrize(("kind", "state"), [("good", "complete"), ("endless", "pruned")])
def test_a_sweep_of_which_one_trial_ends_well_is_none(
    kind: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = plan(tmp_path, kind, trials=2, pruner=ThresholdPruner(lower=1.0 if kind == "good" else 1.5))
    with open_study(tried) as study:
        study.add_trial(create_trial(state=TrialState.FAIL, user_attrs={"error": "exit code 1"}))
    swept(tried, monkeypatch)
    assert [row["state"] for row in json.loads((tmp_path / "results.json").read_text())] in (
        [state, "failed"],
        ["failed", state],
    )


@pytest.mark.parametrize(
    ("others", "names"),
    [
        ({}, ["history", "importance", "slice"]),
        ({"size": "minimize"}, ["importance-test-bleu", "pareto"]),
        ({"size": "minimize", "speed": "maximize"}, ["importance-speed", "importance-test-bleu", "pareto"]),
    ],
)
def test_plots_of_each_objective(
    others: dict[str, str], names: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert drawn(tmp_path, 12, lambda i: [float(i), 7.0, 1.0 - i], others, caplog) == names
    message = "no importances for size: 12 trials are complete, expected at least 10 with different values"
    assert (message in caplog.text) == bool(others)


@pytest.mark.parametrize(("trials", "bleu"), [(3, lambda i: [float(i)]), (12, lambda _: [0.0])])
def test_no_plots_of_few_trials_or_equal_values(
    trials: int, bleu: Callable[[int], list[float]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert drawn(tmp_path, trials, bleu, {}, caplog) == []
    assert f"no importances for test/bleu: {trials} trials are complete, expected at least 10" in caplog.text


def drawn(
    folder: Path,
    trials: int,
    values: Callable[[int], list[float]],
    others: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> list[str]:
    """The pictures of a study."""
    space = {"lr": FloatDistribution(0, 1), "kind": CategoricalDistribution(["good", "bad"])}
    tried = plan(folder, space=space, objectives={"test/bleu": "maximize", **others})
    with open_study(tried) as study:
        for i in range(trials):
            params = {"lr": i / trials, "kind": "good"}
            study.add_trial(create_trial(params=params, distributions=space, values=values(i)[: len(tried.objectives)]))
        with caplog.at_level("INFO"):
            report(study, tried)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.glob("*.png"))
    return sorted(path.stem for path in folder.glob("*.png"))


def test_workers_that_end_together_all_write(tmp_path: Path) -> None:
    tried = plan(tmp_path, "good", trials=2)
    with open_study(tried) as study:
        for _ in range(2):
            study.add_trial(create_trial(params={"kind": "good"}, distributions=tried.space, value=1.0))
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(report, study, tried) for _ in range(8)]:
                done.result()
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "results.json", "study.db", "train.py"}


def test_results_are_ranked_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"test/bleu": "maximize", "model/parameters": "minimize"}
    tried = plan(tmp_path, "good", "bad", "better", trials=8, objectives=figures)
    with open_study(tried) as study:
        Worker(study, tried).work()
        report(study, tried)
        front = {trial.number for trial in study.best_trials}
    rows = json.loads((tmp_path / "results.json").read_text())
    assert {row["state"] for row in rows} == {"complete", "failed"}
    complete = [row for row in rows if row["state"] == "complete"]
    assert rows[: len(complete)] == complete
    assert [row["test/bleu"] for row in complete] == sorted((row["test/bleu"] for row in complete), reverse=True)
    assert {row["trial"] for row in rows if row["best"]} == front
    assert all(row["kind"] == "better" for row in rows if row["best"])
    assert all("nothing works" in row["error"] for row in rows if row["state"] == "failed")
    with (tmp_path / "results.csv").open(newline="") as file:
        assert [row["trial"] for row in csv.DictReader(file)] == [str(row["trial"]) for row in rows]
    printed = capsys.readouterr().out
    assert "tried: 8 trials" in printed
    assert f"{rows[0]['trial']}*" in printed


SWEEPS = sorted(path.stem for path in (CONFIGS / "sweep").glob("*.yaml"))


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.usefixtures("hydra")
def test_every_sweep_of_configs_binds_and_composes(name: str, tmp_path: Path) -> None:
    config = composed("sweep", f"sweep={name}", f"run_dir={tmp_path}", f"study={name}")
    check_composition(build(config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": {"optimizer.lrr": FloatDistribution(0, 1)}}, "'optimizer.lrr'; did you mean 'optimizer.lr'?"),
        ({"space": {"model": CategoricalDistribution(["rnn", "rnnserch"])}}, "no model=rnnserch; did you mean"),
        ({"overrides": ["data=parallel"]}, "data.train is required"),
    ],
)
@pytest.mark.usefixtures("hydra")
def test_a_mistake_is_found_before_the_first_trial(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    space = {"optimizer.lr": FloatDistribution(1e-3, 1e-2)}
    with pytest.raises(ConfigError, match=message):
        check_composition(plan(tmp_path, **({"space": space} | changes)))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("+trails=3", "^trails is not an option of Plan: did you mean 'trials'?"),
        ("trials=many", "^trials is 'many' .str., expected a whole number of at least 1"),
        ("heartbeat=0", "^heartbeat is 0 .int., expected a whole number of at least 1"),
        ("+objectives.x=up", "^objectives.x is 'up' .str., expected one of 'maximize', 'minimize'"),
        ("sampler._target_=optuna.samplers.TPE", "sampler._target_ is 'optuna.samplers.TPE', which cannot be imported"),
        ("+pruner={_target_:optuna.pruners.MedianPruner,n_warmup_step:3}", "did you mean 'n_warmup_steps'?"),
    ],
)
@pytest.mark.usefixtures("hydra")
def test_a_mistake_in_yaml_is_named(option: str, message: str, tmp_path: Path) -> None:
    config = composed("sweep", "sweep=tradeoff", f"run_dir={tmp_path}", "study=x", option)
    with pytest.raises(ConfigError, match=message):
        build(config)
