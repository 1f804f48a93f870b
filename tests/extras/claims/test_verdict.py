"""What a claim's comparisons say of measured tables."""

from typing import Any

import numpy as np
import pytest

from softsearch.errors import ConfigError
from softsearch.extras.claims.claim import Comparison
from softsearch.extras.claims.verdict import Verdict, judge, overall, values


def rows(run: str, column: tuple[float | None, ...], p: float | None = None) -> list[dict[str, Any]]:
    return [{"run": run, "seed": seed, "bleu": bleu, "p": p} for seed, bleu in enumerate(column, 1)]


def bin_of(run: str, middle: float, sentences: int = 60, seeds: int = 4, wide: float = 0.1) -> list[dict[str, Any]]:
    """A bin of sentences whose resamples deviate by ``wide``, independently of other runs."""
    rng = np.random.default_rng(len(run))
    drawn = " ".join(f"{middle + wide * each:.4f}" for each in rng.normal(size=200))
    row = {"run": run, "sentences": sentences, "bleu_resampled": drawn}
    return [row | {"seed": seed, "bleu": middle + seed / 100} for seed in range(1, 1 + seeds)]


TABLES: dict[str, list[dict[str, Any]]] = {
    "scores": [
        *rows("good", (30.0, 31.0, 32.0, 31.0), 0.01),
        *rows("bad", (20.0, 21.0, 29.0, 22.0), 0.01),
        *rows("near", (29.0, 31.5, 30.0, 32.0), 0.3),
        *rows("base", (25.0, 25.0, 25.0, 25.0)),
        *rows("slow", (20.0, 20.5, 21.0, 20.0), 0.2),
        *rows("mixed", (36.0, 26.0, 27.0, 33.0), 0.01),
        *rows("none", (None, None, None, None)),
        *rows("three", (20.0, 20.5, 21.0)),
        *rows("one", (20.0,)),
    ],
    "bins": [
        *bin_of("sure", 30),
        *bin_of("lower", 20),
        *bin_of("few", 30, sentences=59),
        *bin_of("wide", 30, wide=9.0),
        *({"run": "older", "seed": seed, "sentences": 80, "bleu": 40.0 + seed} for seed in range(1, 5)),
        *({"run": "old", "seed": seed, "sentences": 80, "bleu": 20.0 + seed} for seed in range(1, 5)),
    ],
    "one": bin_of("all", 30, seeds=1),
    "same": bin_of("all", 30, seeds=1, wide=0),
    "times": [{"model": model, "seed": seed, "us": us} for model, us in (("a", 1), ("b", 2)) for seed in (1, 2, 3)],
    "groups": [{"run": "three", "seed": f"{n}+{n + 1}", "bleu": 50.0 + n} for n in (1, 3, 5)],
    "members": [{"run": "all", "r": 0.4, "members_p": 0.03, "p": 0.5}],
    "once": [{"k": 5, "share": 0.25}],
}


def verdict(left: Any, right: Any, **options: Any) -> Verdict:
    return judge(Comparison(says="", left=left, right=right, **options), TABLES)


@pytest.mark.parametrize(
    ("left", "right", "options", "outcome"),
    [
        ("good", "bad", {}, "holds"),
        ("bad", "good", {}, "does not hold"),
        ("good", "near", {}, "inconclusive"),
        ("good", "bad", {"margin": 2.0}, "holds"),
        ("good", "bad", {"margin": 20.0}, "inconclusive"),  # a difference that does not matter
        ("bad", "good", {"margin": 20.0}, "inconclusive"),
        ("good", "base", {"chance": "sentences"}, "holds"),
        ("base", "good", {"chance": "sentences"}, "does not hold"),
        ("near", "base", {"chance": "sentences"}, "inconclusive"),
        ("good", "slow", {"chance": "sentences"}, "inconclusive"),  # p of 0.01 and 0.2: both must be small
        ("slow", "good", {"chance": "sentences"}, "inconclusive"),
        ("good", "mixed", {"chance": "sentences"}, "inconclusive"),  # significant, but not always in one direction
        ("good", "three", {"chance": "construction"}, "by construction"),
    ],
)
def test_chance_is_ruled_out_before_anything_holds(left: str, right: str, options: Any, outcome: str) -> None:
    assert verdict(f"scores.bleu[run={left}]", f"scores.bleu[run={right}]", **options).outcome == outcome


@pytest.mark.parametrize(
    ("left", "right", "why"),
    [
        ("scores.bleu[run=three]", "scores.bleu[run=three]", "seed 4 is missing"),
        ("scores.bleu[run=good]", "scores.bleu[run=one]", "seeds 2, 3 and 4 are missing"),
        ("scores.bleu[run=three]", 10, "seed 4 is missing"),
        ("groups.bleu", "scores.bleu[run=three]", "4 groups of seeds are needed, and there are 3"),
        ("times.us[model=b]", "times.us[model=a]", "round 4 is missing"),
        ("scores.bleu[run=base]", 10, "all seeds have the same value, and the sentences were not resampled"),
        ("bins.bleu[run=sure]", "bins.bleu[run=few]", "59 sentences are fewer than 60"),
        ("bins.bleu[run=older]", "bins.bleu[run=old]", "its sentences were not resampled"),
    ],
)
def test_what_cannot_be_tested_is_undecided_and_says_what_is_missing(left: Any, right: Any, why: str) -> None:
    found = verdict(left, right)
    assert (found.outcome, found.why) == ("undecided", why)


