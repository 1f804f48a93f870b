"""One function over many items in several processes, in order and with bounded memory."""

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
_WAITING = 4  # items on their way for each process: none of them waits, and memory stays small
_task: list[Callable[[Any], Any]] = []  # of a worker process


def ordered_map(task: Callable[[Item], Result], items: Iterable[Item], processes: int) -> Iterator[Result]:
    """Yields ``task(item)`` for each item in order: the same whatever the number of processes.

    Unlike the standard library's, it does not read ``items`` far ahead of what was asked for.

    Args:
        task: travels to each process once, so it may be large.
        items: travel one by one.
        processes: 1 does the work here.

    Raises:
        CorpusError: a process was killed.
    """
    if processes == 1:
        yield from map(task, items)
        return
    waiting: deque[Any] = deque()
    # Not forked: this process may have threads, of PyTorch or of a logger, that a copy of it would wait for.
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start, initargs=(task,)) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(_work, item))
                if len(waiting) > _WAITING * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise CorpusError(
                f"one of {processes} processes ended before its time, perhaps for want of memory; "
                "use fewer (processes=N)"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


def _start(task: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the first process ends the others
    _task.append(task)


def _work(item: Any) -> Any:
    return _task[0](item)
