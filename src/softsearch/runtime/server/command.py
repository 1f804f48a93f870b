"""Command ``softsearch serve``: options, start, signals and stop of the server."""

import argparse
import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError, SoftsearchError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_ADDRESS, _WORK, _REQUEST = "address", "work", "limits of a request"
_ACCESS = "access (off by default)"


def _number(group: str, default: float | None, least: float, most: float, text: str, metavar: str = "N") -> Any:
    def number(value: str) -> float:
        try:
            if least <= (read := type(least)(value)) <= most:
                return read
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{value!r} is not a number from {least:,} to {most:,}")

    return field(default=default, metadata={"group": group, "help": text, "type": number, "metavar": metavar})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of ``softsearch serve``."""

    host: str = field(
        default="127.0.0.1",
        metadata={
            "group": _ADDRESS,
            "help": "address to listen on; 0.0.0.0: all of this host's",
            "metavar": "ADDRESS",
        },
    )
    port: int = _number(_ADDRESS, 8000, 0, 65535, "0: any free one, which the log names")
    workers: int | None = _number(_WORK, None, 1, 1024, "processes that translate (default: one for each core)")
    queue: int = _number(_WORK, 1000, 1, 1_000_000, "sentences that may wait; beyond them the answer is 503")
    delay: float = _number(_WORK, 0.005, 0.0, 10, "seconds to wait for a fuller batch", "S")
    deadline: float = _number(_WORK, 30.0, 0.1, 3600, "seconds to wait for a worker; after them 504", "S")
    batch_timeout: float = _number(_WORK, 60.0, 1.0, 3600, "seconds of a batch; after them 504", "S")
    max_body: int = _number(_REQUEST, 1_000_000, 1000, 1 << 30, "bytes")
    max_sentences: int = _number(_REQUEST, 128, 1, 10_000, "sentences, at most --queue")
    max_characters: int = _number(_REQUEST, 2_000, 1, 1_000_000, "characters of a sentence")
    max_beam: int = _number(_REQUEST, 20, 1, 1000, "hypotheses of a sentence, also of n_best")
    max_length: int = _number(_REQUEST, 500, 1, 100_000, "target tokens that max_length and min_length may name")
    api_keys: Path | None = field(
        default=None,
        metadata={
            "group": _ACCESS,
            "help": "file of API keys, one on each line; requests for work need one",
            "type": Path,
            "metavar": "FILE",
        },
    )
    cors: Sequence[str] | None = field(
        default=None,
        metadata={
            "group": _ACCESS,
            "help": "let pages of this origin use the server; repeatable",
            "action": "append",
            "metavar": "ORIGIN",
        },
    )


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch serve``."""
    parser.add_argument(
        "bundles",
        nargs="+",
        metavar="BUNDLE",
        help="folder of an exported bundle, whose name is the model's; NAME=FOLDER gives it another",
    )
    groups = {title: parser.add_argument_group(title) for title in (_ADDRESS, _WORK, _REQUEST, _ACCESS)}
    for option in fields(Settings):
        keywords = dict(option.metadata)
        group = groups[keywords.pop("group")]
        if option.default is not None:
            keywords["help"] += f" (default: {option.default})"
        group.add_argument(f"--{option.name.replace('_', '-')}", default=option.default, **keywords)


def serve(arguments: argparse.Namespace) -> None:
    """Runs the server until a signal ends it, which is raised again after the stop.

    Raises:
        SoftsearchError: the extra is missing, the address is taken, or a bundle cannot be opened.
    """
    try:
        from softsearch.runtime.server.running import run
    except ModuleNotFoundError as error:
        raise SoftsearchError(f"softsearch serve needs {error.name}; run: pip install 'softsearch[serve]'") from error
    settings = Settings(**{option.name: getattr(arguments, option.name) for option in fields(Settings)})
    if settings.max_sentences > settings.queue:
        raise ConfigError(
            f"--max-sentences is {settings.max_sentences}, expected at most --queue ({settings.queue}); change one"
        )
    asyncio.run(run(_named(arguments.bundles), settings))


def _named(bundles: Sequence[str]) -> dict[str, Path]:
    """The folders by the names of the models."""
    named: dict[str, Path] = {}
    for bundle in bundles:
        name, equals, folder = bundle.partition("=")
        path = Path(folder if equals else bundle)
        name = name if equals else path.resolve().name
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{bundle}: {name!r} cannot be a model's name; expected letters, digits, '.', '_' and '-': NAME={path}"
            )
        if name in named:
            raise ConfigError(f"{named[name]} and {path} are both named {name}; give one another name: NAME={path}")
        named[name] = path
    return named
