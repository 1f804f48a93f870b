"""Public names: what packages export by their ``__init__.pyi``. All other names are private and may move."""

import re
from importlib import import_module
from typing import Any

PACKAGES = (
    "models",
    "search",
    "data",
    "text",
    "training",
    "evaluation",
    "export",
    "report",
    "runtime",
    "testing",
    "lab",
)
MODULES = ("commands", "errors", "files", "machine", "option", "ranges")  # modules that are public as a whole
ROOMS = (  # what our own extras and benchmarks also use, without a promise
    "app",  # what commands are made of
    "process",  # how a command ends, what to install
    "suggestions",  # what a word may mean
    *(f"{package}.parts" for package in ("data", "evaluation", "report", "runtime", "search", "text", "training")),
)
_INNER_NAME = re.compile(rf"softsearch\.({'|'.join(PACKAGES)})\.\w+(?:\.\w+)*\.(\w+)")


def public_name(name: str) -> str:
    """Returns the public form of the full name of a class or a function, or the name itself if it is not public.

    ``softsearch.models.cells.GRUCell`` is ``softsearch.models.GRUCell``, whichever module of the package it is in, so
    that old checkpoints and configs are read after a module was moved.
    """
    inner = _INNER_NAME.fullmatch(name)
    if inner is None or inner[2] not in import_module(f"softsearch.{inner[1]}").__all__:
        return name
    return f"softsearch.{inner[1]}.{inner[2]}"


def with_public_names(config: Any) -> Any:
    """Returns plain values, as from YAML, with the public names of their ``_target_``s."""
    if isinstance(config, list):
        return [with_public_names(value) for value in config]
    if not isinstance(config, dict):
        return config
    return {
        key: public_name(value) if key == "_target_" and isinstance(value, str) else with_public_names(value)
        for key, value in config.items()
    }
