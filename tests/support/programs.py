"""Python in processes of its own."""

import os
import subprocess
import sys
from pathlib import Path

SESSION = "SOFTSEARCH_TESTS_SESSION"  # a variable of the environment: the folder that a run's processes share


def run_python(
    *arguments: object, cwd: Path | None = None, text: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python, four minutes at most, on an input ``text`` and with further environment ``variables``."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        input=text,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
