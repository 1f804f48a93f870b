"""Flags made from the options of a dataclass (``softsearch.option``)."""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from softsearch.option import CheckedOptions, is_list, kind_of, option
from softsearch.ranges import fits, in_words

Flags = dict[str, tuple[dict[str, Any], str]]  # flag -> settings of argparse, and help


def flag_of(name: str) -> str:
    """Returns how the option of a name is typed."""
    return "--" + name.replace("_", "-")


def make_flags(hints: Mapping[str, Any], default: str = "") -> Flags:
    """The flags of options, given their annotations by name; ``default`` says in the help what is otherwise done."""
    return {flag_of(name): make_flag(hint, default) for name, hint in hints.items()}


def own_flags(search: type[CheckedOptions], *without: str) -> Flags:
    """The flags of the options that a search's class adds to those of its base class."""
    names = (name for name in search.__annotations__ if name not in without)
    return make_flags({name: search.hints[name] for name in names}, "the bundle's")


def stage_flags(stages: Iterable[type[CheckedOptions]]) -> Flags:
    """The flags of the options of stages."""
    return make_flags({name: hint for stage in stages for name, hint in stage.hints.items()})


def add_flags(add: Callable[..., object], flags: Flags) -> None:
    """Adds flags by the method ``add_argument`` of a parser or a group of one."""
    for flag, (settings, text) in flags.items():
        add(flag, **settings, help=text)


def make_flag(hint: Any, default: str = "") -> tuple[dict[str, Any], str]:
    """The settings of argparse and the help of an option, from its annotation; without the flag the value is None."""
    (kind, _), told = kind_of(hint), option(hint)
    text = told.help.replace("%", "%%") + (f" (default: {default})" if default else "")
    if kind is bool:
        return {"action": "store_const", "const": True}, text
    if get_origin(kind) is Literal:
        return {"choices": get_args(kind)}, text
    if kind in (int, float):
        return {"type": number(hint), "metavar": told.metavar or ("N" if kind is int else "X")}, text
    settings = {"type": kind, "metavar": told.metavar or ("FILE" if kind is Path else "TEXT")}
    if is_list(hint):
        return settings | {"action": "append", "default": []}, f"{text}; repeatable"
    return settings, text


def number(hint: Any) -> Callable[[str], Any]:
    """A ``type`` for argparse: reads a number that fits the annotation."""
    kind, _ = kind_of(hint)

    def read(text: str) -> Any:
        plain = re.fullmatch(r"\d{1,19}" if kind is int else r"\d+(\.\d*)?|\.\d+", text, re.ASCII)
        if not plain or not fits(value := kind(text), hint):
            raise argparse.ArgumentTypeError(f"{text!r} is not {in_words(hint)}")
        return value

    return read
