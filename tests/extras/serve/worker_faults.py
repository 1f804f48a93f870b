"""Worker process with faults: some texts kill it or raise an unexpected exception, and some do not open."""

import os
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from softsearch.extras.serve import workers

DEADLY, EXPLOSIVE = "a deadly line", "an explosive line"
ONE_OPENS = "one-opens"  # a folder beside the bundle, which the one worker that opens it empties; the others die
_work, _run = workers._work, workers._run


def work_with_faults(pipe: Connection, bundles: Mapping[str, Path], *told: Any) -> None:
    """In place of ``workers._work``."""
    workers._run = _run_with_faults
    if (folder := next(iter(bundles.values())).parent / ONE_OPENS).exists():
        try:
            (folder / "token").unlink()
        except FileNotFoundError:
            os._exit(9)
    _work(pipe, bundles, *told)


def _run_with_faults(translator: Any, job: workers.Job) -> Sequence[Any]:
    texts = {part.text for source in job.sources if job.search for part in source}
    if DEADLY in texts:
        os._exit(9)
    if EXPLOSIVE in texts:
        raise RuntimeError("it exploded")
    return _run(translator, job)
