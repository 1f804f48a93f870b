"""Verdicts on exercises: runs a reader's function and ours on the same inputs, and describes differences."""

import copy
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from softsearch.errors import InputError
from softsearch.extras.course.exercise import Exercise
from softsearch.suggestions import did_you_mean

_SHOWN = 160  # largest number of characters of a value in a message


class Verdict(NamedTuple):
    """The outcome of a check."""

    right: bool
    message: str


def check(name: str, function: Callable[..., Any]) -> None:
    """Prints whether a function solves an exercise of the course; if not, the first input for which it differs.

    Args:
        name: the name of the exercise.
        function: the reader's function.

    Raises:
        InputError: there is no such exercise.
    """
    print(verdict(name, function).message)


def verdict(name: str, function: Callable[..., Any]) -> Verdict:
    """Returns the outcome of ``check``.

    Raises:
        InputError: there is no such exercise, or ``function`` is not a function.
    """
    exercise = find(name)
    if not callable(function):
        raise InputError(f"check({name!r}, ...) got {shown(function)}, expected a function; pass it without calling it")
    inputs = exercise.inputs()
    for arguments in inputs:
        problem = _problem(exercise, function, arguments)
        if problem is not None:
            return Verdict(False, f"{name}: {problem}")
    return Verdict(True, f"{name}: correct for all {len(inputs)} inputs")


def every_exercise() -> dict[str, Exercise]:
    """Returns the exercises of the course by name."""
    from softsearch.extras.course import models, scores, words  # these import the library functions to compare with

    return {**words.EXERCISES, **models.EXERCISES, **scores.EXERCISES}


def find(name: str) -> Exercise:
    """Returns the exercise with a name.

    Raises:
        InputError: there is none.
    """
    exercises = every_exercise()
    if name not in exercises:
        advice = did_you_mean(str(name), exercises) or f"there are {', '.join(exercises)}"
        raise InputError(f"the course has no exercise {name!r}; {advice}")
    return exercises[name]


def _problem(exercise: Exercise, function: Callable[..., Any], arguments: Mapping[str, Any]) -> str | None:
    """Describes what is wrong with a function's answer to one input; None if nothing is."""
    given = copy.deepcopy(dict(arguments))
    try:
        found = function(*given.values())
    except Exception as error:  # noqa: BLE001  # exceptions of a reader's function are part of the answer
        return _raised(error, arguments)
    if _unfinished(found):
        return "not done yet: the function still has a ... in it"
    if found is None:
        return "not done yet: the function returned None; does it end with return?"
    for name, before in arguments.items():
        if difference(given[name], before, 0.0) is not None:
            return f"the function changed its argument {name}; work on a copy of it"
    expected = exercise.reference(**copy.deepcopy(dict(arguments)))
    wrong = difference(found, expected, exercise.tolerance)
    return None if wrong is None else f"not right yet: {wrong}\nfor{_call(arguments)}"


def _raised(error: Exception, arguments: Mapping[str, Any]) -> str:
    if isinstance(error, NotImplementedError) or "ellipsis" in str(error).lower():
        return "not done yet: the function still has a ... in it"
    frames = traceback.extract_tb(error.__traceback__)[1:2]  # the frame of the reader's function, which follows ours
    where = "".join(f"\nin line {frame.lineno} of its cell or file: {frame.line}" for frame in frames)
    return f"the function raised {type(error).__name__}: {error}{where}\nfor{_call(arguments)}"


def _unfinished(value: Any) -> bool:
    return value is ... or (isinstance(value, tuple | list) and any(_unfinished(part) for part in value))


def difference(found: Any, expected: Any, tolerance: float, where: str = "the result") -> str | None:
    """Describes the difference between a value and the expected one; None if there is none.

    ``tolerance`` is relative to 1 or to the expected number, whichever is larger.
    """
    if isinstance(expected, str | set):
        same = type(found) is type(expected) and found == expected
        return None if same else f"{where} is {shown(found)}, expected {shown(expected)}"
    if isinstance(expected, Mapping):
        return _mapping(found, expected, tolerance, where)
    if isinstance(expected, Sequence | tuple) and not all(isinstance(part, int | float) for part in expected):
        return _sequence(found, expected, tolerance, where)
    return _numbers(found, expected, tolerance, where)


def _mapping(found: Any, expected: Mapping[Any, Any], tolerance: float, where: str) -> str | None:
    if not isinstance(found, Mapping):
        return f"{where} is of type {type(found).__name__}, expected a dict: {shown(expected)}"
    if set(found) != set(expected):
        return f"{where} has the keys {shown(list(found))}, expected {shown(list(expected))}"
    parts = (difference(found[key], value, tolerance, f"{where}[{key!r}]") for key, value in expected.items())
    return next((part for part in parts if part is not None), None)


def _sequence(found: Any, expected: Sequence[Any], tolerance: float, where: str) -> str | None:
    if isinstance(found, str) or not isinstance(found, Sequence | np.ndarray):
        return f"{where} is of type {type(found).__name__}, expected {len(expected)} values: {shown(expected)}"
    if len(found) != len(expected):
        return f"{where} has length {len(found)}, expected {len(expected)}: {shown(found)} and {shown(expected)}"
    pairs = enumerate(zip(found, expected, strict=True))
    parts = (difference(one, other, tolerance, f"{where}[{index}]") for index, (one, other) in pairs)
    return next((part for part in parts if part is not None), None)


def _numbers(found: Any, expected: Any, tolerance: float, where: str) -> str | None:
    """Describes a difference of numbers: shape, type, NaN, value."""
    right = np.asarray(expected)
    try:
        array = np.asarray(found.detach() if hasattr(found, "detach") else found)
    except ValueError:  # rows of different lengths
        return f"{where} is {shown(found)}, expected {_form(right)}"
    if array.dtype.kind not in "biufc" or array.dtype.kind == "c":
        return f"{where} is {shown(found)} of type {array.dtype}, expected {_form(right)}"
    if array.shape != right.shape:
        return f"{where} is {_form(array)}, expected {_form(right)}"
    bad = np.isnan(array.astype(float)) & ~np.isnan(right.astype(float))
    if bad.any():
        return f"{where} is NaN{_place(bad)}, expected {right[bad].flat[0]:.6g}"
    off = ~np.isclose(array.astype(float), right.astype(float), rtol=tolerance, atol=tolerance, equal_nan=True)
    if not off.any():
        return None
    values = f"{where}{_place(off)} is {array[off].flat[0]:.6g}, expected {right[off].flat[0]:.6g}"
    if array.dtype.kind in "iub" and right.dtype.kind == "f" and array.ndim:
        values += f" (its dtype {array.dtype} holds no fractions)"
    return values + (f"; {off.sum()} of {off.size} numbers differ" if off.size > 1 else "")


def _form(array: np.ndarray[Any, Any]) -> str:
    return f"numbers of shape {array.shape}" if array.ndim else "one number"


def _place(where: np.ndarray[Any, Any]) -> str:
    """Formats the first index of an array that is True."""
    return f" at {np.argwhere(where)[0].tolist()}" if where.ndim else ""


def _call(arguments: Mapping[str, Any]) -> str:
    """Formats the arguments of a call, one per line."""
    return "".join(f"\n  {name} = {shown(value)}" for name, value in arguments.items())


def shown(value: Any) -> str:
    """Formats a value briefly."""
    if isinstance(value, np.ndarray):
        text = np.array2string(value, precision=3, threshold=12, edgeitems=2, separator=", ")
        text = f"array of shape {value.shape} {text}" if value.ndim else text
    else:
        text = repr(value)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."
