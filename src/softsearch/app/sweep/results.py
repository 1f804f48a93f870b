"""What a sweep has found: a table, files and pictures."""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.importance import get_param_importances
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table

from softsearch.app.console import plain_console
from softsearch.app.sweep.study import Plan
from softsearch.report.folder import all_or_nothing
from softsearch.report.pareto import draw_pareto
from softsearch.report.sweep import draw_importances, write_rows

log = logging.getLogger(__name__)
_SHOWN = 30  # trials in the table on the screen
_FEWEST = 10  # complete trials that importances are computed from: the best tenth of them is one


def report(study: optuna.Study, plan: Plan) -> None:
    """Prints the trials, best first, and writes them to the sweep's folder as files and pictures."""
    trials = study.get_trials(deepcopy=False)
    if not trials:
        return
    best = {trial.number for trial in study.best_trials}
    rows = [_row(trial, plan, trial.number in best) for trial in _ranked(trials, plan)]
    _print(rows, plan)
    with all_or_nothing(plan.folder) as folder:  # two workers may end at the same time
        written = [*write_rows(rows, folder), *_draw(study, plan, best, folder)]
    log.info("written to %s: %s", plan.folder, ", ".join(written))


def _ranked(trials: list[FrozenTrial], plan: Plan) -> list[FrozenTrial]:
    """Complete trials by the first objective, then the others by number."""
    sign = -1 if next(iter(plan.objectives.values())) == "maximize" else 1
    complete = sorted((t for t in trials if t.state is TrialState.COMPLETE), key=lambda t: sign * t.values[0])
    return [*complete, *(t for t in trials if t.state is not TrialState.COMPLETE)]


def _row(trial: FrozenTrial, plan: Plan, best: bool) -> dict[str, Any]:
    """A trial in plain values; what it does not have is None."""
    complete = trial.state is TrialState.COMPLETE
    state = trial.state.name.lower()
    if trial.state is TrialState.FAIL:
        state = "failed" if "error" in trial.user_attrs else "interrupted"
    return {
        "trial": trial.number,
        "state": state,
        "best": best,
        **dict(zip(plan.objectives, trial.values if complete else [None] * len(plan.objectives), strict=True)),
        **{name: trial.params.get(name) for name in plan.space},
        "seconds": round(trial.duration.total_seconds(), 1) if trial.duration else None,
        "last_step": trial.last_step,
        "folder": trial.user_attrs.get("folder"),
        "host": trial.user_attrs.get("host"),
        "error": trial.user_attrs.get("error"),
    }


def _print(rows: list[dict[str, Any]], plan: Plan) -> None:
    columns = ["trial", "state", *plan.objectives, *plan.space, "seconds"]
    table = Table(*columns, title=f"{plan.study}: {len(rows)} trials, * is best")
    for row in rows[:_SHOWN]:
        table.add_row(f"{row['trial']}{'*' if row['best'] else ''}", *(_show(row[name]) for name in columns[1:]))
    console = plain_console()
    if not console.is_terminal:
        console = plain_console(width=sum(max(len(name), 12) + 3 for name in columns) + 1)
    console.print(table)
    if len(rows) > _SHOWN:
        console.print(f"the other {len(rows) - _SHOWN} are in results.csv")


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "" if value is None else str(value)


def _draw(study: optuna.Study, plan: Plan, best: set[int], folder: Path) -> list[str]:
    """Draws what the complete trials allow; the names of the files."""
    complete = [t for t in study.get_trials(deepcopy=False) if t.state is TrialState.COMPLETE]
    drawn: list[str] = []
    if not complete:
        return drawn
    told = {name: _tells(name, [trial.values[i] for trial in complete]) for i, name in enumerate(plan.objectives)}
    if any(told.values()):
        importances = {
            name: _importances(study, index, way)
            for index, (name, way) in enumerate(plan.objectives.items())
            if told[name]
        }
        draw_importances(importances, len(complete), folder / "importance.png")
        drawn.append("importance.png")
    if len(plan.objectives) > 1 and len(complete) > 1:
        numbers = [trial.number for trial in complete]
        draw_pareto(
            np.array([trial.values for trial in complete]),
            numbers,
            plan.objectives,
            [number in best for number in numbers],
            folder / "pareto.png",
        )
        drawn.append("pareto.png")
    return drawn


def _tells(objective: str, values: list[float]) -> bool:
    """Whether importances for an objective would say anything; logs why not."""
    if len(values) < _FEWEST:
        log.info("no importances for %s: %d trials are complete, expected %d", objective, len(values), _FEWEST)
    elif min(values) == max(values):
        log.info("no importances for %s: it is %g in all %d complete trials", objective, values[0], len(values))
    else:
        return True
    return False


def _importances(study: optuna.Study, objective: int, direction: str) -> dict[str, float]:
    """PED-ANOVA's shares (Watanabe et al. 2023, arXiv:2304.10255): what tells the best tenth of the trials from all."""
    sign = -1.0 if direction == "maximize" else 1.0  # it takes less for better
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few trials; the picture's title says how many
        return get_param_importances(study, target=lambda trial: sign * trial.values[objective])
