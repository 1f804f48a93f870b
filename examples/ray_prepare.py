"""Prepares a corpus on all machines of a Ray cluster, with the options of ``softsearch prepare`` and the same bytes.

    pip install 'softsearch[lab,ray]'
    python examples/ray_prepare.py data.train='[a.en,a.de]' data.val='[b.en,b.de]' cache_dir=FOLDER

This machine reads the text in chunks of some thousand pairs, trains the tokenizer and writes the folder. Tasks on the
cluster clean and encode the chunks, which takes most of the time. These are plain Ray tasks: the readers of Ray Data
take each file by itself, but lines of two files belong together here.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ray
from ray.exceptions import RayTaskError

from softsearch import SoftsearchError, lab

AHEAD = 4  # chunks of text in memory for each CPU of the cluster


@ray.remote
def work(task: Callable[[Any], Any], item: Any) -> Any:
    """Cleans or encodes a chunk of text, on any machine."""
    return task(item)


def on_cluster(task: Callable[[Any], Any], items: Iterable[Any], processes: int) -> Iterator[Any]:
    """Yields ``task(item)`` for every item in order."""
    sent, waiting = ray.put(task), deque[Any]()
    try:
        for item in items:
            waiting.append(work.remote(sent, item))
            if len(waiting) > AHEAD * processes:
                yield ray.get(waiting.popleft())
        while waiting:
            yield ray.get(waiting.popleft())
    except RayTaskError as error:
        raise error.cause from None  # a line that cannot be read, say


if __name__ == "__main__":
    ray.init(ignore_reinit_error=True)
    cpus = int(ray.cluster_resources()["CPU"])
    try:
        lab.prepare(f"processes={cpus}", *sys.argv[1:], mapping=on_cluster)  # processes=N typed afterwards wins
    except SoftsearchError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
