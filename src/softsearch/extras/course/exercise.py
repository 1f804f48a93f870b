"""The type of exercises: a reference function, inputs to try a reader's function on, and a tolerance."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Arguments = Mapping[str, Any]  # arguments of one call, by name and in order


class Exercise(NamedTuple):
    """An exercise of the course."""

    reference: Callable[..., Any]
    inputs: Callable[[], Sequence[Arguments]]
    tolerance: float = 1e-6  # relative to the larger of 1 and the value; 0 for whole numbers


def rng(seed: int = 0) -> np.random.Generator:
    """Returns a generator of random inputs, the same every time."""
    return np.random.default_rng(seed)
