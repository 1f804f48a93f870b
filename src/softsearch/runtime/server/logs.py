"""Logs: one JSON object a line on standard error, without control characters and without the text of requests."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from softsearch.runtime.server.errors import traceback_of

LOGGER = logging.getLogger("softsearch.server")


class JsonLines(logging.Formatter):
    """Formats a record and its ``facts``; ASCII and printable alone, whatever a client sent."""

    def format(self, record: logging.LogRecord) -> str:
        """See :class:`logging.Formatter`."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[1]:
            line["traceback"] = traceback_of(record.exc_info[1])
        # JSON escapes all but ASCII, and of ASCII all control characters but DEL.
        return json.dumps(line, default=str).replace("\x7f", "\\u007f")


class Seldom(logging.Filter):
    """Passes a message of asyncio once a second: without file handles it says so thousands of times."""

    _last = ("", 0.0)

    def filter(self, record: logging.LogRecord) -> bool:
        """See :class:`logging.Filter`."""
        if record.name != "asyncio":
            return True
        message, (before, when) = record.getMessage().partition("\n")[0], self._last
        passes = message != before or record.created - when >= 1
        if passes:
            self._last = message, record.created
        return passes


def log_to_stderr() -> None:
    """Writes all records of this process as JSON lines, those of uvicorn and warnings of Python included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(Seldom())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False  # a closed standard error must not stop the server
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # its news of start and stop are events of ours


def log_event(event: str, *, level: int = logging.INFO, exc_info: BaseException | None = None, **facts: object) -> None:
    """Logs what happened and facts of it."""
    LOGGER.log(level, event, extra={"facts": facts}, exc_info=exc_info)
