"""Plain values from files, nested and counted within limits: a few bytes can stand for any number of them."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from softsearch.files import open_file

MAX_NESTING = 64
_MAX_BYTES = 1 << 28


def nested_values(value: object, most: int) -> Iterator[object]:
    """Yields a value and all values in its lists and mappings, level by level.

    Raises:
        ValueError: there are more than ``most``, or they are nested deeper than 64 levels.
    """
    level, count = [value], 0
    for _ in range(MAX_NESTING):
        count += len(level)
        if count > most:
            raise ValueError(f"it has more than {most:,} values")
        yield from level
        inner = (part for node in level if isinstance(node, list | dict) for part in _parts(node))
        level = list(islice(inner, most + 1))
        if not level:
            return
    raise ValueError(f"it is nested deeper than {MAX_NESTING} levels")


def read_json(source: Path | bytes) -> Any:
    """The value that a JSON file, or its content, holds.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not JSON in UTF-8, has more than 256 MiB, or is nested deeper than 64 levels.
    """
    if isinstance(source, Path):
        with open_file(source) as file:
            source = file.read(_MAX_BYTES + 1)
    if len(source) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
    try:
        value = json.loads(source.decode())
    except RecursionError:
        raise ValueError(f"it is nested deeper than {MAX_NESTING} levels") from None
    for _ in nested_values(value, _MAX_BYTES):
        pass
    return value


def _parts(node: list[Any] | dict[Any, Any]) -> Any:
    return node.values() if isinstance(node, dict) else node
