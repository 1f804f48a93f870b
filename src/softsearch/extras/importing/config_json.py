"""Options and vocabularies in JSON files of Hugging Face folders."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from softsearch.errors import CheckpointError, ConfigError
from softsearch.files import open_file
from softsearch.ranges import Range, Rate, fits, in_words
from softsearch.text.corpus import other_kind
from softsearch.text.plain_values import read_json

CONFIG = "config.json"


class Config:
    """Values of a ``config.json``, each checked where it is read.

    Args:
        path: the file.
        values: what it holds, if it is not a JSON file.

    Raises:
        CheckpointError: it is not a JSON object.
    """

    def __init__(self, path: Path, values: dict[str, Any] | None = None) -> None:
        self.path, self.values = path, read_object(path) if values is None else values

    def __getitem__(self, key: str) -> Any:
        """The value; None if it is missing."""
        return self.values.get(key)

    def check(self, expected: Mapping[str, Any], aliases: Mapping[str, str]) -> None:
        """Refuses options of which the lab has one value only, and two names of one option with different values.

        Raises:
            ConfigError: there is one.
        """
        for key, value in expected.items():
            if self.values.get(key, value) != value:
                self.refuse(key, repr(value))
        for alias, key in aliases.items():
            if self.values.get(alias, self[key]) != self[key]:
                self.refuse(alias, f"{key}, which is {self[key]!r:.20}")

    def choice(self, key: str, *expected: Any) -> Any:
        """A value that is one of several; the first is that of files without the key."""
        value = self.values.get(key, expected[0])
        if value not in expected:
            self.refuse(key, " or ".join(map(repr, expected)))
        return value

    def refuse(self, key: str, expected: str) -> None:
        """Raises a ConfigError for the value of a key."""
        found = repr(self[key])[:60] if key in self.values else "missing"
        raise ConfigError(f"{self.path}: {key} is {found}, expected {expected}; this model cannot be imported")

    def positive_int(self, key: str, least: int = 1) -> int:
        """A whole number."""
        return int(self._value(key, Annotated[int, Range(least, 2**24)]))

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        return bool(self._value(key, bool, default))

    def rate(self, key: str, default: float) -> float:
        """A share in [0, 1)."""
        return float(self._value(key, Rate, default))

    def _value(self, key: str, hint: Any, default: Any = None) -> Any:
        value = self.values.get(key, default)
        if not fits(value, hint):
            self.refuse(key, in_words(hint, value))
        return value


def refuse_other_kind(path: Path, *, zip_is_fine: bool = False) -> None:
    """Refuses a file that is not what its name says, such as the pointer that a clone without Git LFS has.

    Raises:
        CheckpointError: it is one.
    """
    with suppress(OSError), open_file(path) as file:  # whoever reads the file says that it cannot be read
        head = file.read(512)
        if (found := other_kind(head)) and not (zip_is_fine and head.startswith(b"PK")):
            raise CheckpointError(f"{path} is {found}")


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        CheckpointError: the file cannot be read, or holds something else.
    """
    refuse_other_kind(path)
    try:
        value = read_json(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CheckpointError(f"{path} cannot be read as JSON ({reason}); take another file") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, expected an object by name; take another file")
    return value


def read_vocabulary(path: Path, rows: int) -> dict[str, int]:
    """The ids by word of a ``vocab.json``: the numbers of all ``rows`` of the model's matrices.

    Raises:
        CheckpointError: the file cannot be read, or has other ids, or a word with a line end.
    """
    words = read_object(path)
    if (odd := next((word for word in words if "\n" in word), None)) is not None:
        raise CheckpointError(f"{path} has the word {odd!r:.60}, expected words of lines; take another file")
    if not all(type(token) is int for token in words.values()) or sorted(words.values()) != list(range(rows)):
        raise CheckpointError(
            f"{path} has {len(words)} entries, expected each id from 0 to {rows - 1} once, as many as {CONFIG} says; "
            "take files that go together"
        )
    return words
