"""Which code ran."""

import logging
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)
_LONGEST = 10_000  # characters of a diff stat that are kept
_SECONDS = 20  # a file system that takes longer holds up training


def git_state(folder: Path) -> dict[str, Any]:
    """The commit of the checkout in ``folder``, whether files differ from it, and which.

    Returns:
        ``commit``, ``dirty`` (changed or new files) and ``diff_stat``; each is None where there is no checkout, as in
        an installed package, or no git.
    """
    git = shutil.which("git")
    if git is not None and (folder / ".git").exists():  # not a checkout around it, which is of something else
        try:
            return {
                "commit": _ask(git, folder, "rev-parse", "HEAD"),
                "dirty": bool(_ask(git, folder, "status", "--porcelain")),
                "diff_stat": _ask(git, folder, "diff", "--no-ext-diff", "--stat", "HEAD")[-_LONGEST:],
            }
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("the state of the code in %s is unknown: %s", folder, error)
    return {"commit": None, "dirty": None, "diff_stat": None}


def _ask(git: str, folder: Path, *question: str) -> str:
    # A hook that trains would hand us variables of its own checkout; status must not write to an index in use.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [git, "--no-optional-locks", "-C", str(folder), *question],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
        timeout=_SECONDS,
        check=True,
    )
    return done.stdout.rstrip()
