"""Checks and builds the classes that a loaded file names.

A checkpoint may come from anybody. Its config may name softsearch's own models, data sources and metrics, none of which
opens, downloads or writes anything when it is built (metrics that would are left out by
``softsearch.app.systems.open.trained_metrics``), and classes that the user trusts: by the option
``trust``, by ``SOFTSEARCH_TRUST``, or by an installed package that lists them under the entry-point group
``softsearch.classes``, as our own extras do. All names are checked before any of them is imported, and no interpolation
is resolved. Only a checkpoint in the folder of a run (RUN/checkpoints next to RUN/config.yaml) may name files to read;
files in /proc and /sys are never opened (softsearch.files). The address of a server is never taken from a file.
Whatever users type or write in YAML goes through ``softsearch.app.config.validation.build`` and may name anything.
"""

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from softsearch.app.config.validation import check, construct, imported
from softsearch.data.corpora.base import UnreadPath
from softsearch.doors import public_name
from softsearch.errors import CheckpointError, ConfigError, summarize

ENTRY_POINTS = "softsearch.classes"
_HOMES = {  # where the classes are defined that a file may name
    "model": ("softsearch.models",),
    "data": ("softsearch.data.corpora", "softsearch.text.filters"),
    "metric": ("softsearch.evaluation.metrics",),
}
_Key = Literal["model", "data", "metric"]
_TRUSTED: ContextVar[tuple[str, ...]] = ContextVar("trusted", default=())  # packages, modules and classes
_PATTERN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\.\*)?")
_FILES = ("train", "val", "test", "root")  # options of data sources that name files
_ADDRESSES = ("mirror",)
_HUB = "hub"  # option that names a data set to download


class UntrustedClassError(CheckpointError):
    """A file names a class of another package, which the user does not trust."""


def name_of(cls: type) -> str:
    """Returns the full name of a class, as written in ``_target_``: the public one, if there is one."""
    return public_name(_inner_name(cls))


def read_trust(typed: str | Sequence[str]) -> list[str]:
    """Returns the packages, modules and classes named by the option ``trust`` and by ``SOFTSEARCH_TRUST``.

    Raises:
        ConfigError: a name is not that of a package, or it belongs to Python itself or to softsearch.
    """
    names = [typed] if isinstance(typed, str) else list(typed)
    names += re.split(r"[\s,]+", os.environ.get("SOFTSEARCH_TRUST", "").strip("[] "))
    for name in filter(None, names):
        if not _PATTERN.fullmatch(name):
            raise ConfigError(f"trust is {name!r}, expected the names of packages; set trust='[mypackage.*]'")
        if not _may_be_trusted(name):
            raise ConfigError(f"trust is {name!r}, but it cannot name Python's own modules or softsearch; remove it")
    return [name.removesuffix(".*") for name in names if name]


@contextmanager
def trusting(names: Iterable[str]) -> Iterator[None]:
    """Lets files loaded in this context name these classes, or any class of these packages and modules."""
    token = _TRUSTED.set((*_TRUSTED.get(), *names))
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def installed_classes() -> dict[str, EntryPoint]:
    """Returns the classes and packages that installed packages list, by full name; imports none of them."""
    points = entry_points(group=ENTRY_POINTS)
    names = {".".join(filter(None, (point.module, point.attr))): point for point in points}
    return {name: point for name, point in names.items() if _may_be_trusted(name) or _is_of_extra(name)}


def to_be_trusted(config: Mapping[str, Any]) -> list[str]:
    """Returns the packages that a checkpoint with this resolved config needs in ``trust``, as they are typed."""
    own = [name for key in _HOMES for name, _ in _names_in(Path(), key, config.get(key))]
    allowed = (*(prefix for key in _HOMES for prefix in _own(key)), *installed_classes())
    return list(dict.fromkeys(f"{n.partition('.')[0]}.*" for n in own if not _allows(allowed, n)))


def build_from_file(path: Path, key: _Key, node: dict[str, Any], kind: type, **given: int) -> Any:
    """Builds the model, the data source or the metric that a file's config describes.

    Args:
        path: the file, for messages.
        key: the node's key in the config.
        node: the node in the file.
        kind: the expected class.
        given: further arguments: the vocabulary sizes of a model.

    Raises:
        UntrustedClassError: the node names a class that needs ``trust``.
        CheckpointError: the node names something else that is never allowed, or does not fit this version's classes.
    """
    _check_names(path, key, node)
    with _built_from(path, key):
        built = construct(_without_paths(node, _belongs_to_run(path)), key, **given)
    if not isinstance(built, kind):
        raise CheckpointError(f"{path}: {key} of its config is a {type(built).__name__}, expected a {kind.__name__}")
    return built


