"""From YAML to objects: every node is bound to its constructor's signature before anything is built.

A misspelt key, a missing one or a value of the wrong type is an error that names the key, in YAML as on the command
line, and nothing but our own classes and a few libraries' can be called.
"""

import difflib
import inspect
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Union

import hydra.utils
from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from softsearch.errors import ConfigError, SoftsearchError

_OPTUNA = ("optuna.distributions.", "optuna.pruners.", "optuna.samplers.")
ALLOWED = ("softsearch.", "torch.optim.", "lightning.pytorch.", *_OPTUNA)
_HYDRA_KEYS = ("_target_", "_partial_")


def build(node: DictConfig | None, **extra: Any) -> Any:
    """Builds the object that a config node describes; ``extra`` are arguments that no YAML can hold.

    Raises:
        ConfigError: the node does not fit its constructor (see :func:`check`).
    """
    if node is None:
        return None
    check(OmegaConf.to_container(node, resolve=True), str(node._get_full_key(None)), given=extra)
    try:
        return hydra.utils.instantiate(node, _convert_="all", **extra)
    except InstantiationException as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, SoftsearchError):
            cause = cause.__cause__
        raise cause or error from error


def plain(config: DictConfig) -> dict[str, Any]:
    """The config as plain values with everything resolved.

    Raises:
        ConfigError: a value is missing or refers to nothing.
    """
    try:
        resolved = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"{error.full_key or 'the config'}: {str(error).splitlines()[0]}; set it") from error
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


def check(node: Any, path: str, given: Iterable[str] = ()) -> None:
    """Binds ``node`` and all nodes in it to the signatures of what they name.

    Args:
        node: plain values, as from YAML.
        path: where the node stands, for messages.
        given: names of arguments that will be passed besides the node's own.

    Raises:
        ConfigError: names the key, what was found, what was expected, and the nearest key that there is.
    """
    if isinstance(node, Mapping):
        for key, value in node.items():
            check(value, f"{path}.{key}" if path else str(key))
        if "_target_" in node:
            _bind(node, path, set(given))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            check(value, f"{path}[{index}]")


def nearest(word: str, known: Iterable[str]) -> str:
    """A half sentence with the known word that ``word`` was probably meant to be, or with all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known) or 'none'}"


def _bind(node: Mapping[str, Any], path: str, given: set[str]) -> None:
    target = str(node["_target_"])
    if not target.startswith(ALLOWED):
        raise ConfigError(f"{path}._target_ is {target!r}, expected something of {', '.join(ALLOWED)}; change it")
    try:
        function = hydra.utils.get_object(target)
    except Exception as error:
        raise ConfigError(
            f"{path}._target_ is {target!r}, which cannot be imported ({error}); check its name"
        ) from error
    home = getattr(function, "__module__", None) or ""  # not always where the name led to: "softsearch.x.os.mkdir"
    if not f"{home}.".startswith(ALLOWED):
        raise ConfigError(f"{path}._target_ is {target!r}, expected something of {', '.join(ALLOWED)}; change it")
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return  # it checks its own arguments
    keys = [key for key in node if key not in _HYDRA_KEYS]
    for key in keys:
        if key not in parameters:
            raise ConfigError(
                f"{path}.{key} is not an option of {target.rpartition('.')[2]}: {nearest(key, _options(parameters))}"
            )
    if not node.get("_partial_"):
        missing = [n for n, p in parameters.items() if p.default is p.empty and n not in given and n not in node]
        if missing:
            raise ConfigError(f"{path}.{missing[0]} is missing: {target.rpartition('.')[2]} needs it; set it")
    hints = _hints(function)
    for key in keys:
        if not _fits(node[key], hints.get(key, Any)):
            raise ConfigError(
                f"{path}.{key} is {node[key]!r} ({type(node[key]).__name__}), expected {_say(hints[key])}; change it"
            )


def _options(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    return [name for name in parameters if name != "self"]


def _hints(function: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except (NameError, TypeError):  # a library's annotation that exists for type checkers only
        return {}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value can be meant by an annotation; what is not plain is left to the constructor."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, argument) for argument in arguments)
    if origin is Literal:
        return value in arguments
    if hint is None or hint is type(None):
        return value is None
    if hint is bool:
        return isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is str or hint is Path:
        return isinstance(value, str)
    if origin in (list, tuple):
        return isinstance(value, list)
    # Text or a number is no tensor and no object of any other class.
    return not (inspect.isclass(hint) and isinstance(value, str | int | float)) or hint in (object, complex)


def _say(hint: Any) -> str:
    """An annotation in words."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if typing.get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_say(argument) for argument in arguments)
    if hint is type(None):
        return "null"
    return {int: "a whole number", float: "a number", str: "text", bool: "true or false"}.get(hint, str(hint))
