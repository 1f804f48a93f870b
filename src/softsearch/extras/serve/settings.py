"""Options of ``softsearch serve``, with ranges and flags, and the test for a shortage of resources."""

import argparse
import errno
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

from softsearch.ranges import Range
from softsearch.runtime.parts import every_stage, make_flags, number

_ADDRESS, _WORK, _REQUEST = "address", "work", "limits of a request"
_ACCESS = "access (off by default)"
_TEXT = "defaults of all requests, also of LibreTranslate's clients"
_FIELDS = ("languages", "paragraphs", "markup")  # stages that every request chooses


class _Flag(NamedTuple):
    group: str
    help: str
    metavar: str = "N"
    type: Any = None  # for argparse; None for a number


@dataclass(frozen=True)
class Settings:
    """The options of ``softsearch serve``."""

    host: Annotated[
        str, _Flag(_ADDRESS, "address to listen on; 0.0.0.0: all addresses of this host", "ADDRESS", str)
    ] = "127.0.0.1"
    port: Annotated[int, Range(0, 65535), _Flag(_ADDRESS, "port to listen on; 0: any free port, which is logged")] = (
        8000
    )
    processes: Annotated[
        int, Range(1, 256), _Flag(_WORK, "number of HTTP processes on this port, which share out the workers (Linux)")
    ] = 1
    workers: Annotated[
        Annotated[int, Range(1, 1024)] | None,
        _Flag(_WORK, "number of worker processes, of all HTTP processes together (default: one per core)"),
    ] = None
    queue: Annotated[
        int, Range(1, 1_000_000), _Flag(_WORK, "largest number of waiting sentences; above it the answer is 503")
    ] = 1000
    delay: Annotated[float, Range(0, 10), _Flag(_WORK, "longest time to wait for a fuller batch, in seconds", "S")] = (
        0.005
    )
    deadline: Annotated[
        float,
        Range(0.1, 3600),
        _Flag(_WORK, "longest time to wait for a worker, in seconds; after it the answer is 504", "S"),
    ] = 30.0
    batch_timeout: Annotated[
        float, Range(1, 3600), _Flag(_WORK, "longest time for a batch, in seconds; after it the answer is 504", "S")
    ] = 60.0
    max_body: Annotated[int, Range(1000, 1 << 30), _Flag(_REQUEST, "bytes")] = 1_000_000
    max_sentences: Annotated[int, Range(1, 10_000), _Flag(_REQUEST, "sentences per request, at most --queue")] = 128
    max_characters: Annotated[int, Range(1, 1_000_000), _Flag(_REQUEST, "characters per sentence")] = 2_000
    max_beam: Annotated[int, Range(1, 1000), _Flag(_REQUEST, "hypotheses per sentence, also for n_best")] = 20
    max_length: Annotated[int, Range(1, 100_000), _Flag(_REQUEST, "target tokens, for max_length and min_length")] = 500
    api_keys: Annotated[
        Path | None,
        _Flag(_ACCESS, "file with one API key per line; translation requests then need a key", "FILE", Path),
    ] = None
    glossary: Annotated[
        Mapping[str, Path] | None,
        _Flag(
            _TEXT,
            "the glossary of requests that name none, or with NAME= one that they may name; repeatable",
            "[NAME=]FILE",
            str,
        ),
    ] = None
    memory: Annotated[
        Sequence[str] | None,
        _Flag(_TEXT, "catalogs whose translations message catalogs in requests get; repeatable", "PATTERN", str),
    ] = None
    keep: Annotated[
        Mapping[str, str] | None,
        _Flag(
            _TEXT,
            "a regular expression for text to copy, or with NAME= one that requests may name; repeatable",
            "[NAME=]PATTERN",
            str,
        ),
    ] = None
    defaults: Annotated[Mapping[str, Any], "of requests, by the names of options of stages"] = field(
        default_factory=dict
    )
    cors: Annotated[
        Sequence[str] | None,
        _Flag(_ACCESS, "allow pages of this origin to use the server; may be repeated", "ORIGIN", str),
    ] = None


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch serve``."""
    parser.add_argument(
        "bundles",
        nargs="+",
        metavar="BUNDLE",
        help="folder of an exported bundle; its name is the name of the model, NAME=FOLDER sets another one",
    )
    groups = {title: parser.add_argument_group(title) for title in (_ADDRESS, _WORK, _REQUEST, _TEXT, _ACCESS)}
    hints = get_type_hints(Settings, include_extras=True)
    for name, default in asdict(Settings()).items():
        flag = hints[name].__metadata__[-1]
        if not isinstance(flag, _Flag):
            continue
        groups[flag.group].add_argument(
            f"--{name.replace('_', '-')}",
            default=default,
            action="append" if name in ("cors", "glossary", "keep", "memory") else "store",
            type=flag.type or number(hints[name]),
            metavar=flag.metavar,
            help=flag.help if default is None else f"{flag.help} (default: {default})",
        )
    for flag_name, (settings, text) in make_flags(default_options()).items():
        groups[_TEXT].add_argument(flag_name, **settings, help=text)


def default_options() -> dict[str, Any]:
    """Returns the annotations of options of stages that can be defaults of all requests, by name."""
    stages = {name: stage for name, stage in every_stage().items() if "libretranslate" not in stage.unavailable}
    hints = {name: hint for key, stage in stages.items() if key not in _FIELDS for name, hint in stage.hints.items()}
    return {name: hint for name, hint in hints.items() if name not in ("glossary", "keep")}


def is_shortage(error: BaseException) -> bool:
    """Tells whether an error means that there is not enough memory, threads or processes."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOMEM, errno.EAGAIN)
    short = ("can't start new thread", "failed to map segment", "cannot allocate memory")
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in short)
