"""Points of hand-ins, as JSON.

    python -m softsearch.extras.course.points NOTEBOOK.ipynb SOLUTION.py ... > points.json

Only a file's imports, definitions and constants run, so nothing trains. Each exercise is worth a point. Hand-ins are
other people's code: check them on a machine where they can do no harm.
"""

import ast
import json
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from softsearch.errors import InputError
from softsearch.extras.course.verdict import every_exercise, verdict

_SECONDS = 60  # of an exercise
_CHECK = re.compile(r'^check\("(\w+)", (\w+)\)', re.MULTILINE)
_RUN = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def points(path: Path) -> dict[str, Any]:
    """Returns how many of a file's exercises are right, and a message on each.

    Raises:
        InputError: the file cannot be read, or has no exercises.
    """
    cells = list(_cells(path))
    exercises = every_exercise()  # whose imports take longer than an exercise may
    names: dict[str, Any] = {"__name__": "__main__"}
    problems = [problem for cell in cells if (problem := _define(cell, names))]
    checks = dict(_CHECK.findall("\n".join(cells))) or {name: name for name in exercises if name in names}
    if not checks:
        raise InputError(f"{path} has no exercises; expected a notebook of the course, or a file with its functions")
    told = {name: _told(name, names.get(function), problems) for name, function in checks.items()}
    return {"points": sum(each["right"] for each in told.values()), "of": len(told), "exercises": told}


def _cells(path: Path) -> Iterator[str]:
    """The code of a notebook's cells, or of a Python file."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".ipynb":
            yield text
            return
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                yield "".join(cell["source"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({error}); expected a notebook or a Python file") from error


def _define(cell: str, names: dict[str, Any]) -> str:
    """Runs a cell's imports, definitions and constants; returns what is wrong with it, or ""."""
    try:
        tree = ast.parse(re.sub(r"^[%!].*$", "", cell, flags=re.MULTILINE))  # commands of IPython
    except SyntaxError as error:
        return f"line {error.lineno} of a cell cannot be read: {error.msg}"
    problem = ""
    for node in tree.body:
        constant = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Lambda)
        if constant or isinstance(node, _RUN):
            try:
                exec(compile(ast.Module([node], []), "hand-in", "exec"), names)  # noqa: S102 - what this command is for
            except Exception as error:  # noqa: BLE001 - whatever a reader's code raises
                problem = f"{type(error).__name__}: {error}"
    return problem


def _told(name: str, function: Any, problems: Sequence[str]) -> dict[str, Any]:
    if not callable(function):
        return {"right": False, "message": f"{name}: there is no function; {'; '.join(problems)}".rstrip("; ")}
    if sys.platform == "win32":  # which has no alarms
        return dict(verdict(name, function)._asdict())
    before = signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        return dict(verdict(name, function)._asdict())
    except TimeoutError as error:  # while the answer was computed
        return {"right": False, "message": f"{name}: {error}"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _late(_: int, __: FrameType | None) -> None:
    raise TimeoutError(f"it took more than {_SECONDS} seconds")


def main(files: Sequence[str]) -> int:
    """Prints the points of files."""
    try:
        found = {name: points(Path(name)) for name in files}
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(found, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
