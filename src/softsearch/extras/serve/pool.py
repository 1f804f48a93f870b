"""Pool of worker processes: replaces dead ones, and all of them when bundles are reloaded."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from softsearch.errors import SoftsearchError, traceback_of
from softsearch.extras.serve.models import Model, hashes, open_models
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.workers import Worker, WorkerDiedError
from softsearch.extras.shared.served_files import ReadMemory, read_memories
from softsearch.machine import cores
from softsearch.runtime.parts import open_glossary

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds between attempts to replace a worker
_log = logging.getLogger(__name__)


class Pool:
    """Worker processes for the same bundles.

    Args:
        bundles: folders by model name.
        settings: the number of workers, and the files of glossaries, which are read once.
        on_idle: called when a worker becomes idle.
        on_death: called when a worker has died.

    Raises:
        CorpusError: a glossary cannot be read, or a term is wrong.
    """

    def __init__(
        self, bundles: Mapping[str, Path], settings: Settings, on_idle: Callable[[], None], on_death: Callable[[], None]
    ) -> None:
        self.models: dict[str, Model] = {}
        self.workers: list[Worker] = []  # the warm workers
        self.idle: list[Worker] = []  # idle workers, the longest idle first
        self.size = settings.workers or cores()
        self._living: set[Worker] = set()  # includes workers replaced by a reload, which end after their batch
        self._bundles, self._on_idle, self._on_death = dict(bundles), on_idle, on_death
        self._glossaries = {name: open_glossary(path) for name, path in (settings.glossary or {}).items()}
        self._memory_files = settings.memory or ()
        self._memories: Mapping[ReadMemory, Any] = {}
        self._changing = asyncio.Lock()  # allows one replacement or reload at a time
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    async def load(self) -> None:
        """Opens the bundles on disk in new workers, which replace the old ones when all are warm.

        Raises:
            BundleError: a bundle cannot be opened; the old workers stay, and no new one has answered.
            WorkerDiedError: a new worker died, for example of lack of memory; the old workers stay.
        """
        async with self._changing:
            models = await asyncio.to_thread(open_models, self._bundles)
            encoders = [model.encoder for model in models.values()]
            self._memories = await asyncio.to_thread(read_memories, self._memory_files, encoders)
            await self._replace_all(models)

    async def close(self) -> None:
        """Ends all workers; kills those that are not idle."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        for worker in self._living - {*self.idle}:
            worker.kill()
        async with self._changing:  # wait for a running reload; there will be no other
            ends = [worker.close() for worker in self._living]
            await asyncio.gather(*self._tasks, *ends, return_exceptions=True)
        self.workers.clear()
        self.idle.clear()

    def release(self, worker: Worker) -> None:
        """Takes a worker back after its batch."""
        if worker in self.workers:
            self.idle.append(worker)
            self._on_idle()
        elif worker in self._living:  # replaced by a reload
            self._run(worker.close())

    async def _open(self, models: Mapping[str, Model]) -> Worker:
        worker = await Worker.open(self._bundles, hashes(models), self._glossaries, self._memories)
        self._living.add(worker)
        worker.ended.add_done_callback(lambda _: self._remove(worker))
        if self._closing:
            raise WorkerDiedError("the server stops")
        return worker

    def _add(self, worker: Worker) -> None:
        self.workers.append(worker)
        self.idle.append(worker)
        self._on_idle()

    def _remove(self, worker: Worker) -> None:
        """Handles the end of a worker, expected or not."""
        self._living.discard(worker)
        if self._closing or worker not in self.workers:
            return
        self.workers.remove(worker)
        if worker in self.idle:
            self.idle.remove(worker)
        _log.warning("worker process died with exit code %s; replacing it", worker.exitcode)
        self._run(self._replace())
        self._on_death()

    async def _replace(self) -> None:
        """Replaces a dead worker; tries again until it succeeds."""
        pause = _FIRST_PAUSE
        while True:
            try:
                async with self._changing:
                    await self._fill()
            except Exception as error:  # noqa: BLE001 - the server must always get its worker back
                reason = str(error) if isinstance(error, SoftsearchError | OSError) else traceback_of(error)
                _log.error("a worker process cannot be replaced, next attempt in %.0f s: %s", pause, reason)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                return

    async def _fill(self) -> None:
        if len(self.workers) >= self.size:  # a reload has already replaced it
            return
        models = await asyncio.to_thread(open_models, self._bundles)
        if hashes(models) != hashes(self.models):
            _log.warning("the bundles have changed on disk since they were opened; replacing all workers")
            await self._replace_all(models)
        else:
            self._add(await self._open(models))

    async def _replace_all(self, models: dict[str, Model]) -> None:
        """Opens new workers in parallel; if one cannot be opened, the old ones stay."""
        opened = await asyncio.gather(*(self._open(models) for _ in range(self.size)), return_exceptions=True)
        workers = [worker for worker in opened if isinstance(worker, Worker)]
        if failures := [failure for failure in opened if isinstance(failure, BaseException)]:
            for worker in workers:
                worker.kill()
            raise failures[0]
        self.models = models
        idle, self.workers, self.idle = self.idle, [], []
        for worker in idle:
            self._run(worker.close())
        for worker in workers:
            self._add(worker)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs ``work`` in the background, and keeps the task, which the event loop would not."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
