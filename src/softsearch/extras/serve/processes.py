"""Several HTTP processes on one port, each with its share of the workers; a main process starts and stops them.

It alone obeys signals, has what they share, and replaces those that die.
"""

import asyncio
import logging
import multiprocessing
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from socket import socket
from typing import Any, NamedTuple

from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.serve.channel import Channel
from softsearch.extras.serve.listening import facts_of, joined, reserve
from softsearch.extras.serve.main_process import Answer, Call, Failed, MainProcess, Order, Ready
from softsearch.extras.serve.monitoring import log_event, log_to_stderr
from softsearch.extras.serve.settings import Settings, is_shortage
from softsearch.extras.serve.shared_state import State
from softsearch.extras.serve.workers import ignore_signals, signals_blocked
from softsearch.machine import cores

_CONTEXT = multiprocessing.get_context("spawn")
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # s between attempts to replace a process
_GRACE = 30.0  # s beyond the deadline and the longest batch, until a process that does not stop is killed


class _News(Enum):
    ENDED = auto()  # an HTTP process has ended
    LATE = auto()  # the processes have not stopped in time


class _Replace(NamedTuple):
    """A process that died must be replaced now."""

    number: int


def run_processes(bundles: Mapping[str, Path], settings: Settings) -> None:
    """Serves until SIGINT or SIGTERM; exits when all requests have been answered.

    Args:
        bundles: the folder of each model, by the name that clients use.
        settings: the options of the command.

    Raises:
        ConfigError: there are fewer workers than processes, or this is not Linux.
        SoftsearchError: the address is in use, or a process could not open the models.
        SystemExit: a signal ended the server.
    """
    count, workers = settings.processes, settings.workers or max(cores(), settings.processes)
    if workers < count:
        raise ConfigError(
            f"--workers is {workers}, expected at least one for each of --processes ({count}); change one"
        )
    log_to_stderr()
    if count > cores():
        log_event(
            "more HTTP processes than cores", level=logging.WARNING, processes=count, cores=cores(), advice="use fewer"
        )
    share, rest = divmod(workers, count)
    each = [replace(settings, workers=share + (number < rest)) for number in range(count)]
    with reserve(settings.host, settings.port) as address:
        log_event("loading", models=list(bundles), processes=count)
        _Server(bundles, each, address).run()


class _HttpProcess:
    """An HTTP process, from the main process.

    Args:
        main: the server.
        number: of the process, from 1.
        replaces: whether it replaces one that died.
    """

    def __init__(self, main: "_Server", number: int, *, replaces: bool) -> None:
        self.number, self.replaces, self.ready = number, replaces, False
        self._main = main
        host, port = main.address.getsockname()[:2]
        pipe, there = _CONTEXT.Pipe()
        with joined(host, port) as listener:  # which the started process holds open
            arguments = there, number, listener, replaces, main.bundles, main.settings[number - 1]
            self.process = _CONTEXT.Process(target=_serve, args=arguments, name=f"http-{number}")
            with signals_blocked():
                self.process.start()
        there.close()
        self.channel = Channel(pipe, self._receive, self._end)

    def _receive(self, message: Call | Ready | Failed) -> None:
        if isinstance(message, Call):
            self.channel.send(Answer(message.method(self._main.state, *message.arguments)))
        else:
            self._main.events.put((self, message))

    def _end(self) -> None:
        self.process.join()
        self._main.state.forget(self.number)
        self._main.events.put((self, _News.ENDED))


