"""The same results in the same order from any number of processes, and no reading far ahead."""

import os
import signal
from collections.abc import Iterator

import pytest

from softsearch.data.preparation.processes import ordered_map
from softsearch.errors import CorpusError


def square(number: int) -> int:
    return number * number


def refuse(number: int) -> int:
    if number == 3:
        raise CorpusError("three")
    return number


def die(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("processes", [1, 2])
def test_order_is_kept_and_little_is_read_ahead(processes: int) -> None:
    read = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    results = ordered_map(square, numbers(), processes)
    assert next(results) == 0
    assert len(read) <= 1 + 4 * processes
    assert list(results) == [number * number for number in range(1, 100)]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_comes_in_its_turn(processes: int) -> None:
    results = ordered_map(refuse, range(50), processes)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(CorpusError, match="three"):
        next(results)


def test_a_killed_process_is_an_error_and_no_hang() -> None:
    with pytest.raises(CorpusError, match="one of 2 processes was killed"):
        list(ordered_map(die, range(50), 2))
