"""Descriptions of the machine and the state of the code, for reports and loggers."""

import logging
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import torch

from softsearch.app.config.composition import CONFIGS
from softsearch.machine import cores

log = logging.getLogger(__name__)
_LONGEST = 10_000  # characters of diff_stat
_TIMEOUT = 20  # seconds: a slow file system must not hold up training


def describe_machine() -> str:
    """Describes the processor, its cores and the GPU, for reports of speed."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(errors="replace").splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.device_count() else ""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"{processor}, {cores()} {'core' if cores() == 1 else 'cores'}{gpu}, {versions}"


def code_state(*paths: str) -> dict[str, Any]:
    """Returns the ``git_state`` of this code, or of these paths in it."""
    return git_state(CONFIGS.parent, *paths)


def git_state(folder: Path, *paths: str) -> dict[str, Any]:
    """Returns the commit of the checkout in ``folder``, and which files differ from it: all, or those in ``paths``.

    Returns:
        ``commit``, ``dirty`` (changed or new files) and ``diff_stat``; all None without git or a checkout, for
        example in an installed package.
    """
    git = shutil.which("git")
    if git is not None and (folder / ".git").exists():  # not a checkout of other code around this one
        try:
            return {
                "commit": _run(git, folder, "rev-parse", "HEAD"),
                "dirty": bool(_run(git, folder, "status", "--porcelain", "--", *paths)),
                "diff_stat": _run(git, folder, "diff", "--no-ext-diff", "--stat", "HEAD", "--", *paths)[-_LONGEST:],
            }
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("the state of the code in %s is unknown: %s", folder, error)
    return {"commit": None, "dirty": None, "diff_stat": None}


def _run(git: str, folder: Path, *arguments: str) -> str:
    # In a git hook the environment has variables of the hook's checkout; status must not write to an index in use.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [git, "--no-optional-locks", "-C", str(folder), *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
        timeout=_TIMEOUT,
        check=True,
    )
    return done.stdout.rstrip()
