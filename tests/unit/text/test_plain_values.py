"""JSON and plain values from files, within limits."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest

from softsearch.ranges import Range
from softsearch.text import plain_values
from softsearch.text.plain_values import nested_values, parse, read_json


def test_a_file_and_its_content_are_read_alike(tmp_path: Path) -> None:
    content = '{"a": [1, 2.5, "ä", null, true]}'.encode()
    (tmp_path / "x.json").write_bytes(content)
    assert read_json(tmp_path / "x.json") == read_json(content) == {"a": [1, 2.5, "ä", None, True]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 10**6, "nested deeper than 64 levels"),
        (b"[" * 65 + b"]" * 65, "nested deeper than 64 levels"),
        (b'{"a": ' * 10**5 + b"1" + b"}" * 10**5, "nested deeper than 64 levels"),
        (b"\xff", "utf-8"),
        (b"", "Expecting value"),
        (b"[" + b"1" * 5000 + b"]", "integer string conversion"),
        (b"1" + b" " * 99, "more than 50 bytes"),
    ],
)
def test_what_is_no_small_json_is_a_value_error(
    content: bytes, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if "bytes" in message:
        monkeypatch.setattr(plain_values, "_MAX_BYTES", 50)
    (tmp_path / "x.json").write_bytes(content)
    for source in (content, tmp_path / "x.json"):
        with pytest.raises(ValueError, match=message):
            read_json(source)


def test_shared_parts_count_each_time() -> None:
    """Fault: values in a checkpoint that share parts, so that they multiply when they are read.

    Effect: refused in bounded time and memory.
    """
    shared: list[Any] = []
    for _ in range(9):
        shared = [shared, shared]
    assert sum(1 for _ in nested_values(shared, 1023)) == 1023
    for value, most in ((shared, 1022), ([[0] * 1000] * 1000, 5000), ({"a": {"b": [1, 2]}}, 4)):
        with pytest.raises(ValueError, match="more than"):
            list(nested_values(value, most))


@dataclass(frozen=True)
class Inner:
    """A part of a file."""

    number: Annotated[int, Range(1, 9)]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outer:
    """A file."""

    inner: Inner | None
    parts: dict[str, list[Inner]] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)


def test_plain_values_become_dataclasses() -> None:
    values = {"inner": {"number": 3, "names": ["a"]}, "parts": {"x": [{"number": 1}]}, "rest": {"any": [None]}}
    assert parse(values, Outer) == Outer(Inner(3, ("a",)), {"x": [Inner(1)]}, {"any": [None]})
    assert parse({"inner": None}, Outer) == Outer(None)
    assert parse(9, Annotated[int, Range(1, 9)], "x") == 9


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "the file is '[]', expected an object of inner, parts, rest"),
        ({}, "inner is missing"),
        ({"inner": None, "part": 1}, "part is unknown; did you mean 'parts'?"),
        ({"inner": 1}, "inner is '1', expected an object of number, names"),
        ({"inner": {"number": 10}}, "inner.number is '10', expected a whole number of at least 1 and at most 9"),
        ({"inner": {"number": True}}, "inner.number is 'True', expected a whole number"),
        ({"inner": {"number": 1, "names": "ab"}}, "inner.names is 'ab', expected a list"),
        ({"inner": {"number": 1, "names": [2]}}, "inner.names[0] is '2', expected text"),
        ({"inner": None, "parts": {"x": {}}}, "parts.x is '{}', expected a list of objects of number, names"),
        ({"inner": None, "parts": {"x": [{"number": 1, "z": 0}]}}, "parts.x[0].z is unknown; expected one of number"),
        ({"inner": None, "rest": []}, "rest is '[]', expected a section of keys and values"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(values, Outer)
    with pytest.raises(ValueError, match="x is 'True', expected a whole number of at least 1"):
        parse(True, Annotated[int, Range(1, 9)], "x")
