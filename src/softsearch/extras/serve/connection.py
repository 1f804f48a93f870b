"""One client's connection, with limits on the time to send a request and to read an answer."""

import asyncio
import socket
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from softsearch.extras.serve.answers import error_response
from softsearch.extras.serve.app import OVERLOADED

RECEIVE_SECONDS = 20.0  # from the first byte of a request, or the start of a connection, to the end of the request
SEND_SECONDS = 30.0  # for a client to read what was sent


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
