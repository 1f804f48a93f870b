"""Runs the server: uvicorn with time limits for slow clients, start, reload on SIGHUP, and a graceful stop."""

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.serve.access import Service
from softsearch.extras.serve.answers import error_response
from softsearch.extras.serve.app import OVERLOADED, make_app
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.monitoring import Metrics, log_event, log_to_stderr
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.web.site import assets

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]

RECEIVE_SECONDS = 20.0  # from the first byte of a request, or the start of a connection, to the end of the request
SEND_SECONDS = 30.0  # for a client to read what was sent
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


class Connection(H11Protocol):
    """One client's connection.

    uvicorn limits the time between requests; this class limits the time to receive a request and to send a response.
    """

    most: ClassVar[int] = (
        1000  # connections; above it the answer is 503, and above twice this number they are not accepted
    )
    _receiving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admits a new connection, or refuses it if there are too many."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that pause_writing is called for every client that does not read
        # Or an answer's body waits 40 ms for the client's ACK of its head. asyncio does it for other listeners only.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > 2 * self.most:
            transport.abort()
        elif len(self.connections) > self.most:
            self.app_state = {**self.app_state, OVERLOADED: True}
        self._receiving = self.loop.call_later(RECEIVE_SECONDS, transport.abort)

    def handle_events(self) -> None:
        """Reads what has arrived, also after an earlier request (pipelining); see ``H11Protocol``."""
        super().handle_events()
        state = self.conn.their_state
        arrives = state is h11.SEND_BODY or (state is h11.IDLE and self.conn.trailing_data[0] != b"")
        if arrives and self._receiving is None:
            self._receiving = self.loop.call_later(RECEIVE_SECONDS, self.transport.abort)
        elif not arrives and self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def send_400_response(self, msg: str) -> None:
        """Answers a request that is not HTTP; see ``H11Protocol``."""
        response = error_response(400, "this is not a valid HTTP request; correct the client", {"Connection": "close"})
        for event in (
            h11.Response(status_code=400, headers=response.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        """Drops a client that does not read its answer in time."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stops the timer for a client that reads again."""
        super().resume_writing()
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the timers of a closed connection."""
        for timer in (self._receiving, self._sending):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """uvicorn's server, which notifies the dispatcher when it begins to stop."""

    def __init__(self, config: uvicorn.Config, dispatcher: Dispatcher) -> None:
        super().__init__(config)
        self.dispatcher = dispatcher
        self.failed = False  # the models could not be loaded, so it never logs that it listens

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Refuses new requests, and lets the server stop."""
        self.dispatcher.draining = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finishes requests within the grace period, then abandons them."""
        if not self.failed:
            log_event("stopping")
        limit = self.dispatcher.settings.deadline + _GRACE
        grace = asyncio.get_running_loop().call_later(limit, self.dispatcher.abandon)
        await super().shutdown(sockets)
        grace.cancel()


async def run(bundles: Mapping[str, Path], settings: Settings) -> None:
    """Serves until SIGINT or SIGTERM; raises the signal again when all requests have been answered.

    Args:
        bundles: the folder of each model, by the name that clients use.
        settings: the options of the command.

    Raises:
        SoftsearchError: the address is in use, the file of keys is wrong, or the models cannot be opened.
    """
    metrics = Metrics()
    dispatcher = Dispatcher(bundles, settings, metrics)
    metrics.watch("queue_lines", "Waiting sentences", lambda: dispatcher.waiting)
    metrics.watch("workers", "Warm workers", lambda: dispatcher.workers)
    service = Service(dispatcher, settings, metrics)
    listener = _listen(settings.host, settings.port)
    log_to_stderr()
    Connection.most = most_connections()
    config = uvicorn.Config(
        make_app(service, page=_page()),
        http=Connection,
        loop="asyncio",
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
    server = Server(config, dispatcher)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    log_event("loading", models=list(bundles))
    listening = {"host": host, "port": port, "url": f"http://{shown}:{port}/"}
    loading = asyncio.create_task(_load(server, listening))
    try:
        await server.serve(sockets=[listener])
    finally:
        loading.cancel()
        if server.force_exit:  # after a second Ctrl-C
            dispatcher.abandon()
        await dispatcher.stop()
        if not server.failed:
            log_event("stopped")
    if loading.done() and not loading.cancelled():
        loading.result()  # raises the error that ended the server


def _listen(host: str, port: int) -> socket.socket:
    """Opens a listening socket."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise SoftsearchError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another --port or --host"
        ) from error


def _page() -> Path | None:
    """Returns the folder of the browser page, if it is built."""
    try:
        return assets()
    except ConfigError as error:
        log_event("no page", level=logging.WARNING, reason=str(error))
        return None


async def _load(server: Server, listening: Mapping[str, Any]) -> None:
    """Opens the models, logs it, and reloads them at every SIGHUP.

    Raises:
        SoftsearchError: the models cannot be opened the first time.
    """
    dispatcher, hangup = server.dispatcher, asyncio.Event()
    if _SIGHUP is not None:  # Windows has neither SIGHUP nor signal handlers of event loops
        asyncio.get_running_loop().add_signal_handler(_SIGHUP, hangup.set)
    try:
        await dispatcher.load()
    except asyncio.CancelledError:  # ended by a signal
        raise
    except BaseException:
        server.failed = dispatcher.draining = server.should_exit = True
        raise
    log_event("listening", **listening)
    _log_models("ready", dispatcher)
    # Objects created so far are kept, so they need not be searched for garbage.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    while await hangup.wait():
        hangup.clear()
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
            _log_models("reloaded", dispatcher)


def _log_models(event: str, dispatcher: Dispatcher) -> None:
    models = {name: facts.sha256[:16] for name, facts in dispatcher.models.items()}
    log_event(event, models=models, workers=dispatcher.workers)
