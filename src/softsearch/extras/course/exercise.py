"""Exercises: the function that solves one, the inputs that a reader's is tried on, and how exact it must be."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Arguments = Mapping[str, Any]  # of one call, by name and in order


class Exercise(NamedTuple):
    """An exercise of the course."""

    reference: Callable[..., Any]
    inputs: Callable[[], Sequence[Arguments]]
    tolerance: float = 1e-6  # relative to 1 or to the value; 0 for whole numbers


def rng(seed: int = 0) -> np.random.Generator:
    """The random numbers of inputs, the same every time."""
    return np.random.default_rng(seed)
