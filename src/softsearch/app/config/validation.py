"""Validates configs (misspelt and missing keys, wrong types, numbers out of range) and builds objects from them.

Before anything is built, every node is bound to the signature of the class or function in its ``_target_``, and the
options of a command to their dataclass. Annotations define what is allowed: types, and ``softsearch.ranges``.
"""

import inspect
import logging
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar, Union

from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from softsearch.app.config.options import Part, Parts, Section, library_hints
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.ranges import fits, in_words

log = logging.getLogger(__name__)
_MARKS = ("_target_", "_partial_")  # keys of a node that are not arguments
_EXAMPLES = {  # of keys that new users need
    "ckpt": "for example ckpt=logs/train/DATE, the folder of a run",
    "out": "for example out=exports/NAME",
    "runs": "for example runs='logs/train/*'",
    "claim": "for example claim=search_curve",
    "data.train": "for example data.train='[train.en,train.de]'",
    "data.val": "for example data.val='[val.en,val.de]', or data.val=2000 to split it off the training text",
    "data.src": "for example data.src=1 data.tgt=2 for the first two columns, or the columns' names",
    "data.tgt": "for example data.src=1 data.tgt=2 for the first two columns, or the columns' names",
}
_Options = TypeVar("_Options")


def plain(config: DictConfig, unresolved: Collection[str] = ()) -> dict[str, Any]:
    """Returns the config as plain values, resolved except in the sections ``unresolved``.

    Raises:
        ConfigError: a value is missing or refers to nothing.
    """
    try:
        return {
            str(key): OmegaConf.to_container(value, resolve=key not in unresolved, throw_on_missing=True)
            if OmegaConf.is_config(value)
            else value
            for key, value in config.items()
        }
    except OmegaConfBaseException as error:
        # The error of one of our resolvers.
        if own := str(error).partition("ConfigError raised while resolving interpolation: ")[2]:
            raise ConfigError(own.splitlines()[0]) from error
        key = error.full_key or "the config"
        if isinstance(error, MissingMandatoryValue):
            raise ConfigError(f"{key} is required; {_EXAMPLES.get(key, f'set {key}=VALUE')}") from error
        raise ConfigError(f"{key}: {str(error).splitlines()[0]}; set it") from error


