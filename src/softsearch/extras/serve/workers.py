"""Worker processes: each translates one batch at a time, with a single-threaded Translator for every model.

Processes share only a pipe, so one may die at any moment, which closes the pipe.
"""

import asyncio
import atexit
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from softsearch.errors import BundleError, SoftsearchError, traceback_of
from softsearch.extras.serve.models import ENCODERS, GLOSSARIES
from softsearch.extras.serve.settings import is_shortage
from softsearch.extras.shared.served_files import MEMORIES, ReadMemory
from softsearch.runtime import Bundle, Glossary
from softsearch.runtime.parts import NO_STAGES, Stages, Strategy, with_places
from softsearch.text.parts import SentenceTags

if TYPE_CHECKING:  # only worker processes import ONNX Runtime
    from softsearch.runtime import Translator

# Not fork: copying a process with threads, an event loop and sockets is unsafe.
_CONTEXT = multiprocessing.get_context("spawn")
# A terminal or systemd sends these to every process, but workers obey the main process.
_IGNORED = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}
_OPEN_SECONDS = 600.0  # to start and to open the models
_CLOSE_SECONDS = 5.0  # for an idle worker to end by itself


class Job(NamedTuple):
    """An encoded batch for a worker."""

    model: str
    search: Strategy | None  # None: pairs are scored
    sources: list[Any]  # parts of lines, token ids of pairs, or arguments of preparations
    targets: list[list[int]] | None  # token ids of prefixes, or of translations to score
    tags: Sequence[SentenceTags | None] = ()  # those of each line whose places to return, instead of alignments
    stages: Stages = NO_STAGES  # what is done with translations
    prepare: Callable[..., Any] | None = None  # called instead, with a `LineEncoder` and the arguments


class Failure(NamedTuple):
    """The reason why a line has no result."""

    reason: str  # for the client, or the traceback of an unexpected error for the log
    expected: bool


class WorkerDiedError(SoftsearchError):
    """A worker process ended before it answered."""


