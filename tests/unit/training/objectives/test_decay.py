"""The decays against the formulas of section 2.4."""

import math

import pytest

from softsearch.errors import ConfigError
from softsearch.training.objectives.decay import Decay, Exponential, InverseSigmoid, Linear


def test_linear() -> None:
    decay = Linear(k=1.5, c=0.25, floor=0.3)
    assert [decay(step) for step in range(7)] == pytest.approx([1.5, 1.25, 1.0, 0.75, 0.5, 0.3, 0.3])


def test_exponential() -> None:
    decay = Exponential(k=0.5)
    assert [decay(step) for step in range(4)] == [1.0, 0.5, 0.25, 0.125]
    assert decay(10**6) == 0.0


def test_inverse_sigmoid() -> None:
    decay = InverseSigmoid(k=20.0)
    for step in (0, 1, 30, 200):
        assert decay(step) == pytest.approx(20 / (20 + math.exp(step / 20)))
    assert decay(round(20 * math.log(20))) == pytest.approx(0.5, abs=0.01)
    assert 0 <= decay(10**9) < 1e-100


@pytest.mark.parametrize("decay", [Linear(c=1e-3, floor=0.1), Exponential(k=0.99), InverseSigmoid(k=50.0)])
def test_never_rises(decay: Decay) -> None:
    values = [decay(step) for step in range(0, 2000, 7)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Linear, {"c": -1.0}, "method.decay.c is -1.0"),
        (Linear, {"c": 0.1, "k": 0.0}, "method.decay.k is 0.0"),
        (Linear, {"c": 0.1, "floor": 1.0}, "method.decay.floor is 1.0"),
        (Exponential, {"k": 1.0}, "method.decay.k is 1.0"),
        (InverseSigmoid, {"k": 0.5}, "method.decay.k is 0.5, expected at least 1"),
    ],
)
def test_what_is_out_of_range_is_refused(kind: type, options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**options)