def flatten(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the dotted keys and the values of nested mappings, sections before their contents."""
    for key, value in node.items():
        inner = f"{path}.{key}" if path else str(key)
        yield inner, value
        if isinstance(value, Mapping):
            yield from flatten(value, inner)


def read_options(config: DictConfig, options: type[_Options]) -> _Options:
    """Checks the config of a command and returns it as ``options``; groups stay nodes, for ``build``.

    Raises:
        ConfigError: with the key, its value, what was expected, and the nearest existing key.
    """
    hints = _hints(options)
    groups = [name for name, hint in hints.items() if hint in (Part, Parts, Part | None)]
    values = plain(config, unresolved=groups)  # a group may ask for the machine's devices, which needs PyTorch
    bound = _bind(options, values, "", name=options.__name__.lower())
    return options(**bound | {name: config[name] for name in groups if name in config})


def check(node: Any, path: str, given: Iterable[str] = ()) -> None:
    """Binds ``node`` and all nodes in it to the signatures of their targets.

    Args:
        node: plain values, as from YAML.
        path: the node's key, for messages.
        given: names of further arguments that will be passed to the node's target.

    Raises:
        ConfigError: with the key, its value, what was expected, and the nearest existing key.
    """
    if isinstance(node, Mapping):
        for key, value in node.items():
            check(value, f"{path}.{key}" if path else str(key))
        if "_target_" in node:
            _bind(target_of(node, path), node, path, given)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            check(value, f"{path}[{index}]")


def build(node: DictConfig | None, **extra: Any) -> Any:
    """Builds the object described by a config node; ``extra`` are arguments that YAML cannot hold.

    The node may name anything that can be imported, because the user wrote it. The config of a loaded file goes through
    ``softsearch.app.config.allowed_classes`` instead.

    Raises:
        ConfigError: the node does not fit its constructor (see ``check``), or the constructor refuses its options.
    """
    if node is None:
        return None
    return construct(OmegaConf.to_container(node, resolve=True), str(node._get_full_key(None)), **extra)


def construct(node: Any, path: str, **extra: Any) -> Any:
    """Checks and builds the objects described by a node of plain values; a node is bound before its contents.

    Hydra's ``instantiate`` is not used: it checks its targets again at every call of a partial, wraps all errors, and
    its list of allowed targets could only repeat the names in the node.

    Raises:
        ConfigError: see ``build``.
    """
    if isinstance(node, list):
        return [construct(value, f"{path}[{index}]") for index, value in enumerate(node)]
    if not isinstance(node, Mapping):
        return node
    target = target_of(node, path) if "_target_" in node else None
    if target is not None:
        _bind(target, node, path, extra)
    ours = library_hints(target).keys() - (_parameters(target) or {}).keys() if target is not None else ()
    options = {key: construct(node[key], f"{path}.{key}") for key in node if key not in (*_MARKS, *ours)} | extra
    if target is None:
        return options
    if node.get("_partial_"):
        return partial(target, **options)
    try:
        return target(**options)
    except (SoftsearchError, AssertionError, AttributeError, NameError, LookupError):  # our own, or a bug
        raise
    except Exception as error:
        name = getattr(target, "__name__", target)
        raise ConfigError(f"{path}: {name} refuses its options: {str(error).strip()}; change them") from error


def nearest(word: str, names: Iterable[str], others: Mapping[str, list[str]] | None = None) -> str:
    """Suggests what a word may mean, or else lists the first parts of all names; for the end of a message."""
    from softsearch.suggestions import did_you_mean  # only a mistake needs it

    names = sorted(names)
    tops = dict.fromkeys(name.partition(".")[0] for name in names)
    return did_you_mean(word, names, others) or f"there are: {', '.join(tops) or 'none'}"


def target_of(node: Mapping[str, Any], path: str) -> Callable[..., Any]:
    """Returns the class or function that a node names.

    Raises:
        ConfigError: there is none with that name.
    """
    target = str(node["_target_"])
    try:
        function: Any = imported(target)
    except Exception as error:
        package = target.partition(".")[0]
        advice = "check its name"
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            advice = f"pip install -e . in the folder of {package}, or set PYTHONPATH to the folder that contains it"
        raise ConfigError(f"{path}._target_ is {target!r}, which cannot be imported ({error}); {advice}") from error
    if not callable(function):
        raise ConfigError(f"{path}._target_ is {target!r}, a {type(function).__name__}, expected a class or a function")
    return function


def imported(target: str) -> Any:
    """Imports the object with a full name; its module may be in the current folder.

    A loaded file can name only classes that are ours or trusted (see ``softsearch.app.config.allowed_classes``).
    """
    try:
        return resolve_name(target)
    except ModuleNotFoundError as error:
        here = Path.cwd()
        is_here = any((here / f"{error.name}{end}").exists() for end in (".py", "/__init__.py"))
        if error.name != target.partition(".")[0] or not is_here or str(here) in sys.path:
            raise
        sys.path.append(str(here))  # last, so that it hides no package
        return resolve_name(target)


def drop_options_of_replaced(config: DictConfig, words: Iterable[str]) -> None:
    """Removes the options that a typed ``_target_`` does not take from its node.

    Args:
        config: the config of a command.
        words: the words as typed; options among them stay, and are refused later if they do not fit.
    """
    typed = [word.lstrip("+").partition("=")[0] for word in words]
    for path in (key.removesuffix("._target_") for key in typed if key.endswith("._target_")):
        node = OmegaConf.select(config, path)
        if not isinstance(node, DictConfig):
            continue
        parameters = _parameters(target := target_of(node, path))
        if parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            continue
        given = {key.removeprefix(f"{path}.").partition(".")[0] for key in typed if key.startswith(f"{path}.")}
        dropped = [str(key) for key in node if key not in (*_MARKS, *parameters, *given)]
        with open_dict(config):
            for key in dropped:
                del node[key]
        if dropped:
            name = getattr(target, "__name__", target)
            log.info("%s: left out %s, which %s does not take", path, ", ".join(dropped), name)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # some C functions have no signature
        return None


def _bind(
    function: Callable[..., Any], node: Mapping[str, Any], path: str, given: Iterable[str] = (), name: str = ""
) -> dict[str, Any]:
    """Checks the arguments of a node, and returns them as objects of their annotations."""
    name = name or getattr(function, "__name__", str(function))
    prefix = f"{path}." if path else ""
    parameters = _parameters(function)
    if parameters is None:
        return {}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())  # and checks them itself
    keys = [key for key in node if key not in _MARKS]
    for key in keys:
        if key not in parameters and not takes_any and key not in library_hints(function):
            raise ConfigError(f"{prefix}{key} is not an option of {name}: {nearest(key, parameters)}")
    if not isinstance(node.get("_partial_", False), bool):
        raise ConfigError(f"{prefix}_partial_ is {node['_partial_']!r}, expected true or false; change it")
    if not node.get("_partial_"):
        named = (p for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
        missing = [p.name for p in named if p.default is p.empty and p.name not in given and p.name not in node]
        if missing:
            raise ConfigError(f"{prefix}{missing[0]} is missing, but {name} needs it; set it")
    hints = _hints(function)
    return {key: _checked(f"{prefix}{key}", node[key], hints.get(key, Any)) for key in keys}


def _checked(path: str, value: Any, hint: Any) -> Any:
    """Returns a value as an object of its annotation; nodes of classes stay nodes until they are built."""
    if isinstance(value, Mapping) and typing.get_origin(hint) in (dict, Mapping):
        return {key: _checked(f"{path}.{key}", inner, typing.get_args(hint)[1]) for key, inner in value.items()}
    arguments = typing.get_args(hint)
    if isinstance(value, list) and arguments and is_section(arguments[0]):
        return tuple(_checked(f"{path}[{index}]", inner, arguments[0]) for index, inner in enumerate(value))
    if isinstance(value, Mapping) and is_section(hint):
        return hint(**_bind(hint, value, path, name=path))
    if not fits(value, hint):
        expected = f"expected {in_words(hint, value).replace(f', a {DictConfig.__name__}', '')}; change it"
        if is_section(hint):
            expected = expected_section(path, hint, value)
        elif isinstance(value, str) and fits([value], hint):
            expected = expected.replace("; change it", f"; write {path}='[{value}]'")
        elif value is True and (names := [name for each in arguments for name in typing.get_args(each)]):
            expected = expected.replace("; change it", f"; write {path}={names[0]}")
        elif value is False and fits(None, hint):
            expected = expected.replace("; change it", f"; write {path}=null")
        raise ConfigError(f"{path} is {value!r} ({type(value).__name__}), {expected}")
    try:
        return _typed(value, hint)
    except RuntimeError as error:  # ~ without a home folder
        raise ConfigError(f"{path}={value}: {error} set {path}=PATH") from error


def expected_section(path: str, section: type[Section], value: Any) -> str:
    """Returns the end of a message: a section was expected, and which of its options the value may be meant for."""
    keys, hints = list(inspect.signature(section).parameters), _hints(section)
    meant = next((key for key in keys if fits(value, hints[key])), None)
    typed = f"'[{','.join(map(str, value))}]'" if isinstance(value, list) else value
    write = f"{keys[0]}=VALUE" if meant is None else f"{meant}={typed}"
    return f"expected a section of {', '.join(keys)}; write {path}.{write}"


def is_section(hint: Any) -> bool:
    """Tells whether an annotation is a section of options."""
    return inspect.isclass(hint) and issubclass(hint, Section)


def _typed(value: Any, hint: Any) -> Any:
    """Returns a value that fits, with paths as objects."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (Union, types.UnionType):
        return _typed(value, next(argument for argument in arguments if fits(value, argument)))
    if hint is Path:
        return Path(value).expanduser()
    if isinstance(value, list) and typing.get_origin(hint) in (list, tuple):
        return typing.get_origin(hint)(_typed(inner, arguments[0]) for inner in value)
    return value


def _hints(function: Any) -> Mapping[str, Any]:
    further = library_hints(function)
    try:
        annotated = function.__init__ if inspect.isclass(function) else function
        return {**typing.get_type_hints(annotated, include_extras=True), **further}
    except (NameError, TypeError):  # a library's annotation that exists for type checkers only
        return further