def test_where_there_are_few_sentences_their_chance_counts_too() -> None:
    sure = verdict("bins.bleu[run=sure]", "bins.bleu[run=lower]")
    wide = verdict("bins.bleu[run=wide]", "bins.bleu[run=lower]")
    assert (sure.outcome, sure.of, sure.p) == ("holds", "seeds and sentences", pytest.approx(2 / 70))
    assert (wide.outcome, wide.p) == ("inconclusive", pytest.approx(0.27, abs=0.05))  # 10 with a deviation of 9
    assert verdict("bins.bleu[run=wide]", 5).outcome == "holds"
    assert verdict("bins.bleu[run=wide]", 20).outcome == "inconclusive"
    assert verdict("one.bleu", 20, chance="sentences").outcome == "holds"
    assert verdict("one.bleu", 29.9, chance="sentences").outcome == "inconclusive"


def test_an_older_program_may_not_have_measured_a_cell() -> None:
    comparison = Comparison(says="", left="scores.chrf", right=0)
    found = judge(comparison, TABLES, older=True)
    assert (found.outcome, found.left) == ("undecided", None)
    assert "older program" in found.why
    with pytest.raises(ConfigError, match="no column 'chrf'"):
        judge(comparison, TABLES)


def test_a_number_is_met_by_a_t_test() -> None:
    found = [verdict("scores.bleu[run=bad]", number) for number in (10, 23.5, 40)]
    assert [each.outcome for each in found] == ["holds", "inconclusive", "does not hold"]
    assert found[2].p == pytest.approx(0.0045, abs=1e-3)  # t = -17 / (4.08 / 2), three degrees of freedom
    assert verdict(40, "scores.bleu[run=bad]").outcome == "holds"
    assert verdict("members.r", 0, chance="members").p == 0.03


def test_a_side_without_differences_between_seeds_is_a_number() -> None:
    found = verdict("scores.bleu[run=good]", "scores.bleu[run=base]")
    assert (found.outcome, found.p) == ("holds", verdict("scores.bleu[run=good]", 25).p)
    assert found.p == pytest.approx(0.0005, abs=2e-4)  # t = 6 / (0.816 / 2), three degrees of freedom
    assert verdict("scores.bleu[run=base]", "scores.bleu[run=good]").p == found.p


def test_resamples_that_are_all_the_same_decide_nothing() -> None:
    found = verdict("same.bleu", 20, chance="sentences")
    assert (found.outcome, found.why) == ("undecided", "all resamples of its sentences have the same score")


def test_margins_are_those_of_columns_unless_a_comparison_has_its_own() -> None:
    cells = {"left": "scores.bleu[run=good] - scores.bleu[run=base]", "right": "scores.bleu[run=slow]"}
    verdicts = [
        judge(Comparison(says="", **cells, **own), TABLES, {"bleu": 50, "share": 99}) for own in ({}, {"margin": 0.0})
    ]
    assert [each.margin for each in verdicts] == [50, 0.0]
    assert [each.outcome for each in verdicts] == ["inconclusive", "does not hold"]


def test_cells_are_added_and_subtracted_seed_by_seed() -> None:
    expression = "scores.bleu[run=good] - scores.bleu[run=bad] + scores.bleu[run=near]"
    assert values(expression, TABLES) == [39.0, 41.5, 33.0, 41.0]
    assert values("once.share[k=5]", TABLES) == [0.25]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("score.bleu", "there is no measure 'score'; did you mean 'scores'?"),
        ("scores.blue[run=good]", "no column 'blue'; did you mean 'bleu'?"),
        ("scores.bleu[runs=good]", "no column 'runs'; did you mean 'run'?"),
        ("scores.bleu[run=god]", "is in 0 rows, expected one per seed"),
        ("scores.bleu[run=none]", "expected one per seed"),
        ("scores.bleu", "is in 28 rows"),
        ("scores bleu", "is not a cell"),
        ("scores.bleu[run=good] - once.share", "different seeds"),
    ],
)
def test_a_wrong_cell_is_told(cell: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        values(cell, TABLES)
    assert message in str(raised.value)


def test_a_claim_holds_if_all_of_it_does() -> None:
    holds, fails, close, open_, given = "holds", "does not hold", "inconclusive", "undecided", "by construction"
    assert overall([holds, holds, given]) == holds
    assert overall([holds, close, fails]) == "does not hold (of 3: 1 holds, 1 does not hold, 1 inconclusive)"
    assert overall([holds, holds, fails, given]) == "holds in part (of 3: 2 hold, 1 does not hold)"
    assert overall([holds, close, close]) == "inconclusive (of 3: 1 holds, 2 inconclusive)"
    assert overall([open_, close, fails]) == "undecided (of 3: 1 does not hold, 1 inconclusive, 1 undecided)"
    assert overall([open_, open_]) == open_
    assert overall([given]) == "all by construction"
