"""Help of a command: examples, groups and options, explained by the comments in its YAML."""

import json
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf

from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import CONFIGS, composed, config_loader, own_folders
from softsearch.app.config.validation import flatten, nearest
from softsearch.commands import Command, named
from softsearch.errors import ConfigError

_COLUMN = 32  # where explanations begin
_EXAMPLE = re.compile(r"(?:python src/(?=train|evaluate|export)|softsearch )(\w+)(?:\.py)? (.*?)(?:  # (.*))?")
_PLAIN = {"hydra", "first_metric", "share", "oc.env", "oc.select"}  # resolvers that need neither PyTorch nor the time
_ALSO = {
    "--help GROUP": "the choices of a group, one line each",
    "--help GROUP=CHOICE": "the options of a choice",
    "--help KEY": "an option, or all options of a section",
    "--cfg job --resolve": "print the config and run nothing",
    "--config-dir FOLDER": "a folder with your own configs, in subfolders named like the groups",
}


@dataclass
class File:
    """Comments of a YAML file."""

    header: list[str] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)  # all keys of the file with their comments, or ""

    @classmethod
    def read(cls, text: str) -> "File":
        """Reads the comments above the first key, those after keys, and their continuations, indented below."""
        lines, file = text.splitlines(), cls()
        for line in lines:
            if not line.startswith("#"):
                break
            if not line.startswith("# @"):
                file.header.append(line[1:].strip())
        root = yaml.compose(text, yaml.SafeLoader)
        if isinstance(root, yaml.MappingNode):
            file.keys.update(_comments(root, lines, ""))
        return file


def _comments(node: yaml.MappingNode, lines: list[str], path: str) -> Iterator[tuple[str, str]]:
    for key, value in node.value:
        inner = f"{path}.{key.value}" if path else key.value
        is_block = isinstance(value, yaml.CollectionNode) and not value.flow_style
        mark = key.end_mark if is_block else value.end_mark
        found = re.match(r":?\s*#\s*(.*)", lines[mark.line][mark.column :]) if mark.line < len(lines) else None
        below = []
        for line in lines[mark.line + 1 :] if found else ():
            if not line.lstrip().startswith("#") or len(line) - len(line.lstrip()) <= key.start_mark.column:
                break
            below.append(line.lstrip("# "))
        yield inner, " ".join([found[1], *below]) if found else ""
        children = [value] if isinstance(value, yaml.MappingNode) else value.value if inner == "defaults" else []
        for child in children:
            if isinstance(child, yaml.MappingNode):
                yield from _comments(child, lines, inner)


