"""Reads options and vocabularies from JSON files in Hugging Face folders."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from softsearch.errors import CheckpointError, ConfigError
from softsearch.files import open_file
from softsearch.ranges import Range, Rate, fits, in_words
from softsearch.text.parts import other_kind, read_json

CONFIG = "config.json"


class Config:
    """The values of a ``config.json``, each checked when it is read.

    Args:
        path: the file.
        values: its values, if it is not a JSON file.

    Raises:
        CheckpointError: it is not a JSON object.
    """

    def __init__(self, path: Path, values: dict[str, Any] | None = None) -> None:
        self.path, self.values = path, read_object(path) if values is None else values

    def __getitem__(self, key: str) -> Any:
        """Returns the value; None if it is missing."""
        return self.values.get(key)

    def check(self, expected: Mapping[str, Any], aliases: Mapping[str, str]) -> None:
        """Refuses options with another value than the supported one, and two names of an option with different values.

        Raises:
            ConfigError: there is such an option.
        """
        for key, value in expected.items():
            if self.values.get(key, value) != value:
                self.refuse(key, repr(value))
        for alias, key in aliases.items():
            if self.values.get(alias, self[key]) != self[key]:
                self.refuse(alias, f"{key}, which is {self[key]!r:.20}")

    def choice(self, key: str, *expected: Any) -> Any:
        """Returns a value that must be one of several; the first is the default."""
        value = self.values.get(key, expected[0])
        if value not in expected:
            self.refuse(key, " or ".join(map(repr, expected)))
        return value

    def refuse(self, key: str, expected: str) -> None:
        """Raises a ConfigError for the value of a key."""
        found = repr(self[key])[:60] if key in self.values else "missing"
        raise ConfigError(f"{self.path}: {key} is {found}, expected {expected}; this model cannot be imported")

    def positive_int(self, key: str, least: int = 1) -> int:
        """Returns a whole number."""
        return int(self._value(key, Annotated[int, Range(least, 2**24)]))

    def flag(self, key: str, *, default: bool) -> bool:
        """Returns true or false."""
        return bool(self._value(key, bool, default))

    def rate(self, key: str, default: float) -> float:
        """Returns a share in [0, 1)."""
        return float(self._value(key, Rate, default))

    def _value(self, key: str, hint: Any, default: Any = None) -> Any:
        value = self.values.get(key, default)
        if not fits(value, hint):
            self.refuse(key, in_words(hint, value))
        return value


def refuse_other_kind(path: Path, *, zip_is_fine: bool = False) -> None:
    """Refuses a file whose content does not match its name, such as a pointer from a clone without Git LFS.

    Raises:
        CheckpointError: it is such a file.
    """
    with suppress(OSError), open_file(path) as file:  # an unreadable file is reported where it is read
        head = file.read(512)
        if (found := other_kind(head)) and not (zip_is_fine and head.startswith((b"PK", b"\x80\2"))):
            raise CheckpointError(f"{path} is {found}")


def read_object(path: Path) -> dict[str, Any]:
    """Reads an object from a JSON file.

    Raises:
        CheckpointError: the file cannot be read, or holds something else.
    """
    refuse_other_kind(path)
    try:
        value = read_json(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CheckpointError(f"{path} cannot be read as JSON ({reason}); use another file") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, expected a JSON object; use another file")
    return value


def read_vocabulary(path: Path, rows: int) -> dict[str, int]:
    """Reads the ids by word from a ``vocab.json``: the indices of all ``rows`` of the model's matrices.

    Raises:
        CheckpointError: the file cannot be read, has other ids, or has a word with a line end.
    """
    words = read_object(path)
    if (odd := next((word for word in words if "\n" in word), None)) is not None:
        raise CheckpointError(f"{path} has the word {odd!r:.60}, expected words without line ends; use another file")
    if not all(type(token) is int for token in words.values()) or sorted(words.values()) != list(range(rows)):
        raise CheckpointError(
            f"{path} has {len(words)} entries, expected each id from 0 to {rows - 1} once, the number in {CONFIG}; "
            "use files that belong together"
        )
    return words