def check_allowed(path: Path, key: _Key, node: dict[str, Any], given: Collection[str]) -> None:
    """Checks a node without building it; raises the errors of ``build_from_file``."""
    _check_names(path, key, node)
    with _built_from(path, key):
        check(node, key, given=given)


def _check_names(path: Path, key: _Key, node: dict[str, Any]) -> None:
    """Refuses a node with a forbidden name; classes are imported afterwards, to see where they are defined."""
    names = dict(_names_in(path, key, node))
    others = _TRUSTED.get()
    if not all(_allows((*_own(key), *others), name) for name in names):
        others += tuple(installed_classes())
    _refuse_names(path, names, (*_own(key), *others))
    roots = (name.rpartition(".")[0] if _is_of_extra(name) else name.partition(".")[0] for name in others)
    homes = [*_HOMES[key], *roots]
    with _built_from(path, key):
        for name in names:
            _check_home(name, homes)


@contextmanager
def _built_from(path: Path, key: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a constructor may raise anything on unexpected values
        raise CheckpointError(
            f"{path}: {key} of its config cannot be built ({summarize(error)}); expected a checkpoint of "
            "softsearch train of this version: use another file, or train again"
        ) from error


def _names_in(path: Path, key: str, node: Any) -> Iterator[tuple[str, str]]:
    """Yields the names and keys of all classes in a node; refuses everything else that has a meaning for Hydra."""
    if isinstance(node, list):
        for index, value in enumerate(node):
            yield from _names_in(path, f"{key}[{index}]", value)
    if not isinstance(node, dict):
        return
    for name, value in node.items():
        inner = f"{key}.{name}"
        if name == "_target_" and isinstance(value, str) and _PATTERN.fullmatch(value):
            yield value, inner
        elif name.startswith("_") and not (name == "_partial_" and isinstance(value, bool)):
            raise CheckpointError(f"{path}: {inner} of its config is {value!r:.100}, which is not allowed in a file")
        yield from _names_in(path, inner, value)


@cache
def _own(key: str) -> tuple[str, ...]:
    """The modules with classes of ours that a file may name, and the public names of their packages."""
    packages = {".".join(home.split(".")[:2]) for home in _HOMES[key]}
    return (*_HOMES[key], *(f"{package}.{name}" for package in packages for name in import_module(package).__all__))


def _inner_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _may_be_trusted(name: str) -> bool:
    return name.partition(".")[0] not in ("softsearch", *sys.stdlib_module_names)


def _is_of_extra(name: str) -> bool:
    return name.startswith("softsearch.extras.")


def _allows(prefixes: Iterable[str], name: str) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def _refuse_names(path: Path, names: Mapping[str, str], allowed: Sequence[str]) -> None:
    """Refuses names, given with their keys, that are neither ours nor trusted."""
    strange = [name for name in names if not _allows(allowed, name)]
    if not strange:
        return
    where = f"{path}: {names[strange[0]]} of its config is {strange[0]!r:.100}, "
    if not all(map(_may_be_trusted, strange)):
        raise CheckpointError(f"{where}which is not allowed in a file; none of its code was run: use another file")
    packages = list(dict.fromkeys(name.partition(".")[0] for name in strange))
    given = [name for name in dict.fromkeys(_TRUSTED.get()) if not _allows(packages, name)]
    raise UntrustedClassError(
        f"{where}which is not a class of softsearch; none of its code was run. If you trust that package, "
        f"type trust='[{','.join([*given, *(f'{package}.*' for package in packages)])}]'"
    )


def _check_home(name: str, homes: Iterable[str]) -> None:
    """Refuses an allowed name unless its class is defined in one of the modules and packages ``homes``."""
    cls = imported(name)
    if not isinstance(cls, type) or not _allows(homes, _inner_name(cls)):
        raise TypeError(f"{name} is not a class of {name.partition('.')[0]}")


def _belongs_to_run(path: Path) -> bool:
    """Tells whether a checkpoint is in the folder of a run."""
    folder = path.absolute().parent
    return folder.name == "checkpoints" and (folder.parent / "config.yaml").is_file()


def _without_paths(node: Any, is_own_run: bool, *, names_file: bool = False) -> Any:
    """Returns a node without addresses, with marks on files that must not be read."""
    if isinstance(node, list):
        return [_without_paths(value, is_own_run, names_file=names_file) for value in node]
    if isinstance(node, dict):
        kept = {name: value for name, value in node.items() if name not in _ADDRESSES}
        return {
            name: _without_paths(value, is_own_run and name != _HUB, names_file=name in (*_FILES, _HUB))
            for name, value in kept.items()
        }
    if not names_file or not isinstance(node, str):
        return node
    return node if is_own_run and "://" not in node else UnreadPath(node)
