"""Converts command lines as people type them into the words that Hydra reads."""

import re
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig

from softsearch.app.config.composition import CONFIGS, composed, expand_shorthands, own_folders, quoted, value_of
from softsearch.errors import ConfigError
from softsearch.files import MANIFEST

_POSITIONAL = {  # command -> the keys of words without =, in order; a key that ends with [] takes all remaining words
    "evaluate": ("ckpt[]",),
    "tune": ("ckpt[]",),
    "score": ("ckpt", "src", "tgt"),
    "export": ("ckpt", "out"),
    "dictionary": ("ckpt", "out"),
    "average": ("run",),
    "compare": ("runs[]",),
    "reproduce": ("claim[]",),
    "history": ("models[]",),
    "sweep": ("sweep",),
}
_OF_LISTS = {"history": {"model": "models"}, "compare": {"run": "runs"}, "reproduce": {"claims": "claim"}}
_ALWAYS_LISTS = ("models", "test")
_WITH_VALUE = (
    "--cfg",
    "-c",
    "--package",
    "-p",
    "--config-path",
    "-cp",
    "--config-name",
    "-cn",
    "--config-dir",
    "-cd",
    "--experimental-rerun",
)  # Hydra's flags
_WITHOUT_VALUE = (
    "--help",
    "-h",
    "--hydra-help",
    "--version",
    "--resolve",
    "--run",
    "-r",
    "--multirun",
    "-m",
    "--shell-completion",
    "-sc",
    "--info",
    "-i",
)
_SYSTEMS = ("evaluate", "tune", "score")  # commands that read checkpoints, bundles and a text
_WITH_DATA = ("train", "prepare", "count")
_CHOOSES_DATA = re.compile(r"[+~]*data(@\S*)?=")
_OPTION = re.compile(r"[+~]*[^=]*\.|-")
_PLAIN = re.compile(r"[\w.+-]{1,40}")  # a value that can be part of a folder name
_HOME = re.compile(r"(^|=|[\[,]\s*)~(?=/)")  # where a word, a value or an item begins; shells expand the first alone


def as_meant(command: str, words: Sequence[str]) -> list[str]:
    """Returns the words with flags first, as Hydra expects, and words without = as values of their keys.

    Raises:
        ConfigError: there are too many words without =, or the key of one is typed too.
    """
    home = str(Path("~").expanduser())
    if re.fullmatch(r"[\w./+@-]+", home, re.ASCII):  # needs no quotes
        words = [_HOME.sub(rf"\g<1>{home}", word) for word in words]
    flags, options = _flags_and_options(expand_shorthands(words))
    if not {"--help", "-h"}.isdisjoint(flags):
        return [*flags, *(option for option in options if not _is_system(option))]
    is_sweep = not {"--multirun", "-m"}.isdisjoint(flags)
    return [*flags, *_with_keys(command, options, is_sweep=is_sweep)]


def shell_command(words: Iterable[str]) -> str:
    """Returns a command as typed in a shell, with double quotes around words that contain single ones."""

    def word_at_shell(word: str) -> str:
        key, equals, value = word.partition("=")
        if equals and re.fullmatch(r"[\w./+@-]+", key, re.ASCII):  # data.train='[a.en,a.fr]', as in the docs
            return key + equals + (word_at_shell(value) if value else "")
        if re.fullmatch(r"[\w@%+=:,./-][\w@%+=:,./~-]*", word, re.ASCII):
            return word
        if "'" not in word:
            return f"'{word}'"
        return '"' + re.sub(r'([\\$`"])', r"\\\1", word) + '"'

    return " ".join(map(word_at_shell, words))


def names_of_jobs(overrides: Iterable[Override]) -> list[str]:
    """Returns the words that name the folders of a sweep's jobs (``-m``) after the options that differ.

    Values that are too long for a name, such as paths, are left out.
    """
    keys = {str(override.input_line).partition("=")[0]: override for override in overrides}
    if "hydra.sweep.subdir" in keys:
        return []
    shown = [
        key
        for key, override in keys.items()
        if override.is_sweep_override() and all(map(_PLAIN.fullmatch, override.sweep_string_iterator()))
    ]
    if not shown:
        return ["hydra.sweep.subdir=${hydra.job.num}"]
    left_out = ",".join(quoted(key) for key in keys if key not in shown)
    return [f"hydra.job.config.override_dirname.exclude_keys=[{left_out}]"]


def hydras_parser() -> ArgumentParser:
    """Returns the parser of Hydra's own flags; all other words are ``overrides``."""
    parser: ArgumentParser = get_args_parser()
    parser.allow_abbrev = False  # otherwise --experiment would mean --experimental-rerun
    return parser


def _flags_and_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    flags, options, rest = list[str](), list[str](), [*words]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            options.append(word)
            continue
        flags.append(word)
        unknown = word not in _WITHOUT_VALUE and "=" not in word and rest and not {"-", "="} & {rest[0][:1], *rest[0]}
        if rest and (word in _WITH_VALUE or unknown):
            flags.append(rest.pop(0))
    return flags, options


