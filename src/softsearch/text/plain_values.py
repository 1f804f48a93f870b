"""Plain values from files, limited in number and nesting, and dataclasses made from them.

The limits are needed because a few bytes can represent any number of values.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from softsearch.files import open_file
from softsearch.ranges import fits, in_words

MAX_NESTING = 64
_MAX_BYTES = 1 << 28


def nested_values(value: object, most: int) -> Iterator[object]:
    """Yields a value and all values inside its lists and mappings, level by level.

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
    """The value in a JSON file, or in its content.

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


def parse(value: Any, hint: Any, path: str = "", check: Callable[[str, Any], None] | None = None) -> Any:
    """Converts a plain value to its annotated type: numbers, text, dataclasses, and lists, mappings and unions of them.

    Args:
        value: a value read from JSON.
        hint: the annotation.
        path: the value's path in its file, for messages.
        check: called with the path and value of each single value that fits its annotation, to refuse it.

    Raises:
        ValueError: it does not fit; the message says where, and what was found and expected.
    """
    arguments = get_args(hint)
    if value is None and type(None) in arguments:
        return None
    section = next((kind for kind in (hint, *arguments) if isinstance(kind, type) and is_dataclass(kind)), None)
    kind = get_origin(hint)
    if kind in (list, tuple) and isinstance(value, list):
        return kind(parse(inner, arguments[0], f"{path}[{index}]", check) for index, inner in enumerate(value))
    if kind in (dict, Mapping) and isinstance(value, dict):
        return {
            key: parse(inner, arguments[1], f"{path}.{key}" if path else key, check) for key, inner in value.items()
        }
    if section and kind not in (list, tuple, dict, Mapping) and isinstance(value, dict):
        return _section(section, value, path, check)
    if section or not fits(value, hint):
        expected = in_words(hint, value)
        if section:
            keys = ", ".join(each.name for each in fields(section))
            expected = f"a list of objects of {keys}" if kind in (list, tuple) else f"an object of {keys}"
        raise ValueError(f"{path or 'the file'} is {str(value)[:60]!r}, expected {expected}")
    if check is not None:
        check(path, value)
    return value


def _section(kind: Any, values: dict[str, Any], path: str, check: Callable[[str, Any], None] | None) -> Any:
    """Converts the values of a dataclass; refuses unknown ones."""
    hints = get_type_hints(kind, include_extras=True)
    prefix = f"{path}." if path else ""
    for key in (key for key in values if key not in hints):
        from softsearch.suggestions import did_you_mean  # only a mistake needs it

        advice = did_you_mean(key, hints) or f"expected one of {', '.join(hints)}"
        raise ValueError(f"{prefix}{key[:40]} is unknown; {advice}")
    for each in fields(kind):
        if each.name not in values and each.default is each.default_factory is MISSING:
            raise ValueError(f"{prefix}{each.name} is missing")
    return kind(**{key: parse(value, hints[key], f"{prefix}{key}", check) for key, value in values.items()})


def _parts(node: list[Any] | dict[Any, Any]) -> Any:
    return node.values() if isinstance(node, dict) else node
