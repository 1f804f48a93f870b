"""Finding a few numbers by trying them: one at a time, each on its grid, as long as that helps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Point = dict[str, Any]


class Trial(NamedTuple):
    """One point that was tried."""

    point: Point
    value: float


def coordinate_search(
    start: Mapping[str, Any],
    grids: Mapping[str, Sequence[Any]],
    objective: Callable[[Point], float],
    *,
    most: int,
) -> list[Trial]:
    """Maximises ``objective`` by coordinate ascent; needs no derivatives, draws nothing and always ends.

    Each pass takes one coordinate after the other and tries all values of its grid, the others staying where they are.
    It moves to a value that is better, so that the start stands unless something beats it, and stops after a pass
    without a move. What it finds is a point that no single coordinate can improve, which need not be the best.

    Args:
        start: where to begin.
        grids: the values to try of each coordinate that may change, in the order in which they take turns.
        objective: is called once for each point.
        most: points to try at most, the start among them.

    Returns:
        All trials in order; :func:`best_of` them is the result.
    """
    trials = [Trial(dict(start), objective(dict(start)))]
    best, moved = trials[0], True
    while moved:
        moved = False
        for name, values in grids.items():
            origin = best
            for value in values:
                point = {**origin.point, name: value}
                if any(trial.point == point for trial in trials):
                    continue
                if len(trials) >= most:
                    return trials
                trials.append(Trial(point, objective(dict(point))))
                if trials[-1].value > best.value:
                    best, moved = trials[-1], True
    return trials


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial of the largest value, the first of several."""
    return max(trials, key=lambda trial: trial.value)
