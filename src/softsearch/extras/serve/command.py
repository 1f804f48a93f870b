"""``softsearch serve``: options, start, signals and stop of the server."""

import argparse
import asyncio
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from softsearch.errors import ConfigError, SoftsearchError, printable
from softsearch.extras.serve.settings import Settings, default_options, is_shortage

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def serve(arguments: argparse.Namespace) -> None:
    """Runs the server until a signal ends it; raises the signal again after the stop.

    Raises:
        SoftsearchError: the extra is missing, the address is in use, a bundle cannot be opened, or there is not enough
            memory, threads or processes.
    """
    try:
        _serve(arguments)
    except (MemoryError, RuntimeError, ImportError, OSError) as error:
        if not is_shortage(error):
            raise
        raise SoftsearchError(
            f"the server cannot start: {printable(str(error)) or 'out of memory'}; give it more memory, threads and "
            "processes (ulimit -v and -u, or the container's limits), or lower --workers"
        ) from error


def _serve(arguments: argparse.Namespace) -> None:
    defaults = {name: value for name in default_options() if (value := getattr(arguments, name)) is not None}
    given = {option.name: getattr(arguments, option.name) for option in fields(Settings) if option.name != "defaults"}
    glossaries = _named([each for each in arguments.glossary or () if "=" in each], "a glossary")
    unnamed = [each for each in arguments.glossary or () if "=" not in each]
    if len(unnamed) > 1:
        raise ConfigError(f"--glossary {unnamed[1]}: another one has no name; name all but one: NAME={unnamed[1]}")
    patterns, always = _patterns(arguments.keep or ())
    named = {"glossary": glossaries | ({"": Path(unnamed[0])} if unnamed else {}), "keep": patterns}
    settings = Settings(**given | named, defaults=defaults | ({"keep": always} if always else {}))
    if settings.max_sentences > settings.queue:
        raise ConfigError(
            f"--max-sentences is {settings.max_sentences}, expected at most --queue ({settings.queue}); change one"
        )
    models = _named(arguments.bundles, "a model")
    if settings.processes > 1:
        from softsearch.extras.serve.processes import run_processes

        run_processes(models, settings)
    else:
        from softsearch.extras.serve.running import run

        asyncio.run(run(models, settings))


def _patterns(given: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Returns the patterns that requests may name, and those without a name, which are patterns of all requests."""
    from softsearch.text import Keep

    named: dict[str, str] = {}
    always: list[str] = []
    for each in given:
        name, equals, pattern = each.partition("=")
        if not equals or not _NAME.fullmatch(name):
            name = pattern = each
            always.append(each)
        if name in named:
            raise ConfigError(f"--keep {each}: another pattern has this name; change it")
        named[name] = pattern
    Keep([*named.values()])
    return named, always


def _named(given: Sequence[str], what: str) -> dict[str, Path]:
    """Returns the folders of models, or the files of glossaries, by name."""
    named: dict[str, Path] = {}
    for each in given:
        name, equals, path_given = each.partition("=")
        path = Path(path_given if equals else each)
        name = name if equals else path.resolve().name
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{each}: {name!r} cannot be the name of {what}; expected letters, digits, '.', '_' and '-': "
                f"NAME={path}"
            )
        if name in named:
            raise ConfigError(f"{named[name]} and {path} are both named {name}; rename one: NAME={path}")
        named[name] = path
    return named
