"""Errors that users see, in one tree.

A message says what went wrong, where (file:line or key path), the value, what was expected and what to do.
"""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager


def printable(text: str, keep: str = "") -> str:
    """Text from a file, made safe for a terminal: all but printable characters and those to ``keep`` are escaped.

    Control sequences (colours, the cursor, the window's title), changes of direction and line ends are not printable.
    """
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def traceback_of(error: BaseException) -> str:
    """Where an unexpected error was raised, and its type; without its message, which may quote a user's text."""
    return "".join([*traceback.format_tb(error.__traceback__), type(error).__qualname__])


class SoftsearchError(Exception):
    """An error whose message is meant for the user: commands print it without a traceback and exit with its code."""

    exit_code = 1

    def __str__(self) -> str:
        """The message, made printable because it quotes files and libraries."""
        return printable(super().__str__(), keep="\n")


class CorpusError(SoftsearchError):
    """A corpus file is missing, damaged or not parallel."""


class ConfigError(SoftsearchError):
    """A configuration key or value, or an option of a command, is wrong."""

    exit_code = 2  # wrong usage, as in argparse


class CheckpointError(SoftsearchError):
    """A checkpoint is missing, damaged or does not fit."""


class BundleError(SoftsearchError):
    """An exported bundle is missing, damaged, altered or of an unknown version."""


class InputError(SoftsearchError):
    """A text or a request at run time cannot be handled."""


def summarize(error: BaseException) -> str:
    """A foreign error for a message of ours: its type and the start of its first line."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])[:300]


@contextmanager
def parsing(name: object, kind: type[SoftsearchError], advice: str) -> Iterator[None]:
    """Reports whatever a parser raises on a file that others wrote as an error of the file ``name``.

    Libraries raise errors of many classes on damaged files; panics of Rust are not even ``Exception``.

    Raises:
        SoftsearchError: that of ours which was raised, or one of the ``kind``.
    """
    try:
        yield
    except (SoftsearchError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        logging.getLogger(__name__).debug("%s", traceback_of(error))
        raise kind(f"{name} cannot be read ({summarize(error)}); {advice}") from error
