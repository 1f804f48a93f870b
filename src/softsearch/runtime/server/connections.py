"""Connections: uvicorn's protocol, which closes them when the client is slow, and refuses requests over too many."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from softsearch.runtime.server.answers import error_response
from softsearch.runtime.server.middleware import OVERLOADED

RECEIVE_SECONDS = 20.0  # from the first byte of a request, or from the start of a connection, to the request's end
SEND_SECONDS = 30.0  # to take what has been sent
MAX_CONNECTIONS = 1000  # beyond them requests are answered with 503; twice as many are not accepted


class Connection(H11Protocol):
    """One client's connection.

    uvicorn limits the time between requests; this limits the time in which a request arrives and a response is taken.
    """

    _receiving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See :class:`asyncio.Protocol`."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that pause_writing tells of every client that does not read
        if len(self.connections) > 2 * MAX_CONNECTIONS:
            transport.abort()
        elif len(self.connections) > MAX_CONNECTIONS:
            self.app_state = {**self.app_state, OVERLOADED: True}
        self._receiving = self.loop.call_later(RECEIVE_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        if self._receiving is None and self.conn.their_state is h11.IDLE:
            self._receiving = self.loop.call_later(RECEIVE_SECONDS, self.transport.abort)
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) and self._receiving is not None:
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
