"""Blocks of a stream in several processes, each with a translator of its own."""

import multiprocessing
import signal
from collections.abc import Generator, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import cast

from softsearch.errors import SoftsearchError
from softsearch.runtime.block_translation import Block, Translate, TranslatedBlock
from softsearch.runtime.translator import Translator

_CONTEXT = multiprocessing.get_context("spawn")  # not fork, which copies the threads' locks
_AHEAD = 4  # blocks for each process that may wait for one before them


def in_processes(
    translator: Translator, blocks: Iterator[Block], translate: Translate, count: int
) -> Generator[tuple[Block, TranslatedBlock]]:
    """Yields blocks with their translations, in order; errors come after the blocks before them."""
    processes = [_Process(translator, translate) for _ in range(count)]
    work = _Work(processes)
    try:
        while True:
            try:
                block = next(blocks, None)
            except SoftsearchError:
                yield from work.rest()
                raise
            if block is None or block.is_empty:  # reading on might wait for the answers to what was read
                yield from work.rest()
            else:
                while not work.has_room:
                    work.receive()
                    yield from work.done()
                work.begin(block)
            if block is None:
                return
    finally:
        for process in processes:
            process.end()


class _Process:
    """A process, which has at most one block at a time."""

    def __init__(self, translator: Translator, translate: Translate) -> None:
        self.pipe, there = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_work, args=(there, translator, translate), daemon=True)
        self._process.start()
        there.close()
        self.block: Block | None = None
        self.place = 0  # of the block among all

    def begin(self, block: Block, place: int) -> None:
        """Gives it a block."""
        self.block, self.place = block, place
        with suppress(OSError):  # it has died, which ``receive`` finds
            self.pipe.send(block)

    def receive(self) -> tuple[Block, TranslatedBlock | SoftsearchError]:
        """Returns the block and its answer; an error if the process has died."""
        assert self.block is not None
        try:
            return self.block, self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            return self.block, SoftsearchError(
                f"one of the processes died with exit code {self._process.exitcode} while it translated lines from "
                f"{self.block.first_line} on; if memory was short, lower --processes or --batch-tokens"
            )

    def end(self) -> None:
        """Ends it at once."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


class _Work:
    """Blocks that are being translated, or wait for those before them."""

    def __init__(self, processes: list[_Process]) -> None:
        self._idle, self._busy = list(processes), dict[Connection, _Process]()
        self._most = _AHEAD * len(processes)
        self._found: dict[int, tuple[Block, TranslatedBlock | SoftsearchError]] = {}
        self._begun = self._yielded = 0

    @property
    def has_room(self) -> bool:
        """Tells whether a process is idle, and not too many blocks wait for one before them."""
        return bool(self._idle) and self._begun - self._yielded < self._most

    def begin(self, block: Block) -> None:
        """Gives a block to an idle process."""
        process = self._idle.pop()
        process.begin(block, self._begun)
        self._busy[process.pipe] = process
        self._begun += 1

    def done(self) -> Iterator[tuple[Block, TranslatedBlock]]:
        """Yields what is ready, in order."""
        while self._yielded in self._found:
            block, answer = self._found.pop(self._yielded)
            self._yielded += 1
            if isinstance(answer, SoftsearchError):
                raise answer
            yield block, answer

    def rest(self) -> Iterator[tuple[Block, TranslatedBlock]]:
        """Yields everything, in order, as soon as it is ready."""
        yield from self.done()
        while self._busy:
            self.receive()
            yield from self.done()

    def receive(self) -> None:
        """Waits for the next answers."""
        for pipe in cast(list[Connection], wait(self._busy)):
            process = self._busy.pop(pipe)
            self._found[process.place] = process.receive()
            self._idle.append(process)


def _work(pipe: Connection, translator: Translator, translate: Translate) -> None:
    """Runs in a process, until its pipe is closed; Ctrl-C is for the main process, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            block = pipe.recv()
            try:
                answer: TranslatedBlock | SoftsearchError = translate(translator, block)
            except SoftsearchError as error:
                answer = error
            pipe.send(answer)
