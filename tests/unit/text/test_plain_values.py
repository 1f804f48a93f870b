"""JSON and plain values from files, within limits."""

from pathlib import Path
from typing import Any

import pytest

from softsearch.text import plain_values
from softsearch.text.plain_values import nested_values, read_json


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
    shared: list[Any] = []
    for _ in range(9):
        shared = [shared, shared]
    assert sum(1 for _ in nested_values(shared, 1023)) == 1023
    for value, most in ((shared, 1022), ([[0] * 1000] * 1000, 5000), ({"a": {"b": [1, 2]}}, 4)):
        with pytest.raises(ValueError, match="more than"):
            list(nested_values(value, most))
