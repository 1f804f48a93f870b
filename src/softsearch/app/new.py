"""``softsearch new``: begins a package with your own parts, options and tests."""

import argparse
import keyword
import re
import sys
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

from softsearch.app.config.composition import CONFIGS
from softsearch.app.console import echo
from softsearch.commands import CORE
from softsearch.errors import ConfigError

_NAME, _CLASS = "my_attention", "MyAttention"  # in the template, which is examples/my_attention
_ENTRY = '\n[project.entry-points."softsearch.commands"]'  # the end of its pyproject.toml, only for a command
_COMMON = ("pyproject.toml", "README.md", f"{_NAME}/__init__.py")
_PARTS = {  # part -> its files
    "model": (
        f"{_NAME}/attention.py",
        f"softsearch_configs/model/attention/{_NAME}.yaml",
        f"softsearch_configs/model/{_NAME}.yaml",
        f"softsearch_configs/recipe/{_NAME}.yaml",
        "tests/test_model.py",
    ),
    "data": (f"{_NAME}/data.py", f"softsearch_configs/data/{_NAME}.yaml", "tests/test_data.py"),
    "metric": (f"{_NAME}/metric.py", f"softsearch_configs/metric/{_NAME}.yaml", "tests/test_metric.py"),
    "method": (f"{_NAME}/objective.py", f"softsearch_configs/method/{_NAME}.yaml", "tests/test_objective.py"),
    "command": (f"{_NAME}/command.py", f"{_NAME}/configs/{_NAME}.yaml", "tests/test_command.py"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch new``."""
    parser.description = (
        "Begin your own package with options and tests: a model with its own attention, a data source, a metric, a "
        "training method or a command. Type the command again to add another part to the package."
    )
    parser.add_argument("part", choices=_PARTS)
    parser.add_argument("name", metavar="NAME", help="name of the package and of the part, as in model=NAME")


def new(options: argparse.Namespace) -> None:
    """Writes a part into the package ``NAME`` in the current folder, and creates the package if it is missing.

    Raises:
        ConfigError: the name cannot be used, or a file exists.
    """
    name, folder = options.name, Path(options.name)
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or name in (*sys.stdlib_module_names, *keyword.kwlist):
        raise ConfigError(
            f"{name!r} cannot be the name of a package; expected lower-case letters, digits and _, and not a name of a "
            "Python module, as in softsearch new model my_attention"
        )
    project = folder / "pyproject.toml"
    if not project.exists() and name in _installed_names():
        raise ConfigError(
            f"{name!r} is an installed package, which yours would replace; choose another name, such as my_{name}"
        )
    camel = "".join(word.capitalize() for word in name.split("_"))
    installed = CONFIGS.with_name("template")
    template = installed if installed.is_dir() else CONFIGS.parent / "examples" / _NAME
    texts = {
        folder / file.replace(_NAME, name): (template / file)
        .read_text(encoding="utf-8")
        .replace(_NAME, name)
        .replace(_CLASS, camel)
        for file in (*_COMMON, *_PARTS[options.part])
    }
    is_command = options.part == "command"
    begun, *entry = texts[project].partition(_ENTRY)
    if project.exists():
        begun = project.read_text(encoding="utf-8")
    texts[project] = begun + "".join(entry) * (is_command and _ENTRY not in begun)
    if is_command and name in CORE:
        raise ConfigError(f"softsearch already has a command {name}; choose another name")
    configs = [file.replace(_NAME, name).partition("/")[2] for file in _PARTS[options.part] if file.endswith(".yaml")]
    if theirs := [file for file in configs if (CONFIGS / file).is_file()]:
        raise ConfigError(f"softsearch already has {theirs[0]}, which cannot be overridden; choose another name")
    common = {folder / file.replace(_NAME, name) for file in _COMMON}
    if existing := [path for path in texts if path not in common and path.exists()]:
        raise ConfigError(f"{existing[0]} exists, so nothing was written; choose another name, or remove it")
    for path, text in texts.items():
        if not path.exists() or (path == project and text != begun):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            echo(f"wrote {path}")
    use = f"{name} --help" if is_command else f"train {options.part}={name}"
    commands = (f"cd {name}", "pip install -e '.[test]'", "pytest", f"softsearch {use}")
    echo("\n  ".join(("next:", *commands)))


def _installed_names() -> set[str]:
    """Returns the names of installed modules and distributions, and those that softsearch may need, as identifiers."""
    installed = [*distributions()]
    needed = [name for each in installed if each.name == "softsearch" for name in each.requires or ()]
    names = [*packages_distributions(), *(each.name for each in installed), *needed]
    return {re.sub("[-.]+", "_", re.split(r"[^.\w-]", name)[0]).lower() for name in names} | {"softsearch", "tests"}
