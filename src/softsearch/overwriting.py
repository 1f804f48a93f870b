"""Refusal of commands whose output would replace their input, before they begin."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from fnmatch import fnmatch
from glob import escape
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, NamedTuple

from softsearch.errors import ConfigError
from softsearch.files import MANIFEST

_OF_RUN = ("config.yaml", "metrics.csv", "metrics.json", "report.json", "results.json", "*.hypotheses.txt")
_CHECKPOINTS = ("best.ckpt", "last.ckpt", "step-*.ckpt")


class _Input(NamedTuple):
    option: str  # --input, or data.train
    path: Path


class _Output(NamedTuple):
    option: str
    path: Path
    files: str | None  # None: a file; "": a folder that is replaced as a whole; *.json: such files in a folder

    def replaces(self, read: Path) -> bool:
        if self.files:
            return fnmatch(read.name, self.files) and _is_same(read.parent, self.path)
        if (read / MANIFEST).is_file() and _is_same(read, self.path.parent):
            return True  # a bundle holds nothing else
        if self.path.is_dir():
            inside = Path(os.path.realpath(read)).is_relative_to(os.path.realpath(self.path))
            return self.files is not None and inside and read.exists()
        unfinished = self.path.with_name(f".{self.path.name}.partial")  # see softsearch.files.new_file
        return any(path.exists() and _is_same(path, read) for path in (self.path, unfinished))

    @property
    def advice(self) -> str:
        if self.files:
            return f"give {self.option} another folder"
        if (self.path.parent / MANIFEST).is_file():
            return "write outside of the bundle"
        path = self.path if self.path.name not in ("", "..") else Path(os.path.realpath(self.path))
        other = path.with_name(f"{path.stem}.new{path.suffix}")
        return f"write another file, for example {self.typed(other)}"

    def typed(self, path: Path) -> str:
        return f"{self.option}{' ' if self.option.startswith('-') else '='}{path}"


def refuse_overwriting(
    values: Mapping[str, Any], writes: Iterable[str], shown: Callable[[str], str] = str, *, text: bool = True
) -> None:
    """Refuses options of a command if a file to write would replace one that is read, or another one to write.

    Links count as the file that they lead to; pipes and devices may be read and written. Of a folder that is read, the
    files of a bundle or of a run count; of standard input and output, files that the shell has opened.

    Args:
        values: the options. Paths in them are read if they are not written.
        writes: what is written, see ``softsearch.commands.Command``.
        shown: what the option of a name is called: ``--output``.
        text: whether text names a file, too, if there is one of that name; ``@FILE`` always does.

    Raises:
        ConfigError: one would.
    """
    kinds = {name: files if slash else None for name, slash, files in (each.partition("/") for each in writes)}
    read, written = [*_redirected("standard input", 0, sys.stdin)], list[_Output]()
    for name, value in values.items():
        paths = _paths(shown(name), value, text=text)
        if name in kinds:
            written += [_Output(*each, kinds[name]) for each in paths]
        else:
            read += paths
    for at, output in enumerate(written):
        inputs = read if output.files else _with_contents(read)  # reports may be written next to the run
        if each := next((each for each in inputs if output.replaces(each.path)), None):
            what = f"{output.typed(output.path)} would {'change' if each.path.is_dir() else 'overwrite'} {each.path}"
            raise ConfigError(f"{what}, which {each.option} reads; {output.advice}")
        if same := next((each for each in written[:at] if _is_same(each.path, output.path)), None):
            raise ConfigError(f"{same.option} and {output.option} would both write {output.path}; {output.advice}")
    for option, path in _redirected("standard output", 1, sys.stdout):
        if each := next((each for each in read if _is_same(each.path, path)), None):
            raise ConfigError(f"{option} is {each.path}, which {each.option} reads; write to another file")


def _paths(option: str, value: Any, *, text: bool) -> Iterator[_Input]:
    """Yields the paths in a value, which may be a list or have options of its own."""
    if isinstance(value, Path):
        yield _Input(option, value)
    elif isinstance(value, str):
        name = value.removeprefix("@")
        if (text or name != value) and os.path.isfile(name):  # noqa: PTH113 - any text
            yield _Input(option, Path(name))
        elif text and option.startswith("data") and Path(name).name:  # text.en and text.de may be named text
            yield from (_Input(option, each) for each in Path(name).parent.glob(f"{escape(Path(name).name)}.*"))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _paths(option, each, text=text)
    elif isinstance(value, Mapping) or is_dataclass(value):
        inner = (
            value if isinstance(value, Mapping) else {each.name: getattr(value, each.name) for each in fields(value)}
        )
        for key, each in inner.items():
            yield from _paths(f"{option}.{key}", each, text=text)


def _redirected(name: str, descriptor: int, stream: object) -> Iterator[_Input]:
    """The file that the shell has opened as a standard stream, if it is a regular one."""
    path = Path(f"/dev/fd/{descriptor}")
    if stream is not None and path.is_file():
        real = Path(os.path.realpath(path))
        yield _Input(name, real if real.exists() else path)


def _with_contents(inputs: Iterable[_Input]) -> Iterator[_Input]:
    """Yields inputs, and the files of those that are bundles or runs."""
    for option, path in inputs:
        yield _Input(option, path)
        patterns = (
            ("*",) if (path / MANIFEST).is_file() else (*_OF_RUN, *(f"checkpoints/{each}" for each in _CHECKPOINTS))
        )
        yield from (_Input(option, each) for pattern in patterns if path.is_dir() for each in path.glob(pattern))


def _is_same(one: Path, other: Path) -> bool:
    """Tells whether two names are of one file or folder, which may not exist yet; never of pipes and devices."""
    try:
        found = one.stat()
        return (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)) and os.path.samestat(found, other.stat())
    except FileNotFoundError:
        return not (one.exists() or other.exists()) and os.path.realpath(one) == os.path.realpath(other)
    except (OSError, ValueError):
        return False
