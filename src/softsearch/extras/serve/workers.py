"""Worker processes: each translates one batch at a time, with a single-threaded Translator for every model.

Nothing is shared between processes but a pipe, so that one may die at any moment, and its death is the pipe's end.
"""

import asyncio
import atexit
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softsearch.errors import BundleError, SoftsearchError, traceback_of
from softsearch.extras.serve.models import GLOSSARIES
from softsearch.extras.serve.settings import is_shortage
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.glossary import Glossary
from softsearch.runtime.options import Strategy

if TYPE_CHECKING:  # ONNX Runtime is for the worker processes
    from softsearch.runtime.translator import Translator

# Not fork: a copy of a process with threads, an event loop and sockets is unsafe.
_CONTEXT = multiprocessing.get_context("spawn")
# A terminal or systemd sends them to every process; the main process tells the workers what to do.
_IGNORED = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}
_OPEN_SECONDS = 600.0  # to start and open the models
_CLOSE_SECONDS = 5.0  # that an idle worker has to end by itself


class Job(NamedTuple):
    """A batch for a worker, encoded."""

    model: str
    search: Strategy | None  # None: pairs are scored
    sources: list[Any]  # of each line the parts; of a pair the token ids; of a preparation the arguments
    targets: list[list[int]] | None  # token ids of prefixes, or of translations to score
    confidence: bool = False  # translations come with it
    prepare: Callable[..., Any] | None = None  # what is done instead, with a `LineEncoder` and the arguments
    trace: bool = False  # translations come with what the search did
    head: str | None = None  # of which their alignments are


class Failure(NamedTuple):
    """Why a line has no result."""

    reason: str  # for the client; of an unexpected one, the traceback for the log
    expected: bool


class WorkerDiedError(SoftsearchError):
    """A worker process ended before it answered."""


class Worker:
    """A worker process, seen from the main process; belongs to the event loop that it is opened in."""

    def __init__(
        self, bundles: Mapping[str, Path], sha256: Mapping[str, str], glossaries: Mapping[str, Glossary]
    ) -> None:
        self.freed, self.answered = 0.0, 0  # for the dispatcher: when it was idle again, after how many lines
        self.exitcode: int | None = None  # of the process, after its end
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Any] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._pipe, there = _CONTEXT.Pipe()
        told = there, dict(bundles), dict(sha256), dict(glossaries)
        self._process = _CONTEXT.Process(target=_work, args=told, daemon=True)
        with _signals_blocked():
            self._process.start()
        there.close()  # so that the process has the only copy, and the pipe ends with it
        self.pid = self._process.pid
        atexit.register(self.kill)  # before multiprocessing waits for a process that ignores SIGTERM
        try:
            threading.Thread(target=self._receive, daemon=True, name=f"worker-{self.pid}").start()
        except RuntimeError:  # there may be no more threads
            self.kill()
            raise

    @classmethod
    async def open(
        cls, bundles: Mapping[str, Path], sha256: Mapping[str, str], glossaries: Mapping[str, Glossary]
    ) -> "Worker":
        """Starts a process and waits until it is warm.

        Args:
            bundles: the folders, by the model's name.
            sha256: the hashes of the bundles that it must find there.
            glossaries: that requests may name.

        Raises:
            BundleError: a bundle cannot be opened, or is another one.
            WorkerDiedError: the process died, or hung.
        """
        worker = cls(bundles, sha256, glossaries)
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
        """Sends a batch; the future gets a Translation, a PairScore or a Failure for each line.

        The future raises WorkerDiedError if the process dies.
        """
        self._answer = self._loop.create_future()
        if self.ended.done():
            self._answer.set_exception(WorkerDiedError("a worker process died while it was idle"))
            return self._answer
        self._send(job)
        return self._answer

    async def close(self) -> None:
        """Lets the idle process end."""
        self._send(None)
        done, _ = await asyncio.wait([self.ended], timeout=_CLOSE_SECONDS)
        if not done:
            self.kill()
            await self.ended

    def kill(self) -> None:
        """Ends the process at once."""
        with suppress(ValueError):  # it has been closed
            self._process.kill()

    def _send(self, job: Job | None) -> None:
        """Writes to the pipe in a thread, because a process that hangs does not read, and a full pipe blocks."""

        def send() -> None:
            with suppress(OSError, TypeError):  # it dies, or its pipe is closed between two parts of a job
                self._pipe.send(job)

        try:
            threading.Thread(target=send, daemon=True).start()
        except RuntimeError:  # there may be no more threads; the end of the process ends what waits for it
            self.kill()

    def _receive(self) -> None:
        """Runs in a thread of its own until the process ends."""
        with suppress(RuntimeError):  # the event loop is closed: nobody waits
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
def _signals_blocked() -> Iterator[None]:
    """Processes that are started meanwhile never see these signals, not even before they ignore them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(
    pipe: Connection, bundles: Mapping[str, Path], sha256: Mapping[str, str], glossaries: Mapping[str, Glossary]
) -> None:
    """The worker process: answers jobs until the main process sends None, closes the pipe or dies."""
    GLOSSARIES.update(glossaries)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the main process has gone
        try:
            threading.Thread(target=_die_with_parent, daemon=True).start()
            translators = {name: _open(path, sha256[name]) for name, path in bundles.items()}
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
    from softsearch.runtime.translator import Translator  # only here: it imports ONNX Runtime

    bundle = Bundle.open(path)
    if bundle.sha256 != sha256:
        raise BundleError(f"bundle {path} was changed while it was opened; reload it")
    translator = Translator(bundle, threads=1)
    translator.translate(
        ["."], max_length=2, tgt=next(iter(translator.encoder.languages.targets), None)
    )  # ONNX Runtime allocates at the first call
    return translator


def _answer(translator: "Translator", job: Job) -> list[Any]:
    """The results of a batch; if it fails, of its lines one by one, so that a bad line fails alone."""
    try:
        return list(_run(translator, job))
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not reach the other lines
        if len(job.sources) == 1:
            expected = isinstance(error, SoftsearchError)
            return [Failure(str(error) if expected else traceback_of(error), expected)]
    answers: list[Any] = []
    for index, source in enumerate(job.sources):
        targets = None if job.targets is None else [job.targets[index]]
        answers += _answer(translator, job._replace(sources=[source], targets=targets))
    return answers


def _run(translator: "Translator", job: Job) -> Sequence[Any]:
    if job.prepare is not None:
        return [job.prepare(translator.encoder, *arguments) for arguments in job.sources]
    if job.search is not None:
        samples = 0 if job.confidence else None
        more: dict[str, Any] = {"trace": job.trace, "samples": samples, "head": job.head}
        return translator.translate_parts(job.sources, job.search, job.targets, **more)
    assert job.targets is not None
    return translator.score_ids(job.sources, job.targets)
