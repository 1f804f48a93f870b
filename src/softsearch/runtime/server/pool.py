"""Pool of worker processes: replaces those that die, and all of them when the bundles are reloaded."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from softsearch.errors import SoftsearchError
from softsearch.runtime.server.errors import NotReadyError
from softsearch.runtime.server.models import Model, open_models
from softsearch.runtime.server.workers import Worker

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds between attempts to replace a worker
_log = logging.getLogger(__name__)


class Pool:
    """Worker processes over the same bundles.

    Args:
        bundles: the folders, by the model's name.
        size: the number of workers.
        on_idle: called when a worker becomes idle.
        on_death: called when a worker has died.
    """

    def __init__(
        self, bundles: Mapping[str, Path], size: int, on_idle: Callable[[], None], on_death: Callable[[], None]
    ) -> None:
        self.models: dict[str, Model] = {}
        self.workers: list[Worker] = []  # the warm ones
        self.idle: list[Worker] = []  # of these, the longest idle first
        self._retired: set[Worker] = set()  # end after their batch
        self._bundles, self._size = dict(bundles), size
        self._on_idle, self._on_death = on_idle, on_death
        self._changing = asyncio.Lock()  # one replacement or reload at a time
        self._replacing: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._closing = False

    async def start(self) -> None:
        """Opens all workers, at the same time.

        Raises:
            BundleError: a bundle cannot be opened.
            WorkerDiedError: a worker died, say because memory ran out.
        """
        models = await asyncio.to_thread(open_models, self._bundles)
        self._swap(models, await self._open_all(models))

    async def reload(self) -> None:
        """Opens the bundles as they are on disk now, in new workers that replace the old ones once all are warm.

        Raises:
            BundleError: a bundle cannot be opened: the old workers stay, and no answer comes from a new one.
            WorkerDiedError: a new worker died: likewise.
        """
        async with self._changing:
            models = await asyncio.to_thread(open_models, self._bundles)
            self._swap(models, await self._open_all(models))

    async def close(self) -> None:
        """Ends all workers; those that are not idle are killed."""
        self._closing = True
        for task in self._replacing:
            task.cancel()
        for worker in {*self.workers, *self._retired} - {*self.idle}:
            worker.kill()
        async with self._changing:  # after a reload, which opens no more workers
            await asyncio.gather(
                *self._replacing, *self._ending, *(worker.close() for worker in self.workers), return_exceptions=True
            )
        self.workers.clear()
        self.idle.clear()

    def release(self, worker: Worker) -> None:
        """Takes a worker back after its batch."""
        if worker in self._retired:
            self._retired.discard(worker)
            _keep(self._ending, worker.close())
        elif worker in self.workers:  # it may have died in the meantime
            self.idle.append(worker)
            self._on_idle()

    def _add(self, worker: Worker) -> None:
        self.workers.append(worker)
        self.idle.append(worker)
        worker.ended.add_done_callback(lambda _: self._remove(worker))
        self._on_idle()

    def _remove(self, worker: Worker) -> None:
        """After the end of a worker, expected or not."""
        self._retired.discard(worker)
        if self._closing or worker not in self.workers:
            return
        self.workers.remove(worker)
        if worker in self.idle:
            self.idle.remove(worker)
        _log.warning("worker process died with exit code %s; it is replaced", worker.exitcode)
        _keep(self._replacing, self._replace())
        self._on_death()

    def _retire(self, worker: Worker) -> None:
        """Lets a worker finish its batch and end."""
        self.workers.remove(worker)
        if worker in self.idle:
            self.idle.remove(worker)
            _keep(self._ending, worker.close())
        else:
            self._retired.add(worker)

    async def _open(self, models: Mapping[str, Model]) -> Worker:
        worker = await Worker.open(self._bundles, _hashes(models))
        if self._closing:
            await worker.close()
            raise NotReadyError("the server stops")
        return worker

    async def _replace(self) -> None:
        """Opens a worker in the place of one that died, however often it takes."""
        pause = _FIRST_PAUSE
        while True:
            try:
                async with self._changing:
                    await self._fill()
            except (SoftsearchError, OSError) as error:
                _log.error("a worker process cannot be replaced, next attempt in %.0f s: %s", pause, error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                return

    async def _fill(self) -> None:
        if len(self.workers) >= self._size:  # a reload has
            return
        models = await asyncio.to_thread(open_models, self._bundles)
        if _hashes(models) != _hashes(self.models):
            _log.warning("the bundles have changed on disk since they were opened; all workers are replaced")
            self._swap(models, await self._open_all(models))
        else:
            self._add(await self._open(models))

    async def _open_all(self, models: Mapping[str, Model]) -> list[Worker]:
        """Opens as many workers as the pool has, at the same time; none if one cannot be opened."""
        opening = [asyncio.ensure_future(self._open(models)) for _ in range(self._size)]
        try:
            return await asyncio.gather(*opening)
        except BaseException:
            for task in opening:
                task.cancel()
            for worker in await asyncio.gather(*opening, return_exceptions=True):
                if isinstance(worker, Worker):
                    worker.kill()
            raise

    def _swap(self, models: dict[str, Model], workers: Sequence[Worker]) -> None:
        """Puts workers in the place of all that there are: every batch from now on is theirs."""
        self.models = models
        for old in list(self.workers):
            self._retire(old)
        for worker in workers:
            self._add(worker)


def _keep(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    """Runs it in the background; the event loop alone would not keep the task."""
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def _hashes(models: Mapping[str, Model]) -> dict[str, str]:
    return {name: model.facts.sha256 for name, model in models.items()}