class _Server:
    """The main process's state."""

    def __init__(self, bundles: Mapping[str, Path], settings: list[Settings], address: socket) -> None:
        self.bundles, self.settings, self.address = dict(bundles), settings, address
        self.state = State()
        self.events: SimpleQueue[Any] = SimpleQueue()
        self._processes: set[_HttpProcess] = set()
        self._pauses = dict.fromkeys(range(1, len(settings) + 1), _FIRST_PAUSE)
        self._started = False
        self._signal = 0  # that stops the server
        self._failure: Exception | None = None  # why it could not start

    def run(self) -> None:
        """Starts the processes, and handles events until all have ended."""
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, lambda number, _: self.events.put(number))
        try:
            for number in self._pauses:
                self._processes.add(_HttpProcess(self, number, replaces=False))
            while self._processes or not (self._signal or self._failure):
                self._handle(self.events.get())
        finally:
            for process in self._processes:
                process.process.kill()
        if self._failure:
            raise self._failure
        log_event("stopped")
        raise SystemExit(128 + self._signal)

    def _handle(self, event: Any) -> None:
        match event:
            case int():
                self._on_signal(event)
            case _News.LATE:
                for process in self._processes:
                    log_event("HTTP process does not stop and is killed", level=logging.ERROR, process=process.number)
                    process.process.kill()
            case _Replace(number) if not self._signal:
                self._processes.add(_HttpProcess(self, number, replaces=True))
            case process, Ready(facts):
                self._on_ready(process, facts)
            case process, Failed(error):
                self._on_failure(process, error)
            case process, _News.ENDED:
                self._on_end(process)

    def _on_signal(self, number: int) -> None:
        if number not in (signal.SIGINT, signal.SIGTERM):
            self._order(Order.RELOAD)
        elif not self._signal:
            self._signal = number
            log_event("stopping")
            self._order(Order.STOP)
            settings = self.settings[0]
            self._later(settings.deadline + settings.batch_timeout + _GRACE, _News.LATE)
        elif number == signal.SIGINT:
            self._order(Order.HURRY)

    def _order(self, order: Order) -> None:
        for process in self._processes:
            process.channel.send(order)

    def _on_ready(self, process: _HttpProcess, facts: Mapping[str, Any]) -> None:
        process.ready = True
        self._pauses[process.number] = _FIRST_PAUSE
        if self._started:
            log_event("HTTP process replaced", process=process.number, **facts)
        elif all(each.ready for each in self._processes):
            self._started = True
            log_event("listening", **facts_of(self.address))
            workers = sum(settings.workers or 0 for settings in self.settings)
            log_event("ready", **{**facts, "workers": workers}, processes=len(self._processes))

    def _on_failure(self, process: _HttpProcess, error: Exception) -> None:
        if self._started:
            log_event("HTTP process cannot start", level=logging.ERROR, process=process.number, reason=str(error))
        else:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        for process in self._processes:
            process.process.kill()

    def _on_end(self, process: _HttpProcess) -> None:
        self._processes.discard(process)
        code, number = process.process.exitcode, process.number
        if self._signal or self._failure:
            return
        if not self._started:
            message = f"HTTP process {number} died with exit code {code} while it started"
            self._fail(SoftsearchError(f"{message}; give the server more memory, or lower --processes"))
            return
        pause = self._pauses[number]
        self._pauses[number] = min(2 * pause, _LONGEST_PAUSE)
        log_event(
            "HTTP process died and is replaced", level=logging.ERROR, process=number, exitcode=code, seconds=pause
        )
        self._later(pause, _Replace(number))

    def _later(self, seconds: float, event: _News | _Replace) -> None:
        timer = threading.Timer(seconds, self.events.put, (event,))
        timer.daemon = True
        timer.start()


def _serve(
    pipe: Connection, number: int, listener: socket, replaces: bool, bundles: Mapping[str, Path], settings: Settings
) -> None:
    """Runs in an HTTP process."""
    from softsearch.extras.serve.running import run  # here, because only HTTP processes need FastAPI

    async def serve() -> None:
        main = MainProcess(pipe, number, listener, replaces=replaces)
        try:
            await run(bundles, settings, main)
        except (SoftsearchError, MemoryError, RuntimeError, ImportError, OSError) as error:
            if not isinstance(error, SoftsearchError) and not is_shortage(error):
                raise
            main.tell(Failed(error))
        main.close()

    ignore_signals()
    asyncio.run(serve())
