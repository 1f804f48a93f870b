"""Comparison of runs: their order, the Pareto front of quality, speed and size, and warnings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Run:
    """One system that was trained or evaluated."""

    name: str
    folder: str
    model: str = ""
    bleu: float | None = None
    chrf: float | None = None
    ter: float | None = None
    translating: float | None = None  # tokens of translations a second
    training: float | None = None  # tokens of the target side a second
    parameters: int | None = None
    size_bytes: int | None = None
    test_set: str = ""
    signature: str = ""  # of BLEU
    missing: str = ""  # why there are no scores


@dataclass(frozen=True)
class Comparison:
    """Runs with scores, best BLEU first, and those without."""

    scored: list[Run]
    unscored: list[Run]
    points: NDArray[np.float64]  # [scored, objectives], NaN where a run lacks a metric
    front: list[bool]  # of the scored
    objectives: dict[str, str]  # name to maximize or minimize
    warnings: list[str]


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Orders runs and finds those that no other one beats in BLEU, speed and size together.

    Speed is that of translating or that of training, whichever more runs have; runs that lack a metric are in the
    table, but neither on the front nor in the picture.
    """
    scored = sorted((run for run in runs if run.bleu is not None), key=lambda run: -(run.bleu or 0))
    speed = max(("translating", "training"), key=lambda name: sum(getattr(run, name) is not None for run in scored))
    objectives = {"BLEU": "maximize", f"tokens/s, {speed}": "maximize", "parameters": "minimize"}
    points = np.array([[run.bleu, getattr(run, speed), run.parameters] for run in scored], dtype=np.float64)
    points = points.reshape(len(scored), len(objectives))
    complete = np.asarray(np.isfinite(points).all(axis=1))
    warnings = _warnings(scored)
    if lacking := [run.name for run, is_complete in zip(scored, complete, strict=True) if not is_complete]:
        warnings.append(
            f"not in the picture, because speed while {speed} or parameters are missing: {', '.join(lacking)}"
        )
    front = complete & pareto_front(points, objectives)
    unscored = [run for run in runs if run.bleu is None]
    return Comparison(scored, unscored, points, front.tolist(), objectives, warnings)


def pareto_front(points: NDArray[np.floating], objectives: Mapping[str, str]) -> NDArray[np.bool_]:
    """Which points no other one equals or beats in all objectives and beats in one; NaN beats nothing.

    Args:
        points: ``[runs, objectives]``.
        objectives: name to ``maximize`` or ``minimize``.

    Returns:
        ``[runs]``.
    """
    signed = points * np.array([1.0 if direction == "maximize" else -1.0 for direction in objectives.values()])
    as_good = (signed[:, None] >= signed[None]).all(axis=-1)  # [other, run]
    better = (signed[:, None] > signed[None]).any(axis=-1)
    return ~(as_good & better).any(axis=0)


def _warnings(scored: Sequence[Run]) -> list[str]:
    """Reasons why these scores must not be compared."""

    def listed(values: Iterable[str]) -> str:
        return "; ".join(sorted(value or "unknown" for value in values))

    warnings = []
    evaluated = {run.test_set for run in scored if run.translating is not None}
    trained = {run.test_set for run in scored if run.translating is None}
    signatures = {run.signature for run in scored}
    for what, values in (("test sets", evaluated), ("test sets", trained), ("BLEU signatures", signatures)):
        if len(values) > 1:
            warnings.append(f"the runs have different {what}, their scores must not be compared: {listed(values)}")
    if evaluated and trained:
        warnings.append(
            f"training and evaluation name their test sets differently ({listed(trained)}; {listed(evaluated)}): "
            "compare their scores only if that is the same text"
        )
    return warnings
