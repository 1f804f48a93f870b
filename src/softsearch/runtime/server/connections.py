"""Connections: uvicorn's protocol, which closes them when the client is slow, and refuses requests over too many."""

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from softsearch.runtime.server.answers import error_response
from softsearch.runtime.server.middleware import OVERLOADED

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]

RECEIVE_SECONDS = 20.0  # from the first byte of a request, or from the start of a connection, to the request's end
SEND_SECONDS = 30.0  # to take what has been sent
_HANDLES = 8192  # of files and sockets, which this process asks for; many systems give 1,024 at first


def most_connections() -> int:
    """Raises the soft limit of file handles, and returns the connections that they suffice for, at most 1,000.

    As many more are refused, twice as many may wait to be accepted, and a fifth is for files and worker processes.
    """
    handles = _HANDLES
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            if 0 <= soft < _HANDLES:  # RLIM_INFINITY is negative
                soft = _HANDLES if hard < 0 else min(_HANDLES, hard)
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):  # a sandbox forbids it
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        handles = _HANDLES if soft < 0 else soft
    return max(1, min(1000, handles // 5))


class Connection(H11Protocol):
    """One client's connection.

    uvicorn limits the time between requests; this limits the time in which a request arrives and a response is taken.
    """

    most: ClassVar[int] = 1000  # connections; beyond them the answer is 503, and twice as many are not accepted
    _receiving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See :class:`asyncio.Protocol`."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that pause_writing tells of every client that does not read
        if len(self.connections) > 2 * self.most:
            transport.abort()
        elif len(self.connections) > self.most:
            self.app_state = {**self.app_state, OVERLOADED: True}
        self._receiving = self.loop.call_later(RECEIVE_SECONDS, transport.abort)

    def handle_events(self) -> None:
        """Reads what has arrived, also with an earlier request (pipelining); see :class:`H11Protocol`."""
        super().handle_events()
        state = self.conn.their_state
        arrives = state is h11.SEND_BODY or (state is h11.IDLE and self.conn.trailing_data[0] != b"")
        if arrives and self._receiving is None:
            self._receiving = self.loop.call_later(RECEIVE_SECONDS, self.transport.abort)
        elif not arrives and self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP; see :class:`H11Protocol`."""
        response = error_response(400, "this is no valid HTTP request; correct the client", {"Connection": "close"})
        for event in (
            h11.Response(status_code=400, headers=response.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        """See :class:`asyncio.Protocol`."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """See :class:`asyncio.Protocol`."""
        super().resume_writing()
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        for timer in (self._receiving, self._sending):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
