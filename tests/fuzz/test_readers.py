"""Every reader of foreign files is fuzzed for a few seconds; ``readers.py`` says how to do it for longer."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_spec("atheris") is None, reason="Atheris has wheels for Linux on x86-64 only"),
]


@pytest.mark.parametrize("reader", ["manifest", "graph", "shortlist", "corpus"])
def test_only_errors_meant_for_users_come_out(reader: str, repo_root: Path, tmp_path: Path) -> None:
    """Fault: random bytes in manifests, graphs, shortlists and corpora. Effect: errors for users, never a crash."""
    command = [sys.executable, "-m", "tests.fuzz.readers", reader, "-max_total_time=6", f"-artifact_prefix={tmp_path}/"]
    done = subprocess.run(
        command, cwd=repo_root, capture_output=True, text=True, errors="replace", timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "\nDone " in done.stderr
