"""What a claim's comparisons say of measured tables."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import ConfigError
from softsearch.extras.claims.claim import Comparison
from softsearch.extras.claims.verdict import judge, overall, permutation_p, smallest_effect, values

TABLES: dict[str, list[dict[str, Any]]] = {
    "scores": [
        {"run": run, "seed": seed, "bleu": bleu, "p": p}
        for run, column, p in (
            ("good", (30.0, 31.0, 32.0), 0.01),
            ("bad", (20.0, 21.0, 29.0), 0.01),
            ("near", (29.0, 31.5, 30.0), 0.3),
            ("base", (25.0, 25.0, 25.0), None),
            ("slow", (20.0, 20.5, 21.0), 0.2),
            ("none", (None, None, None), None),
        )
        for seed, bleu in enumerate(column, 1)
    ],
    "once": [{"k": 5, "share": 0.25}],
}


@pytest.mark.parametrize(
    ("left", "right", "options", "outcome"),
    [
        ("good", "bad", {}, "holds"),
        ("bad", "good", {}, "does not hold"),
        ("good", "near", {}, "inconclusive"),
        ("good", "bad", {"margin": 2.0}, "holds"),
        ("good", "bad", {"margin": 20.0}, "inconclusive"),  # a difference that does not matter
        ("bad", "good", {"margin": 20.0}, "inconclusive"),
        ("good", "bad", {"chance": "none", "margin": 20.0}, "inconclusive"),
        ("good", "bad", {"chance": "none"}, "holds"),
        ("bad", "good", {"chance": "none"}, "does not hold"),
        ("good", "near", {"chance": "none"}, "inconclusive"),
        ("good", "base", {"chance": "p"}, "holds"),
        ("base", "good", {"chance": "p"}, "does not hold"),
        ("near", "base", {"chance": "p"}, "inconclusive"),
        ("good", "slow", {"chance": "p"}, "inconclusive"),  # p of 0.01 and 0.2: both must be small
        ("slow", "good", {"chance": "p"}, "inconclusive"),
    ],
)
def test_chance_is_ruled_out_before_anything_holds(left: str, right: str, options: Any, outcome: str) -> None:
    cells = (f"scores.bleu[run={name}]" for name in (left, right))
    assert judge(Comparison(says="", left=next(cells), right=next(cells), **options), TABLES).outcome == outcome


def test_a_number_is_met_only_by_all_seeds() -> None:
    outcomes = [judge(Comparison(says="", left="scores.bleu[run=bad]", right=x), TABLES).outcome for x in (19, 25, 29)]
    assert outcomes == ["holds", "inconclusive", "does not hold"]


def test_margins_are_those_of_columns_unless_a_comparison_has_its_own() -> None:
    cells = {"left": "scores.bleu[run=good] - scores.bleu[run=base]", "right": "scores.bleu[run=slow]"}
    verdicts = [
        judge(Comparison(says="", **cells, **own), TABLES, {"bleu": 50, "share": 99}) for own in ({}, {"margin": 0.0})
    ]
    assert [each.margin for each in verdicts] == [50, 0.0]
    assert [each.outcome for each in verdicts] == ["inconclusive", "does not hold"]


@pytest.mark.parametrize(
    ("target", "outcome"), [(39, "holds"), (40, "holds"), (40.5, "inconclusive"), (42, "does not hold")]
)
def test_a_number_is_reached_by_the_point_and_missed_by_the_whole_interval(target: float, outcome: str) -> None:
    tables = {"scores": [{"run": "one", "seed": 1, "bleu": 40.0, "bleu_high": 41.5}]}
    comparison = Comparison(says="", left="scores.bleu[run=one]", right=target, chance="interval")
    assert judge(comparison, tables).outcome == outcome


def test_the_smallest_effect_is_that_of_a_t_test() -> None:
    """2.1318 and 0.9410 are the quantiles of 0.95 and 0.8 with four degrees of freedom, 1.8125 and 0.8791 with ten."""
    assert smallest_effect([1, 2, 3], [11, 12, 13]) == pytest.approx((2.1318 + 0.9410) * (2 / 3) ** 0.5, rel=5e-3)
    assert smallest_effect([0.0, 2.0] * 3, [5.0, 7.0] * 3) == pytest.approx(
        (1.8125 + 0.8791) * (1.2 / 3) ** 0.5, rel=2e-3
    )
    assert smallest_effect([1], [1, 2]) is None


def test_cells_are_added_and_subtracted_seed_by_seed() -> None:
    assert values("scores.bleu[run=good] - scores.bleu[run=bad] + scores.bleu[run=near]", TABLES) == [39.0, 41.5, 33.0]
    assert values("once.share[k=5]", TABLES) == [0.25]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("score.bleu", "there is no measure 'score'; did you mean 'scores'?"),
        ("scores.blue[run=good]", "no column 'blue'; did you mean 'bleu'?"),
        ("scores.bleu[runs=good]", "no column 'runs'; did you mean 'run'?"),
        ("scores.bleu[run=god]", "is in 0 rows, expected one per seed"),
        ("scores.bleu[run=none]", "expected one per seed"),
        ("scores.bleu", "is in 15 rows"),
        ("scores bleu", "is not a cell"),
        ("scores.bleu[run=good] - once.share", "different seeds"),
    ],
)
def test_a_wrong_cell_is_told(cell: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        values(cell, TABLES)
    assert message in str(raised.value)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=5), st.integers(1, 4))
def test_the_permutation_test_is_that_of_all_orders(pooled: list[int], size: int) -> None:
    size = min(size, len(pooled) - 1)
    mean = lambda part: sum(part) / len(part)  # noqa: E731
    observed = mean(pooled[:size]) - mean(pooled[size:])
    sign = 1 if observed >= 0 else -1
    orders = [mean(order[:size]) - mean(order[size:]) for order in permutations(pooled)]
    expected = sum(sign * each >= abs(observed) - 1e-9 for each in orders) / len(orders)
    assert permutation_p(pooled[:size], pooled[size:]) == pytest.approx(expected)


def test_a_claim_holds_if_all_of_it_does() -> None:
    assert overall(["holds", "holds"]) == "holds"
    assert overall(["holds", "inconclusive", "does not hold"]) == "does not hold (1 of 3 hold)"
    assert overall(["holds", "holds", "does not hold"]) == "holds in part (2 of 3 hold)"
    assert overall(["holds", "inconclusive", "inconclusive"]) == "inconclusive (1 of 3 hold)"
    assert overall(["inconclusive", "does not hold"]) == "does not hold"
    assert overall(["inconclusive", "inconclusive", "does not hold"]) == "inconclusive"
