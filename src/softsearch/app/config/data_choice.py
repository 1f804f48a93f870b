"""The data source of files that are named without one: ``data.train=a.tsv`` is a table."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig

from softsearch.app.config.composition import composed, value_of

_COMMANDS = ("train", "prepare", "count")
_CHOOSES = re.compile(r"[+~]*data(@\S*)?=")
_OPTION = re.compile(r"[+~]*[^=]*\.|-")


def with_data_choice(command: str, words: Sequence[str], notes: list[str]) -> list[str]:
    """Returns the words with the choice of ``data`` that fits the typed files, where none is typed; notes say so.

    Where an experiment chooses data that has ``data.train`` itself, that stays.
    """
    if command not in _COMMANDS or any(map(_CHOOSES.match, words)):
        return [*words]
    word, choice = next(((word, choice) for word in words if (choice := _choice_of(word))), ("", ""))
    if not choice or _has_files(command, words):
        return [*words]
    notes.append(f"data={choice}, because of {word}")
    return [*words, f"data={choice}"]


def _choice_of(word: str) -> str:
    """The choice that a word shows, or ""."""
    key, _, _ = word.lstrip("+").partition("=")
    if key == "data.hub":
        return "huggingface"
    if key != "data.train":
        return ""
    value: Any = None
    with suppress(HydraException):  # which the check of the command line reports
        value = value_of(word)
    if isinstance(value, str):
        from softsearch.data.corpora.rows import is_table

        return "table" if is_table(value) else "parallel"
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list):
        first = first[0] if first else None
    is_path = isinstance(first, str)
    return ("features" if Path(str(first)).suffix == ".npy" else "parallel") if is_path else ""


def _has_files(command: str, words: Sequence[str]) -> bool:
    """Whether the data that an experiment or a config of the user's chooses has ``data.train``."""
    choosing = [word for word in words if not _OPTION.match(word)]
    with suppress(HydraException):
        config = composed(command, *choosing)
        return isinstance(config.get("data"), DictConfig) and "train" in config.data
    return True  # words that cannot be composed are reported as they are
