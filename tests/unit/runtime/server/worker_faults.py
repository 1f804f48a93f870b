"""Worker process with faults: some texts kill it or raise an unexpected exception."""

import os
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from softsearch.runtime.server import workers

DEADLY, EXPLOSIVE = "a deadly line", "an explosive line"
_work, _run = workers._work, workers._run


def work_with_faults(pipe: Connection, bundles: Mapping[str, Path], sha256: Mapping[str, str]) -> None:
    """In place of ``workers._work``."""
    workers._run = _run_with_faults
    _work(pipe, bundles, sha256)


def _run_with_faults(translator: Any, job: workers.Job) -> Sequence[Any]:
    if DEADLY in job.lines:
        os._exit(9)
    if EXPLOSIVE in job.lines:
        raise RuntimeError("it exploded")
    return _run(translator, job)
