"""translate-toolkit, imported when a catalog is opened: it is optional."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from softsearch.errors import ConfigError
from softsearch.process import how_to_install


def module(name: str) -> Any:
    """Returns a module of translate-toolkit, such as ``storage.pypo``.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module(f"translate.{name}")
    except ImportError as error:
        raise ConfigError(f"message catalogs need translate-toolkit: {how_to_install('localise')}") from error


def storage(name: str) -> Any:
    """Returns a class of files, such as ``pypo:pofile``; raises as ``module``."""
    in_module, _, of_class = name.partition(":")
    return getattr(module(f"storage.{in_module}"), of_class)


def multistring(forms: Sequence[str]) -> Any:
    """Returns the forms of a plural."""
    return module("misc.multistring").multistring(list(forms))