class Help:
    """The help for a command line, with the choices typed in it."""

    def __init__(self, line: CommandLine) -> None:
        self.line, self.words = line, line.overrides()
        options = [word for word in self.words if "=" in word]
        CommandLine(line.command, [word for word in line.words if word not in self.words or "=" in word]).check()
        self.width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 100)
        self.config = composed(line.command, *line.search_path(), *options, with_hydra=True)
        HydraConfig.instance().set_config(self.config)  # for ${hydra:...}
        self.values = dict(flatten(OmegaConf.to_container(self.config)))
        self.keys: dict[str, str] = {}  # absolute key -> comment
        self.files: dict[str, list[str]] = {}  # path of a config -> its absolute keys
        self.headers: dict[str, list[str]] = {}
        self.parents: dict[str, str] = {}
        with config_loader() as loader:
            found = loader.compute_defaults_list(line.command, [*line.search_path(), *options], RunMode.RUN)
        self.choices = found.overrides.known_choices
        for default in found.defaults:
            path = default.config_path or ""
            if path.startswith("hydra/"):
                continue
            file = self._file(path)
            absolute = {
                key if key.startswith("defaults") or not default.package else f"{default.package}.{key}": text
                for key, text in file.keys.items()
            }
            self.headers[path], self.files[path] = file.header, [*absolute]
            self.parents[path] = str(default.parent)
            self.keys |= {key: text for key, text in absolute.items() if text or key not in self.keys}
        own = [key for path in self._own_files() for key in self._defaults(path) if not key.startswith("override ")]
        self.groups = [key.rpartition(" ")[2] for key in own]

    def __str__(self) -> str:
        """Returns the help for the command, or for the typed choices, groups and keys."""
        parts = [part for word in self.words for part in self._word(word)] if self.words else self._command()
        return "\n".join(line.rstrip() for line in parts)

    def _command(self) -> Iterator[str]:
        command, own = self.line.command, self._own_files()
        header = [text for path in own for text in _paragraphs(self.headers[path])]
        yield f"{self.line.program} {'[GROUP=CHOICE ...] ' if self.groups else ''}[KEY=VALUE ...]"
        yield from ("", *self._wrapped(f"{cast(Command, named(command)).summary}.", 0), "", "Examples")
        for text in header:
            example = _EXAMPLE.fullmatch(text)
            if example is None:
                yield from self._wrapped(text, 4)
            elif example[1] == command:
                yield f"  {self.line.program} {example[2]}"
                yield from self._wrapped(example[3] or "", 6)
        if self.groups:
            yield from ("", "Groups, with the current choice")
        for group in self.groups:
            yield from self._row(f"{group}={_shown(self._choice(group))}", self._about(group))
        yield from ("", "Options, with their current values")
        tops = {key.partition(".")[0] for path in own for key in self.files[path]} - {"defaults", "hydra"}
        yield from self._options(key for key in self._keys() if key.partition(".")[0] in tops - {*self.groups})
        yield from self._row("hydra.run.dir=FOLDER", f"output folder; now {self._value('hydra.run.dir')}")
        yield from ("", "Also")
        for words, text in _ALSO.items():
            yield from self._row(words, text)

    def _word(self, word: str) -> Iterator[str]:
        key, _, value = word.lstrip("+~").partition("=")
        if key in self.choices or (CONFIGS / key).is_dir():
            if key not in [*self.choices, *self.groups]:
                raise self.line.explain(Exception(f"Could not override '{key}'"))
            chosen = self._choice(key) if value else None
            if not chosen:
                yield from self._group(key)
            for name in [chosen] if isinstance(chosen, str) else chosen or ():
                yield from self._chosen(key, name)
            return
        keys = [name for name in self._keys() if f"{name}.".startswith(f"{key}.")]
        if not keys:
            known = [*self.choices, *self._keys()]
            raise ConfigError(f"{self.line.command} has no group and no option {key!r}; {nearest(key, known)}")
        yield from self._options(keys)

    def _group(self, group: str) -> Iterator[str]:
        """Yields the choices of a group, each with the first line of its header."""
        yield f"{group}=CHOICE" + (f": {text}" if (text := self.keys.get(f"defaults.{group}")) else "")
        for name in self.line.choices(group):
            header = " ".join(self._file(f"{group}/{name}").header)
            yield from self._row(name, textwrap.shorten(header, 2 * self.width, placeholder=" ..."))

    def _chosen(self, group: str, name: str) -> Iterator[str]:
        """Yields the options of a choice, and of the configs that it extends."""
        path = f"{group}/{name}"
        yield f"{group}={name}"
        for text in _paragraphs(self.headers.get(path, ())):
            yield from self._wrapped(text, 4)
        files = [file for file in self.files if path in self._line_of(file)]
        for choice in (key for file in files for key in self._defaults(file) if "hydra" not in key):
            overrides, _, inner = choice.rpartition(" ")
            inner = inner.removeprefix("/") if overrides else f"{group}/{inner}"
            about = self.keys.get(f"defaults.{choice}") or ("" if overrides else self._about(inner))
            yield from self._row(f"{inner}={_shown(self._choice(inner))}", about)
        if group == "model" and f"recipe/{name}" in self.files:
            yield from self._row(f"recipe={name}", "chosen with it: optimizer, schedule and budget")
        own = {key for file in files for key in self.files[file] if not key.startswith("defaults")}
        order = {key: number for number, key in enumerate(self.files.get(path, ()))}
        keys = [key for key in self._keys(with_hydra=True) if key in own]
        yield from self._options(sorted(keys, key=lambda key: order.get(".".join(key.split(".")[:2]), 0)))

    def _options(self, keys: Iterable[str]) -> Iterator[str]:
        """Yields a line for each option, and for each section with a comment."""
        for key in keys:
            name, value, text = key.rpartition(".")[2], self._value(key), self.keys.get(key)
            if isinstance(value, Mapping) and value:
                of_class = self.keys.get(f"{key}._target_"), str(value.get("_target_", "")).rpartition(".")[2]
                about = "; ".join(filter(None, (text, ": ".join(filter(None, reversed(of_class))))))
                if about:
                    yield from self._row(key, about)
            elif not name.startswith("_"):
                needed = value == "???"
                shown = "" if needed else _shown(value)
                yield from self._row(f"{key}={shown}", "; ".join(filter(None, ("needed" * needed, text))))

    def _keys(self, *, with_hydra: bool = False) -> list[str]:
        return [key for key in self.values if with_hydra or not f"{key}.".startswith("hydra.")]

    def _value(self, key: str) -> Any:
        """Returns a value of the config, resolved except for interpolations that need a run or PyTorch."""
        value = self.values[key]
        is_late = isinstance(value, str) and re.search("run_dir|output_dir", value)
        if isinstance(value, str) and not is_late and _PLAIN.issuperset(re.findall(r"\$\{([\w.]+):", value)):
            value = OmegaConf.select(self.config, key)
        return OmegaConf.to_container(value) if isinstance(value, DictConfig | ListConfig) else value

    def _defaults(self, path: str) -> list[str]:
        """Returns the groups in the defaults list of a config, as written: ``model``, ``override /model``."""
        return [key.removeprefix("defaults.") for key in self.files[path] if key.startswith("defaults.")]

    def _own_files(self) -> list[str]:
        """Returns the command's config and those that it extends."""
        return [path for path in self.files if "/" not in path]

    def _line_of(self, path: str) -> Iterator[str]:
        """Yields a config and those that include it, up to the command's."""
        while path in self.parents:
            yield path
            path = self.parents[path]

    def _choice(self, group: str) -> str | list[str] | None:
        """Returns the choice of a group, or the list of several."""
        names = [path for path in self.files if path.rpartition("/")[0] == group and "/" not in self.parents[path]]
        return [path.rpartition("/")[2] for path in names] if len(names) > 1 else self.choices.get(group)

    def _about(self, group: str) -> str:
        if text := self.keys.get(f"defaults.optional {group}"):
            return text
        choices = f"one of {', '.join(self.line.choices(group))}"
        return "; ".join(filter(None, (self.keys.get(f"defaults.{group}"), choices)))

    def _file(self, path: str) -> File:
        sources = [source for word in self.line.search_path() for source in json.loads(word.partition("=")[2])]
        for folder in (CONFIGS, *(Path(source.removeprefix("file://")) for source in sources), *own_folders()):
            if (folder / f"{path}.yaml").is_file():
                return File.read((folder / f"{path}.yaml").read_text(encoding="utf-8"))
        return File()

    def _row(self, left: str, right: str) -> Iterator[str]:
        """Yields two columns; the right one begins on the next line if the left one is too long."""
        lines = textwrap.wrap(right, self.width - _COLUMN) or [""]
        if len(left) + 4 > _COLUMN:
            yield f"  {left}"
            lines = lines if right else []
        else:
            yield f"  {left}".ljust(_COLUMN) + lines.pop(0)
        yield from (" " * _COLUMN + line for line in lines)

    def _wrapped(self, text: str, indent: int) -> list[str]:
        return textwrap.wrap(text, self.width, initial_indent=" " * indent, subsequent_indent=" " * indent)


def _paragraphs(lines: Iterable[str]) -> list[str]:
    """Joins the lines of a comment into paragraphs; each command is one of its own."""
    return re.sub(r"\n(?!python |softsearch )(?=[a-z(])", " ", "\n".join(lines)).splitlines()


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value or "''"
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000).strip().removesuffix("\n...")
    return text.replace(", ", ",")