def _with_keys(command: str, options: Sequence[str], *, is_sweep: bool) -> list[str]:
    """Returns the options, with words without = as values of the command's keys; A,B are two of them in a sweep."""
    renamed = _OF_LISTS.get(command, {})
    read, values = list[str](), dict[str, list[str]]()
    for option in options:
        key, equals, value = option.partition("=")
        if equals and key in renamed and not value.startswith("["):
            values.setdefault(renamed[key], []).extend(value.split(","))
        elif (equals and not _is_path(option)) or option[:1] in ("", "~") or command not in _POSITIONAL:
            read.append(option)
        else:
            values.setdefault(_key_of(command, option, values), []).append(option)
    for key, given in values.items():
        if same := [word for word in read if word.startswith(f"{key}=")]:
            raise ConfigError(f"{' '.join(given)} and {same[0]} both set {key}; remove one of them")
    named = []
    for key, given in values.items():
        are_jobs = is_sweep and len(given) == 1 and "," in given[0] and not _is_path(given[0])
        value = ",".join(map(quoted, given[0].split(","))) if are_jobs else _as_value(key, given)
        named.append(f"{key}={value}")
    return [*named, *read]


def _key_of(command: str, word: str, taken: Iterable[str]) -> str:
    path = Path(word)
    if command in _SYSTEMS and (path / MANIFEST).is_file():
        return "bundle"
    if command == "evaluate" and path.is_file() and path.suffix != ".ckpt":
        return "test"
    for key in _POSITIONAL[command]:
        if key.endswith("[]") or key not in taken:
            return key.removesuffix("[]")
    keys = " ".join(f"{key}=..." for key in _POSITIONAL[command])
    raise ConfigError(f"{word!r} is one word too many; expected softsearch {command} {keys}")


def _is_path(word: str) -> bool:
    with suppress(OSError):  # the word is too long for a path
        return Path(word).exists()
    return False


def _is_system(word: str) -> bool:
    """Tells whether a word is a checkpoint, or the folder of a run or a bundle, and not a key to explain."""
    path = Path(word)
    return _is_path(word) and (path.suffix == ".ckpt" or (path / "checkpoints").is_dir() or (path / MANIFEST).is_file())


def _as_value(key: str, given: Sequence[str]) -> str:
    values = [quoted(value) for value in given]
    return values[0] if len(values) == 1 and key not in _ALWAYS_LISTS else f"[{','.join(values)}]"


def with_data_choice(command: str, words: Sequence[str], notes: list[str]) -> list[str]:
    """Returns the words with the choice of ``data`` that fits the typed files, unless one is typed; adds a note.

    Nothing is added if an experiment chooses data that has ``data.train`` itself.
    """
    _, options = _flags_and_options(words)
    if command not in _WITH_DATA or any(map(_CHOOSES_DATA.match, options)):
        return [*words]
    word, choice = next(((word, choice) for word in options if (choice := _data_choice(_first_job(word)))), ("", ""))
    if not choice or _has_data(command, options):
        return [*words]
    notes.append(f"data={choice}, because of {word}")
    return [*words, f"data={choice}"]


def _data_choice(word: str) -> str:
    """Returns the choice of ``data`` that a word implies, or ""."""
    key, _, _ = word.lstrip("+").partition("=")
    if key == "data.hub":
        return "huggingface"
    if key != "data.train":
        return ""
    value: Any = None
    with suppress(HydraException):  # reported by the check of the command line
        value = value_of(word)
    if isinstance(value, str):
        from softsearch.data.corpora.rows import is_table

        return "table" if is_table(value) else "parallel"
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list):
        first = first[0] if first else None
    is_path = isinstance(first, str)
    return ("features" if Path(str(first)).suffix == ".npy" else "parallel") if is_path else ""


def _has_data(command: str, words: Sequence[str]) -> bool:
    """Tells whether the data chosen by an experiment or a user's config has ``data.train``."""
    choosing = [_first_job(word) for word in words if not _OPTION.match(word) and _is_group(word)]
    with suppress(HydraException):
        config = composed(command, *choosing)
        return isinstance(config.get("data"), DictConfig) and "train" in config.data
    return True  # words that cannot be composed are reported unchanged


def _is_group(word: str) -> bool:
    """Tells whether a word chooses a config; other words, misspelt ones included, do not change the data."""
    group = re.split("[@=]", word.lstrip("+~"), maxsplit=1)[0]
    return any((folder / group).is_dir() for folder in (CONFIGS, *own_folders()))


def _first_job(word: str) -> str:
    """Returns an option with the value of a sweep's first job: ``model=rnn`` for ``model=rnn,gru``."""
    with suppress(HydraException):  # reported by the check of the command line
        (override,) = OverridesParser.create().parse_overrides([word])
        if override.is_sweep_override():
            return f"{word.partition('=')[0]}={next(iter(override.sweep_string_iterator()))}"
    return word
