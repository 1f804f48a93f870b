"""Coordinate search: it climbs, stays where nothing is better, and tries nothing twice."""

from typing import Any

from softsearch.search.tuning import best_of, coordinate_search

GRIDS = {"x": [0, 1, 2, 3, 4], "y": [0, 1, 2, 3, 4]}


def hill(point: dict[str, Any]) -> float:
    """A ridge along x = y with its top at (3, 3)."""
    x, y = point["x"], point["y"]
    return float(-((x - y) ** 2) - 0.1 * (x + y - 6) ** 2)


def test_it_climbs_pass_by_pass_to_where_no_coordinate_improves() -> None:
    trials = coordinate_search({"x": 1, "y": 4}, GRIDS, hill, most=100)
    best = best_of(trials)
    for name, values in GRIDS.items():
        assert all(hill({**best.point, name: value}) <= best.value for value in values)
    assert best.value > hill({"x": 1, "y": 4})
    points = [tuple(trial.point.values()) for trial in trials]
    assert len(set(points)) == len(points)


def test_the_start_stands_unless_something_is_better() -> None:
    trials = coordinate_search({"x": 0, "y": 0}, GRIDS, lambda point: 1.0, most=100)
    assert best_of(trials).point == {"x": 0, "y": 0}
    assert len(trials) == 1 + 4 + 4


def test_it_tries_no_more_points_than_it_may() -> None:
    tried: list[dict[str, Any]] = []

    def objective(point: dict[str, Any]) -> float:
        tried.append(point)
        return hill(point)

    trials = coordinate_search({"x": 0, "y": 0}, GRIDS, objective, most=4)
    assert len(tried) == len(trials) == 4
    assert [trial.value for trial in trials] == [hill(trial.point) for trial in trials]


def test_a_coordinate_without_a_grid_stays() -> None:
    best = best_of(coordinate_search({"x": 0, "y": 2}, {"x": GRIDS["x"]}, hill, most=100))
    assert best.point["y"] == 2
    assert best.value == max(hill({"x": x, "y": 2}) for x in GRIDS["x"])
