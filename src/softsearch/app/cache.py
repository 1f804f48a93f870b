"""``softsearch cache``: lists and removes prepared data and downloads."""

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from softsearch.data.preparation.cache_folder import INDEX, PARTS, is_made
from softsearch.data.sentencepiece_file import kind_of
from softsearch.errors import ConfigError, SoftsearchError, printable
from softsearch.text.plain_values import read_json
from softsearch.text.tokenizer import SentencePieceTokenizer

REPORT = "report.json"  # describes prepared data
_DAY = 86_400.0
_PARTS = {  # by the start of a name
    "text": "cleaned text",
    "size": "the number of parts of a text",
    "dropped": "which pairs of cleaned text are dropped",
    "tokenizers": "tokenizers",
    "ids": "token ids",
    "shard": "a shard of a store",
}


class Entry(NamedTuple):
    """A folder of prepared data or a downloaded file."""

    path: Path
    size: int  # bytes
    days: float  # since it was made


def cache_folder() -> Path:
    """Returns the cache folder: SOFTSEARCH_CACHE or ``~/.cache/softsearch``.

    Raises:
        ConfigError: there is no home folder.
    """
    try:
        return Path(os.environ.get("SOFTSEARCH_CACHE") or "~/.cache/softsearch").expanduser()
    except RuntimeError as error:  # a user without a home
        raise ConfigError(f"there is no folder for the cache ({error}); set SOFTSEARCH_CACHE=FOLDER") from error


def entries(folder: Path) -> Iterator[Entry]:
    """Yields what belongs to the cache, by an index or by the name of a download; nothing else is listed or removed."""
    made = [index.parent for pattern in ("*", "*/*") for index in folder.glob(f"{pattern}/{INDEX}")]
    made = [path for path in made if is_made(path)]
    downloads = (path for path in folder.glob("downloads/*") if re.fullmatch("[0-9a-f]{64}", path.name))
    found, real = [*made, *downloads, *folder.glob("multi30k/*.gz")], folder.resolve()
    for path in sorted(path for path in found if path.resolve() == real / path.relative_to(folder)):  # no links
        size = sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
        yield Entry(path, size, (time.time() - path.stat().st_mtime) / _DAY)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch cache``."""
    parser.description = (
        "List prepared data and downloads with sizes and ages, or remove them; training creates them again when it "
        "needs them. SOFTSEARCH_CACHE sets another folder."
    )
    parser.add_argument("do", nargs="?", choices=("list", "clear"), default="list")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the start of a name (default: all)")
    parser.add_argument("--older", type=float, default=0.0, metavar="DAYS", help="only entries older than this")
    parser.add_argument("--yes", action="store_true", help="clear without asking")


def cache(options: argparse.Namespace) -> None:
    """Lists the cache, or removes entries of it.

    Raises:
        ConfigError: there is no such entry, or no terminal to ask at.
        SoftsearchError: an entry cannot be read or removed.
    """
    try:
        _carry_out(options)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:  # of standard output
            raise
        raise SoftsearchError(
            f"{error.filename}: {error.strerror}; change its permissions, or remove it yourself"
        ) from error


def _content(entry: Entry) -> str:
    """Describes an entry in words."""
    if entry.path.parent.name == "downloads":
        return "a download"
    if entry.path.parent.name == PARTS:
        return _PARTS.get(entry.path.name.partition("-")[0], "")
    try:
        corpora = read_json(entry.path / REPORT)["corpora"]["train"]
        pairs = sum(int(corpus["kept"]) for corpus in corpora)
        files = " and ".join(Path(str(corpora[0][side])).name for side in ("src", "tgt"))
        text = f"{pairs:,} pairs of {files}" + (f" and {len(corpora) - 1} more" if corpora[1:] else "")
        model = (entry.path / "tgt.model").read_bytes()
        pieces = f", {kind_of(model, 'tgt.model')} with {SentencePieceTokenizer(model).vocab_size:,} pieces"
    except (OSError, ValueError, LookupError, TypeError, SoftsearchError):
        return f"corpus {entry.path.name.partition('-')[0]}" if entry.path.parent == cache_folder() else ""
    return f"{text}{pieces}, prepared for training"


def _carry_out(options: argparse.Namespace) -> None:
    folder = cache_folder()
    begins = tuple(f"{folder}/{name}" for name in options.names or [""])
    found = [e for e in entries(folder) if e.days >= options.older and str(e.path).startswith(begins)]
    if options.names and not found:
        raise ConfigError(
            f"{folder} has no entry that starts with {' or '.join(options.names)}; type softsearch cache to list them"
        )
    names = [printable(entry.path.relative_to(folder).as_posix()) for entry in found]
    width = max(map(len, ["name", *names]))
    if found:
        print(f"{'size':>13}  {'made':>15}  {'name':{width}}  content")
    for name, entry in zip(names, found, strict=True):
        print(
            f"{entry.size / 1e6:>10,.1f} MB  {entry.days:>6.1f} days ago  {name:{width}}  {printable(_content(entry))}"
        )
    total = sum(entry.size for entry in found) / 1e6
    print(f"{total:>10,.1f} MB in {len(found)} folders and downloads of {printable(str(folder))}")
    if options.do == "list" or not found:
        return
    if not options.yes:
        if not sys.stdin.isatty():
            raise ConfigError("clear asks before removing anything, but there is no terminal; add --yes")
        print("remove them? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return
    for entry in found:
        shutil.rmtree(entry.path) if entry.path.is_dir() else entry.path.unlink()
