"""The running server: its start, its reload on SIGHUP, and its graceful stop."""

import asyncio
import gc
import logging
import signal
import socket
from pathlib import Path
from types import FrameType

import uvicorn

from softsearch.errors import ConfigError, SoftsearchError
from softsearch.runtime.server.app import make_app
from softsearch.runtime.server.connections import Connection, most_connections
from softsearch.runtime.server.logs import log_event
from softsearch.runtime.server.service import Service
from softsearch.runtime.web.site import assets

_GRACE = 10  # s that requests which have begun may take on top of the deadline when the server stops
_LAST_WORDS = 5  # s to send the answers that tell of the stop
_GARBAGE = (10_000, 10, 10)  # allocations, and collections of one age, after which objects are searched
_KEEP_ALIVE = 65  # s; proxies keep idle connections for 60 s, and must not ask one that is just being closed
_SIGHUP = getattr(signal, "SIGHUP", None)  # Windows has none


class Server(uvicorn.Server):
    """uvicorn's server, which tells the service when it begins to stop."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See :class:`uvicorn.Server`."""
        self._service.draining = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See :class:`uvicorn.Server`."""
        log_event("stopping")
        dispatcher = self._service.dispatcher
        grace = asyncio.get_running_loop().call_later(dispatcher.limits.deadline + _GRACE, dispatcher.abandon)
        await super().shutdown(sockets)
        grace.cancel()


async def run(service: Service, listener: socket.socket) -> None:
    """Serves until SIGINT or SIGTERM, which is raised again when all requests have been answered.

    Args:
        service: the server behind the routes.
        listener: a socket that listens.

    Raises:
        SoftsearchError: the models cannot be opened.
    """
    dispatcher = service.dispatcher
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
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(dispatcher.limits.deadline) + _GRACE + _LAST_WORDS,
        backlog=2 * Connection.most,
    )
    server = Server(config, service)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    log_event("listening", host=host, port=port, url=f"http://{shown}:{port}/")
    loading = asyncio.create_task(_load(server, service))
    try:
        await server.serve(sockets=[listener])
    finally:
        loading.cancel()
        if server.force_exit:  # Ctrl-C came twice
            dispatcher.abandon()
        await dispatcher.stop()
        log_event("stopped")
    if loading.done() and not loading.cancelled():
        loading.result()  # raises what ended the server


def _page() -> Path | None:
    """The folder of the browser page; a clone may lack it."""
    try:
        return assets()
    except ConfigError as error:
        log_event("no page", level=logging.WARNING, reason=str(error))
        return None


async def _load(server: Server, service: Service) -> None:
    """Opens the models; then they are opened again at every SIGHUP."""
    hangup = asyncio.Event()
    if _SIGHUP is not None:
        asyncio.get_running_loop().add_signal_handler(_SIGHUP, hangup.set)
    try:
        await service.dispatcher.start()
    except BaseException:
        service.draining = server.should_exit = True
        raise
    _log_models("ready", service)
    # What is here now stays: it need not be searched for garbage again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    while await hangup.wait():
        hangup.clear()
        try:
            await service.dispatcher.reload()
        except (SoftsearchError, OSError) as error:
            log_event("reload failed, the old models stay", level=logging.ERROR, reason=str(error))
        else:
            _log_models("reloaded", service)


def _log_models(event: str, service: Service) -> None:
    dispatcher = service.dispatcher
    models = {name: facts.sha256[:16] for name, facts in dispatcher.models.items()}
    log_event(event, models=models, workers=dispatcher.workers)
