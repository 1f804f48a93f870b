"""Standard output that takes nothing more is one line of error, from every kind of command, buffered or not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("typed", ["--version", "verify --help", "train --help", "cache"])
def test_a_full_disk_is_one_line_and_no_success(typed: str, unbuffered: str, tmp_path: Path) -> None:
    variables = os.environ | {"PYTHONUNBUFFERED": unbuffered, "SOFTSEARCH_CACHE": str(tmp_path)}
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "softsearch", *typed.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=variables, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"error: standard output: No space left on device" in done.stderr
