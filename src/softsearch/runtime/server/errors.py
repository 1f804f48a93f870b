"""Errors of the server, besides the ConfigError of options that do not fit."""

import traceback

from softsearch.errors import SoftsearchError


class QueueFullError(SoftsearchError):
    """More lines wait than the queue takes.

    Args:
        message: for the client.
        retry_after: seconds after which about this many lines will have been translated.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeadlineError(SoftsearchError):
    """A line of the request had not begun at the request's deadline."""


class NotReadyError(SoftsearchError):
    """The dispatcher has not been started, or stops."""


class LineError(SoftsearchError):
    """A line of the request cannot be translated.

    Args:
        index: of the line in its request, from 0.
        message: the reason; it counts lines from 1.
    """

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


class WorkerLostError(SoftsearchError):
    """Two worker processes died, one after the other, of the request."""


class InternalError(SoftsearchError):
    """A worker process raised an unexpected exception; the log holds its traceback."""


def traceback_of(error: BaseException) -> str:
    """Where an unexpected error was raised, and its type; without its message, which may quote a request."""
    return "".join([*traceback.format_tb(error.__traceback__), type(error).__qualname__])
