"""What every request passes: its id, the limit of its body, security headers, its log line and its metrics."""

import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from uuid import uuid4

from fastapi import HTTPException

from softsearch.runtime.server.answers import CLIENT_GONE, RETRY_AFTER, error_response
from softsearch.runtime.server.logs import log_event
from softsearch.runtime.server.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEADERS = {  # the page runs threads, for which browsers ask COOP and COEP, and asks nobody but this server
    "content-security-policy": (
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
        "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


OVERLOADED = "overloaded"  # in the state of a request: there are too many connections


async def _refuse(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    headers = {"Retry-After": str(RETRY_AFTER), "Connection": "close"}
    await error_response(503, "too many connections are open; try again later", headers)(scope, receive, send)


class Gate:
    """ASGI middleware, the outermost one of this package.

    Args:
        app: what it wraps.
        metrics: counts requests.
        max_body: bytes of a body.
    """

    def __init__(self, app: App, *, metrics: Metrics, max_body: int) -> None:
        self.app = app
        self.metrics = metrics
        self.max_body = max_body

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handles a request; passes on what is none."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        request_id = _request_id(scope["headers"])
        facts = scope.setdefault("state", {}).setdefault("facts", {})  # that a route adds to the log line
        added = [(name.encode(), value.encode()) for name, value in {**_HEADERS, "x-request-id": request_id}.items()]
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            added.append((b"connection", b"close"))  # a proxy may see other requests behind it (RFC 9112, 6.3)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        try:
            app = _refuse if scope["state"].get(OVERLOADED) else self.app
            await app(scope, self._limited(scope["headers"], receive), send_with_headers)
        except Exception as error:
            log_event("error", level=logging.ERROR, exc_info=error, request_id=request_id)
            if status:  # the response has begun; uvicorn closes the connection
                raise
            await error_response(500, f"internal error; the server's log has the details of request {request_id}")(
                scope, receive, send_with_headers
            )
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", None) or "other"
            self.metrics.on_request(route, status or CLIENT_GONE, seconds)
            log_event(
                "request",
                request_id=request_id,
                method=scope["method"][:16],
                route=route,
                status=status or CLIENT_GONE,
                ms=round(1000 * seconds, 1),
                client=(scope.get("client") or ("",))[0][:64],
                **facts,
            )

    def _limited(self, headers: list[tuple[bytes, bytes]], receive: Receive) -> Receive:
        """Receives no more of a body than the limit, and nothing but UTF-8, which JSON and forms have no NUL in."""
        declared = dict(headers).get(b"content-length", b"")
        # FastAPI passes this exception on to the app's own answers.
        refusal = HTTPException(413, f"the body has more than {self.max_body} bytes; send several requests")
        received = 0

        async def limited() -> Message:
            nonlocal received
            if declared.isdigit() and int(declared[:20]) > self.max_body:
                raise refusal
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.max_body:
                raise refusal
            if b"\0" in message.get("body", b""):
                raise HTTPException(400)
            return message

        return limited


def _request_id(headers: list[tuple[bytes, bytes]]) -> str:
    """The client's own id if it is harmless, or a new one."""
    given = dict(headers).get(b"x-request-id", b"").decode("latin-1")
    return given if _SAFE_ID.fullmatch(given) else uuid4().hex
