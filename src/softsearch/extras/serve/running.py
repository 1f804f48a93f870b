"""Runs the server: uvicorn with time limits for slow clients, start, reload on SIGHUP, and a graceful stop."""

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.serve.access import Service
from softsearch.extras.serve.app import make_app
from softsearch.extras.serve.connection import Connection
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.listening import facts_of, listen
from softsearch.extras.serve.main_process import MainProcess, Order, Ready
from softsearch.extras.serve.monitoring import Metrics, log_event, log_to_stderr
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.web.site import assets

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]

_HANDLES = 8192  # file and socket handles that this process requests; many systems allow 1,024 by default
_GRACE = 10  # s beyond the deadline for open requests when the server stops
_LAST_WORDS = 5  # s to send the last answers
_GARBAGE = (10_000, 10, 10)  # thresholds of garbage collection
_ADDRESS = 65_536  # largest address and headers in bytes; some clients send text in the address
_KEEP_ALIVE = 65  # s; proxies keep idle connections for 60 s, and must not use one that is being closed
_SIGHUP = getattr(signal, "SIGHUP", None)


def most_connections() -> int:
    """Raises the soft limit of file handles; returns the number of connections that they allow, at most 1,000.

    The same number of further connections is refused, twice as many may wait to be accepted, and a fifth of the handles
    is for files and worker processes.
    """
    handles = _HANDLES
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            if 0 <= soft < _HANDLES:  # RLIM_INFINITY is negative
                soft = _HANDLES if hard < 0 else min(_HANDLES, hard)
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):  # forbidden in a sandbox
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        handles = _HANDLES if soft < 0 else soft
    return max(1, min(1000, handles // 5))


class Server(uvicorn.Server):
    """uvicorn's server, which notifies the dispatcher when it begins to stop.

    Args:
        config: uvicorn's options.
        dispatcher: translates.
        main: the main process, whose orders replace signals if there are several HTTP processes.
    """

    def __init__(self, config: uvicorn.Config, dispatcher: Dispatcher, main: MainProcess | None = None) -> None:
        super().__init__(config)
        self.dispatcher, self.main = dispatcher, main
        self.failed = False  # the models could not be loaded, so it never logs that it listens
        self.opened = asyncio.Event()  # the models are loaded, or never will be
        self.hangup = asyncio.Event()  # the models must be loaded again

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles signals while the server runs, unless the main process does."""
        with super().capture_signals() if self.main is None else nullcontext():
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Refuses new requests, and lets the server stop."""
        self.dispatcher.draining = True
        super().handle_exit(sig, frame)
        self.opened.set()

    def obey(self, order: Order) -> None:
        """Does what the main process says."""
        if order is Order.RELOAD:
            self.hangup.set()
        else:  # a second SIGINT makes uvicorn hurry
            self.handle_exit(signal.SIGTERM if order is Order.STOP else signal.SIGINT, None)

    def log(self, event: str, **facts: Any) -> None:
        """Logs an event of the whole server, unless the main process does."""
        if self.main is None:
            log_event(event, **facts)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finishes requests within the grace period, then abandons them."""
        if not self.failed:
            self.log("stopping")
        limit = self.dispatcher.settings.deadline + _GRACE
        grace = asyncio.get_running_loop().call_later(limit, self.dispatcher.abandon)
        await super().shutdown(sockets)
        grace.cancel()


async def run(bundles: Mapping[str, Path], settings: Settings, main: MainProcess | None = None) -> None:
    """Serves until SIGINT or SIGTERM; raises the signal again when all requests have been answered.

    Args:
        bundles: the folder of each model, by the name that clients use.
        settings: the options of the command.
        main: the main process, if this is one of several HTTP processes; it gives the orders and the socket.

    Raises:
        SoftsearchError: the address is in use, the file of keys is wrong, or the models cannot be opened.
    """
    number = main.number if main else 0
    metrics = Metrics(number)
    dispatcher = Dispatcher(bundles, settings, metrics)
    metrics.watch("queue_lines", "Waiting sentences", lambda: dispatcher.waiting)
    metrics.watch("workers", "Warm workers", lambda: dispatcher.workers)
    service = Service(dispatcher, settings, metrics, main.call if main else None)
    listener = main.listener if main else listen(settings.host, settings.port)
    log_to_stderr(number)
    Connection.most = most_connections()
    config = uvicorn.Config(
        make_app(service, page=_page()),
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_ADDRESS,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.deadline) + _GRACE + _LAST_WORDS,
        backlog=2 * Connection.most,
    )
    server = Server(config, dispatcher, main)
    server.log("loading", models=list(bundles))
    loading = asyncio.create_task(_load(server, facts_of(listener)))
    if main:
        main.begin(server.obey, metrics)
    try:
        if main and main.replaces:  # the others answer until this one can
            await server.opened.wait()
        await server.serve(sockets=[listener])
    finally:
        loading.cancel()
        if server.force_exit:  # after a second Ctrl-C
            dispatcher.abandon()
        await dispatcher.stop()
        if not server.failed:
            server.log("stopped")
    if loading.done() and not loading.cancelled():
        loading.result()  # raises the error that ended the server


def _page() -> Path | None:
    """Returns the folder of the browser page, if it is built."""
    try:
        return assets()
    except ConfigError as error:
        log_event("no page", level=logging.WARNING, reason=str(error))
        return None


async def _load(server: Server, listening: Mapping[str, Any]) -> None:
    """Opens the models, says so, and reloads them at every SIGHUP.

    Raises:
        SoftsearchError: the models cannot be opened the first time.
    """
    dispatcher = server.dispatcher
    if _SIGHUP is not None and server.main is None:  # Windows has neither SIGHUP nor signal handlers of event loops
        asyncio.get_running_loop().add_signal_handler(_SIGHUP, server.hangup.set)
    try:
        await dispatcher.load()
    except asyncio.CancelledError:  # ended by a signal
        raise
    except BaseException:
        server.failed = dispatcher.draining = server.should_exit = True
        raise
    finally:
        server.opened.set()
    server.log("listening", **listening)
    server.log("ready", **_models(dispatcher))
    if server.main:
        server.main.tell(Ready(_models(dispatcher)))
    # Objects created so far are kept, so they need not be searched for garbage.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    while await server.hangup.wait():
        server.hangup.clear()
        try:
            await dispatcher.load()
        except Exception as error:  # noqa: BLE001 - the loop must continue for the next reload
            expected = isinstance(error, SoftsearchError | OSError)
            log_event(
                "reload failed, the old models stay",
                level=logging.ERROR,
                exc_info=None if expected else error,
                reason=str(error),
            )
        else:
            log_event("reloaded", **_models(dispatcher))


def _models(dispatcher: Dispatcher) -> dict[str, Any]:
    models = {name: facts.sha256[:16] for name, facts in dispatcher.models.items()}
    return {"models": models, "workers": dispatcher.workers}
