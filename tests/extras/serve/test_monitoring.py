"""Log lines are JSON objects without control characters."""

import json
import logging
import sys

from softsearch.extras.serve.monitoring import JsonLines, Seldom


def test_a_line_is_one_object_of_printable_ascii() -> None:
    hostile = "\x1b[2J\r\n\x00\x7f\x9b\u2028\u202eü\ud800"
    try:
        raise ValueError(hostile)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "%s", (hostile,), sys.exc_info())
    record.facts = {hostile: hostile, "path": object}
    line = JsonLines().format(record)
    assert line.isascii()
    assert line.isprintable()
    read = json.loads(line)
    assert read["event"] == read[hostile] == hostile
    assert read["level"] == "error"
    assert read["traceback"].endswith("\nValueError")  # without its message
    assert hostile not in read["traceback"]
    assert read["time"].endswith("+00:00")


def test_what_asyncio_repeats_is_logged_once_a_second() -> None:
    def passed(name: str, message: str, *times: float) -> list[float]:
        records = [logging.makeLogRecord({"name": name, "msg": message, "created": time}) for time in times]
        return [record.created for record in filter(seldom.filter, records)]

    seldom = Seldom()
    assert passed("asyncio", "out of handles", 5, 5.5, 5.9, 6.1, 6.2, 9) == [5, 6.1, 9]
    assert passed("asyncio", "another", 9.1, 9.2) == [9.1]
    assert passed("uvicorn", "another", 9.3, 9.4) == [9.3, 9.4]
