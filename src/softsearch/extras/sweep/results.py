"""Results of a sweep: a table, files, and Optuna's plots."""

import json
import logging
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import optuna
from matplotlib import pyplot as plt
from optuna.trial import FrozenTrial, TrialState
from optuna.visualization import matplotlib as plots

from softsearch.app import all_or_nothing, echo, file_name, print_rows, write_rows
from softsearch.extras.shared.pareto import draw_pareto
from softsearch.extras.sweep.study import Plan

log = logging.getLogger(__name__)
_SHOWN = 30  # number of trials in the printed table
_MIN_TRIALS = 10  # complete trials needed for importances, so that the best tenth is one trial


def report(study: optuna.Study, plan: Plan) -> None:
    """Prints the trials, best first, and writes them to the sweep's folder as files and figures."""
    trials = study.trials
    if not trials:
        return
    best = {trial.number for trial in study.best_trials}
    sign = -1 if next(iter(plan.objectives.values())) == "maximize" else 1
    # complete trials by the first objective, then the others by number
    trials.sort(key=lambda t: (0, sign * t.values[0]) if t.state is TrialState.COMPLETE else (1, t.number))
    rows = [_row(trial, plan, trial.number in best) for trial in trials]
    _print(rows, plan)
    with all_or_nothing(plan.folder) as folder:  # several workers may end at the same time
        write_rows(folder / "results.csv", rows)
        (folder / "results.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        with mpl.rc_context(), warnings.catch_warnings():  # because Optuna sets a global style
            warnings.simplefilter("ignore", UserWarning)  # about few trials
            logging.getLogger("matplotlib").setLevel(logging.WARNING)
            plt.switch_backend("agg")
            _draw(study, plan, best, folder)
        written = ", ".join(sorted(path.name for path in folder.iterdir()))
    log.info("written to %s: %s", plan.folder, written)


def _row(trial: FrozenTrial, plan: Plan, best: bool) -> dict[str, Any]:
    """Returns a trial as plain values; None where it has no value."""
    state, error = trial.state.name.lower(), trial.user_attrs.get("error")
    if trial.state is TrialState.FAIL:
        state = "failed" if error is not None else "interrupted"
    values = trial.values if trial.state is TrialState.COMPLETE else [None] * len(plan.objectives)
    return {
        "trial": trial.number,
        "state": state,
        "best": best,
        **dict(zip(plan.objectives, values, strict=True)),
        **{name: trial.params.get(name) for name in plan.space},
        "seconds": round(trial.duration.total_seconds(), 1) if trial.duration else None,
        "last_step": trial.last_step,
        "folder": trial.user_attrs.get("folder"),
        "host": trial.user_attrs.get("host"),
        "error": error,
    }


def _print(rows: list[dict[str, Any]], plan: Plan) -> None:
    columns = ["trial", "state", *plan.objectives, *plan.space, "seconds"]
    starred = [row | {"trial": f"{row['trial']}{'*' if row['best'] else ''}"} for row in rows[:_SHOWN]]
    shown = ([_cell(row[name]) for name in columns] for row in starred)
    print_rows(columns, shown, f"{plan.study}: {len(rows)} trials, * is best")
    if len(rows) > _SHOWN:
        echo(f"the other {len(rows) - _SHOWN} are in results.csv")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "" if value is None else str(value)


def _draw(study: optuna.Study, plan: Plan, best: Collection[int], folder: Path) -> None:
    """Draws the Pareto front if there are several objectives, and Optuna's plots if there are enough trials."""
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    several = len(plan.objectives) > 1
    if several and len(complete) > 1:
        points, numbers = np.array([trial.values for trial in complete]), [trial.number for trial in complete]
        draw_pareto(points, numbers, plan.objectives, [trial in best for trial in numbers], folder / "pareto.png")
    for index, (name, direction) in enumerate(plan.objectives.items()):
        if len(complete) < _MIN_TRIALS or len({trial.values[index] for trial in complete}) == 1:
            wanted = f"expected at least {_MIN_TRIALS} with different values"
            log.info("no importances for %s: %d trials are complete, %s", name, len(complete), wanted)
        elif several:  # PED-ANOVA (Watanabe et al. 2023, arXiv:2304.10255) assumes that lower is better
            sign = -1 if direction == "maximize" else 1
            cost = lambda trial: sign * trial.values[index]  # noqa: B023, E731 - called at once
            _save(plots.plot_param_importances(study, target=cost, target_name=name), folder, f"importance-{name}")
        else:
            _save(plots.plot_param_importances(study, target_name=name), folder, "importance")
            _save(plots.plot_optimization_history(study, target_name=name), folder, "history")
            _save(plots.plot_slice(study, target_name=name), folder, "slice")


def _save(axes: Any, folder: Path, name: str) -> None:
    panels = np.ravel(axes)
    figure = panels[0].figure
    figure.set_size_inches(max(6.4, 3.5 * len(panels)), 4.8)
    for panel in panels if len(panels) > 1 else ():
        panel.tick_params(axis="x", which="both", labelrotation=45)
    figure.savefig(folder / f"{file_name(name)}.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
