"""Command ``softsearch serve``: options, start, signals and stop of the server."""

import argparse
import asyncio
import importlib
import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError, SoftsearchError

_EXTRA = ("fastapi", "uvicorn", "prometheus_client")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def _between(least: float, most: float, kind: type[int] | type[float] = int) -> Callable[[str], Any]:
    def number(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least:,} to {most:,}")
        return value

    return number


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch serve``."""
    parser.add_argument(
        "bundles",
        nargs="+",
        metavar="BUNDLE",
        help="folder of an exported bundle, whose name is the model's; NAME=FOLDER gives it another",
    )
    seconds = {"metavar": "S"}
    groups: dict[str, dict[str, tuple[Any, Any, str, dict[str, str]]]] = {
        "address": {
            "--host": (str, "127.0.0.1", "address to listen on; 0.0.0.0: all of this host's", {"metavar": "ADDRESS"}),
            "--port": (_between(0, 65535), 8000, "0: any free one, which the log names", {}),
        },
        "work": {
            "--workers": (_between(1, 1024), None, "processes that translate (default: one for each core)", {}),
            "--queue": (_between(1, 1_000_000), 1000, "sentences that may wait; beyond them the answer is 503", {}),
            "--delay": (_between(0, 10, float), 0.005, "seconds to wait for a fuller batch", seconds),
            "--deadline": (_between(0.1, 3600, float), 30.0, "seconds to wait for a worker; after them 504", seconds),
            "--batch-timeout": (_between(1, 3600, float), 60.0, "seconds of a batch; after them 504", seconds),
        },
        "limits of a request": {
            "--max-body": (_between(1000, 1 << 30), 1_000_000, "bytes", {}),
            "--max-sentences": (_between(1, 10_000), 128, "sentences, at most --queue", {}),
            "--max-characters": (_between(1, 1_000_000), 2_000, "characters of a sentence", {}),
            "--max-beam": (_between(1, 1000), 20, "hypotheses of a sentence, also of n_best", {}),
            "--max-length": (_between(1, 100_000), 500, "target tokens that max_length and min_length may name", {}),
        },
        "access (off by default)": {
            "--api-keys": (Path, None, "file of API keys, one a line, of which work needs one", {"metavar": "FILE"}),
            "--cors": (
                str,
                [],
                "let pages of this origin use the server; repeatable",
                {"metavar": "ORIGIN", "action": "append"},
            ),
        },
    }
    for title, options in groups.items():
        group = parser.add_argument_group(title)
        for flag, (kind, default, text, settings) in options.items():
            shown = "" if default in (None, []) else f" (default: {default})"
            group.add_argument(
                flag, **{"type": kind, "default": default, "metavar": "N", "help": text + shown} | settings
            )


def serve(arguments: argparse.Namespace) -> None:
    """Runs the server until a signal ends it, which is raised again after the stop.

    Raises:
        SoftsearchError: the extra is missing, the address is taken, or a bundle cannot be opened.
    """
    for name in _EXTRA:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise SoftsearchError(f"softsearch serve needs {name}; run: pip install 'softsearch[serve]'") from error
    bundles = _named(arguments.bundles)
    if arguments.max_sentences > arguments.queue:
        raise ConfigError(
            f"--max-sentences is {arguments.max_sentences}, expected at most --queue ({arguments.queue}); change one"
        )
    from softsearch.runtime.server.access import read_keys
    from softsearch.runtime.server.dispatcher import Dispatcher
    from softsearch.runtime.server.limits import RequestLimits
    from softsearch.runtime.server.line_queue import Limits
    from softsearch.runtime.server.logs import log_to_stderr
    from softsearch.runtime.server.metrics import Metrics
    from softsearch.runtime.server.running import run
    from softsearch.runtime.server.service import Service

    metrics = Metrics()
    limits = Limits(
        workers=arguments.workers or 0,
        queue=arguments.queue,
        delay=arguments.delay,
        deadline=arguments.deadline,
        batch=arguments.batch_timeout,
    )
    dispatcher = Dispatcher(bundles, limits, metrics)
    request_limits = RequestLimits(
        body=arguments.max_body,
        sentences=arguments.max_sentences,
        characters=arguments.max_characters,
        beam=arguments.max_beam,
        length=arguments.max_length,
    )
    keys = [] if arguments.api_keys is None else read_keys(arguments.api_keys)
    metrics.watch(queue=lambda: dispatcher.waiting, workers=lambda: dispatcher.workers)
    listener = _listen(arguments.host, arguments.port)
    log_to_stderr()
    asyncio.run(run(Service(dispatcher, request_limits, metrics, keys, arguments.cors), listener))


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


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise SoftsearchError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another --port or --host"
        ) from error
