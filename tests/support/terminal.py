"""A command at a terminal, which a test types into."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[\?[\d;]*[a-z]")  # with which readline switches bracketed paste


def at_terminal(arguments: Iterable[object], lines: Iterable[str], cwd: Path | None = None) -> tuple[int, str]:
    """Types each line when the prompt ``> `` is there, then Ctrl-D; returns the exit code and the screen."""
    import pty

    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "softsearch", *map(str, arguments)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=cwd) as process:
        os.close(theirs)
        shown, seen = "", 0
        waiting = [*(f"{line}\n" for line in lines), "\x04"]
        try:
            while part := os.read(ours, 4096):
                shown += _ESCAPES.sub("", part.decode(errors="replace"))
                if waiting and shown[seen:].endswith("> "):
                    seen = len(shown)
                    os.write(ours, waiting.pop(0).encode())
        except OSError:  # Linux's end of a terminal
            pass
        finally:
            os.close(ours)
        return process.wait(60), shown.replace("\r", "")
