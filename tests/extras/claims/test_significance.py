"""p-values are two-sided, and without an effect at most one comparison in twenty is decided."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.extras.claims.significance import bootstrap_p, enough, permutation_p, smallest_effect, t_test_p

TRIALS = 1000


def limit(trials: int) -> float:
    """The share of decisions that a rule with a level of 0.05 exceeds once in two hundred times."""
    return 0.05 + 2.6 * (0.05 * 0.95 / trials) ** 0.5


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=6), st.integers(1, 5))
def test_the_permutation_test_is_that_of_all_orders(pooled: list[int], size: int) -> None:
    size = min(size, len(pooled) - 1)

    def difference(order: tuple[int, ...]) -> float:
        return abs(np.mean(order[:size]) - np.mean(order[size:]))

    expected = np.mean([difference(order) >= difference(tuple(pooled)) - 1e-9 for order in permutations(pooled)])
    assert permutation_p(pooled[:size], pooled[size:]) == pytest.approx(expected)


@pytest.mark.parametrize(("seeds", "p"), [(3, 0.1), (4, 2 / 70), (5, 2 / 252)])
def test_the_least_p_tells_whether_seeds_are_enough(seeds: int, p: float) -> None:
    assert permutation_p(range(seeds), range(10, 10 + seeds)) == pytest.approx(p)
    assert enough(seeds, seeds) == (p <= 0.05)


def test_a_number_needs_four_seeds_and_unequal_sides_what_has_a_small_p() -> None:
    assert [enough(3, None), enough(4, None), enough(3, 9), enough(2, 3)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("t", "seeds", "p"), [(12.706, 2, 0.05), (4.3027, 3, 0.05), (3.1824, 4, 0.05), (0.7649, 4, 0.5), (2.0010, 60, 0.05)]
)
def test_the_t_test_has_the_quantiles_of_tables(t: float, seeds: int, p: float) -> None:
    values = np.arange(seeds, dtype=float)
    number = values.mean() - t * values.std(ddof=1) / seeds**0.5
    assert t_test_p(values.tolist(), number) == pytest.approx(p, abs=1e-4)


@pytest.mark.parametrize(("left", "right"), [(4, 4), (3, 9), (5, 5)])
def test_the_smallest_effect_is_found_in_four_of_five_trials(left: int, right: int) -> None:
    values = np.linspace(0, 1, left), np.linspace(0, 1, right)
    squares = sum(((each - each.mean()) ** 2).sum() for each in values)
    effect = smallest_effect(*(each.tolist() for each in values))
    assert effect is not None
    standard = effect / (squares / (left + right - 2)) ** 0.5
    rng = np.random.default_rng(5)
    found = [permutation_p(standard + rng.normal(size=left), rng.normal(size=right)) <= 0.05 for _ in range(TRIALS)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


def test_the_smallest_effect_on_a_number_is_that_of_a_two_sided_t_test() -> None:
    """3.1824 and 0.9785 are the quantiles of 0.975 and 0.8 with three degrees of freedom."""
    values = [0.0, 1.0, 2.0, 3.0]
    assert smallest_effect(values, [9.0] * 4) == pytest.approx((3.1824 + 0.9785) * (5 / 3) ** 0.5 / 2, rel=1e-2)
    assert smallest_effect([1, 2, 3], [4, 5, 7]) is None
    assert smallest_effect([1] * 4, [2] * 4) is None


def test_without_an_effect_seeds_decide_at_most_one_comparison_in_twenty() -> None:
    rng = np.random.default_rng(1)
    assert np.mean([permutation_p(*rng.normal(size=(2, 4))) <= 0.05 for _ in range(TRIALS)]) < limit(TRIALS)
    uneven = [permutation_p(rng.normal(size=3), rng.normal(size=9)) <= 0.05 for _ in range(TRIALS)]
    assert np.mean(uneven) < limit(TRIALS)
    assert np.mean([t_test_p(rng.normal(size=4), 0) <= 0.05 for _ in range(TRIALS)]) < limit(TRIALS)


@pytest.mark.parametrize("sentence_effect", [*(pytest.param(each, marks=pytest.mark.day) for each in (0.0, 0.5)), 4.0])
def test_without_an_effect_seeds_and_sentences_decide_at_most_one_comparison_in_twenty(sentence_effect: float) -> None:
    """Two systems that each suit some of 60 sentences: only more sentences would show that they are equal."""
    rng, sentences, decided = np.random.default_rng(2), 60, []
    for _ in range(400):
        systems = rng.normal(size=(2, 1, sentences)) * sentence_effect + rng.normal(size=(2, 4, 1)) / 4
        systems = systems + rng.normal(size=(2, 4, sentences))
        counts = rng.multinomial(sentences, [1 / sentences] * sentences, size=200) / sentences
        means, resampled = systems.mean(axis=2), systems @ counts.T
        by_sentences = bootstrap_p(*resampled, float(means[0].mean() - means[1].mean()), sentences)
        assert by_sentences is not None
        decided.append(max(by_sentences, permutation_p(*means)) <= 0.05)
    assert np.mean(decided) < limit(400)


def test_an_effect_is_found_by_seeds_and_sentences() -> None:
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(2, 4, 200))
    assert bootstrap_p(left + 5, right, 5.0, 60) == pytest.approx(0, abs=1e-4)
    assert bootstrap_p(left + 5, np.array([[0.0]]), 5.0, 60) == pytest.approx(0, abs=1e-4)
    assert bootstrap_p(left + 50, right, 50.0, 1000) == t_test_p([1.0, 1 + 1e-9] * 500, 0) == 1e-12
    assert bootstrap_p(left, right, 0.01, 60) == pytest.approx(1, abs=0.1)
    assert bootstrap_p(np.ones((4, 200)), np.array([[0.0]]), 1.0, 60) is None