class Worker:
    """A worker process, as used by the main process; belongs to the event loop in which it is opened."""

    def __init__(
        self,
        bundles: Mapping[str, Path],
        sha256: Mapping[str, str],
        glossaries: Mapping[str, Glossary],
        memories: Mapping[ReadMemory, Any],
    ) -> None:
        self.freed, self.answered = 0.0, 0  # for the dispatcher: when it became idle, after how many lines
        self.exitcode: int | None = None  # set when the process has ended
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Any] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._pipe, there = _CONTEXT.Pipe()
        told = there, dict(bundles), dict(sha256), dict(glossaries), dict(memories)
        self._process = _CONTEXT.Process(target=_work, args=told, daemon=True)
        with signals_blocked():
            self._process.start()
        there.close()  # so that only the process has this end, and the pipe closes with it
        self.pid = self._process.pid
        atexit.register(self.kill)  # before multiprocessing waits for a process that ignores SIGTERM
        try:
            threading.Thread(target=self._receive, daemon=True, name=f"worker-{self.pid}").start()
        except RuntimeError:  # no more threads may be available
            self.kill()
            raise

    @classmethod
    async def open(
        cls,
        bundles: Mapping[str, Path],
        sha256: Mapping[str, str],
        glossaries: Mapping[str, Glossary],
        memories: Mapping[ReadMemory, Any] = MappingProxyType({}),
    ) -> "Worker":
        """Starts a process and waits until it is warm.

        Args:
            bundles: folders by model name.
            sha256: expected hashes of the bundles.
            glossaries: glossaries that requests may name.
            memories: those of kinds of files.

        Raises:
            BundleError: a bundle cannot be opened, or is not the expected one.
            WorkerDiedError: the process died, or hung.
        """
        worker = cls(bundles, sha256, glossaries, memories)
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                failure: str | None = await worker._answer
        except TimeoutError as error:
            worker.kill()
            raise WorkerDiedError(f"a worker process did not open the models within {_OPEN_SECONDS:g} s") from error
        except BaseException:
            worker.kill()
            raise
        if failure is not None:
            await worker.close()
            raise BundleError(failure)
        return worker

    def call(self, job: Job) -> "asyncio.Future[list[Any]]":
        """Sends a batch; the future returns a Translation, a PairScore or a Failure for each line.

        The future raises WorkerDiedError if the process dies.
        """
        self._answer = self._loop.create_future()
        if self.ended.done():
            self._answer.set_exception(WorkerDiedError("a worker process died while it was idle"))
            return self._answer
        self._send(job)
        return self._answer

    async def close(self) -> None:
        """Ends the idle process."""
        self._send(None)
        done, _ = await asyncio.wait([self.ended], timeout=_CLOSE_SECONDS)
        if not done:
            self.kill()
            await self.ended

    def kill(self) -> None:
        """Ends the process at once."""
        with suppress(ValueError):  # already closed
            self._process.kill()

    def _send(self, job: Job | None) -> None:
        """Writes to the pipe in a thread, because a process that hangs does not read, and a full pipe blocks."""

        def send() -> None:
            with suppress(OSError, TypeError):  # the process died, or its pipe was closed between two parts of a job
                self._pipe.send(job)

        try:
            threading.Thread(target=send, daemon=True).start()
        except RuntimeError:  # no more threads may be available; the end of the process ends what waits for it
            self.kill()

    def _receive(self) -> None:
        """Receives answers in a separate thread until the process ends."""
        with suppress(RuntimeError):  # the event loop is closed, so nothing waits
            try:
                while True:
                    self._loop.call_soon_threadsafe(self._set_answer, self._pipe.recv())
            except (EOFError, OSError):
                self._process.join()
                self._loop.call_soon_threadsafe(self._set_ended)

    def _set_answer(self, answer: Any) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)

    def _set_ended(self) -> None:
        self.exitcode = self._process.exitcode
        atexit.unregister(self.kill)
        self._pipe.close()
        self._process.close()
        self.ended.set_result(None)
        if not self._answer.done():
            self._answer.set_exception(WorkerDiedError(f"a worker process died with exit code {self.exitcode}"))


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Blocks these signals in processes started meanwhile, until they ignore them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_signals() -> None:
    """Makes this process ignore the signals of terminals and service managers."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)


def _work(
    pipe: Connection,
    bundles: Mapping[str, Path],
    sha256: Mapping[str, str],
    glossaries: Mapping[str, Glossary],
    memories: Mapping[ReadMemory, Any],
) -> None:
    """Runs in the worker process: answers jobs until the main process sends None, closes the pipe or dies."""
    GLOSSARIES.update(glossaries)
    MEMORIES.update(memories)
    ignore_signals()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the main process has ended
        try:
            threading.Thread(target=_die_with_parent, daemon=True).start()
            translators = {name: _open(path, sha256[name]) for name, path in bundles.items()}
            ENCODERS.update({name: translator.encoder for name, translator in translators.items()})
        except (SoftsearchError, MemoryError, RuntimeError, ImportError, OSError) as error:
            if not isinstance(error, SoftsearchError) and not is_shortage(error):
                raise
            pipe.send(str(error) or "out of memory")
            return
        pipe.send(None)
        while (job := pipe.recv()) is not None:
            pipe.send(_answer(translators[job.model], job))


def _die_with_parent() -> None:
    """Ends this process when the main process dies, even in the middle of a batch."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _open(path: Path, sha256: str) -> "Translator":
    from softsearch.runtime import Translator  # here, because it imports ONNX Runtime

    bundle = Bundle.open(path)
    if bundle.sha256 != sha256:
        raise BundleError(f"bundle {path} was changed while it was opened; reload it")
    translator = Translator(bundle, threads=1)
    translator.translate(
        ["."], max_length=2, tgt=next(iter(translator.encoder.languages.targets), None)
    )  # because ONNX Runtime allocates at the first call
    return translator


def _answer(translator: "Translator", job: Job) -> list[Any]:
    """Returns the results of a batch; if it fails, those of its lines one by one, so that only bad lines fail."""
    try:
        return list(_run(translator, job))
    except Exception as error:  # noqa: BLE001 - no error may affect the other lines
        if len(job.sources) == 1:
            expected = isinstance(error, SoftsearchError)
            return [Failure(str(error) if expected else traceback_of(error), expected)]
    answers: list[Any] = []
    for index, source in enumerate(job.sources):
        targets = None if job.targets is None else [job.targets[index]]
        own = job._replace(sources=[source], targets=targets, tags=job.tags[index : index + 1])
        answers += _answer(translator, own)
    return answers


def _run(translator: "Translator", job: Job) -> Sequence[Any]:
    if job.prepare is not None:
        return [job.prepare(translator.encoder, *arguments) for arguments in job.sources]
    if job.search is not None:
        found = translator.translate_parts(job.sources, job.search, job.targets, job.stages)
        return [each if tags is None else with_places(each, tags) for each, tags in zip_longest(found, job.tags)]
    assert job.targets is not None
    return translator.score_ids(job.sources, job.targets)
