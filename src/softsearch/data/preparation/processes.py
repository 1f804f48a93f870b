"""Process pool that maps a function over many items, in order and with bounded memory."""

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from softsearch.errors import CorpusError

Item = TypeVar("Item")
Result = TypeVar("Result")
_ITEMS_PER_PROCESS = 4  # items in progress per process
_task: list[Callable[[Any], Any]] = []  # the task of a worker process


def ordered_map(task: Callable[[Item], Result], items: Iterable[Item], processes: int) -> Iterator[Result]:
    """Yields ``task(item)`` for every item in order, with any number of processes.

    Unlike ``Executor.map``, it does not read ``items`` far ahead. ``task`` is sent to a process once, so it may be
    large; with one process the work is done in the current process.

    Raises:
        CorpusError: a process was killed.
    """
    if processes == 1:
        yield from map(task, items)
        return
    waiting: deque[Any] = deque()
    # Not forked: a copy could wait forever for locks of PyTorch's or a logger's threads in this process.
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start, initargs=(task,)) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(_work, item))
                if len(waiting) > _ITEMS_PER_PROCESS * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise CorpusError(
                f"one of {processes} processes was killed, perhaps because memory ran out; use fewer (processes=N)"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


def _start(task: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first ends the others
    _task.append(task)


def _work(item: Any) -> Any:
    return _task[0](item)
