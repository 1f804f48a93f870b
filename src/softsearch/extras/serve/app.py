"""The HTTP server as an ASGI application with its middleware."""

import logging
import re
import time
from functools import partial
from pathlib import Path
from uuid import uuid4

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import softsearch
from softsearch.extras.serve.access import Service
from softsearch.extras.serve.admission import FILE, ROUTE, Admission
from softsearch.extras.serve.answers import HANDLERS, error_response
from softsearch.extras.serve.file_routes import router as file_router
from softsearch.extras.serve.files import Files
from softsearch.extras.serve.gone import CLIENT_GONE
from softsearch.extras.serve.monitoring import Metrics, log_event
from softsearch.extras.serve.openapi import document
from softsearch.extras.serve.routes import router

OVERLOADED = "overloaded"  # set in the state of a request if there are too many connections
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEADERS = {  # the page uses threads, which need COOP and COEP, and sends requests only to this server
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


def make_app(service: Service, *, page: Path | None = None) -> FastAPI:
    """Creates the application with routes and middleware.

    Args:
        service: the server behind the routes; ``app.state`` holds it, and its files.
        page: the folder of the browser page, if it is built.
    """
    app = FastAPI(
        title="softsearch",
        version=softsearch.__version__,
        description="Translates with exported models.",
        docs_url=None,  # FastAPI's pages load scripts from another host
        redoc_url=None,
        redirect_slashes=False,  # redirects would go to a host named by the client
        generate_unique_id_function=lambda route: route.name,
        exception_handlers=dict(HANDLERS),
    )
    app.state.service, app.state.files = service, Files(service)
    app.openapi = partial(document, app, service)  # type: ignore[method-assign]  # FastAPI's way to change it
    app.add_middleware(Admission, service=service)
    if service.settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.settings.cors,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["Retry-After", "X-Request-ID"],
            allow_private_network=True,  # browsers ask whether a page on the internet may use a server at home
        )
    app.add_middleware(Gate, metrics=service.metrics, max_body=service.settings.max_body)
    app.include_router(router)
    app.include_router(file_router)
    if page is not None:
        _add_page(app, page)
    return app


def _add_page(app: FastAPI, page: Path) -> None:
    """Adds a route for each file: one for all would also answer wrong methods of the other routes."""
    files = StaticFiles(directory=page)
    paths = {"/": "index.html", "/docs": "docs/index.html"}
    paths |= {f"/{name}": name for path in page.rglob("*.*") if (name := path.relative_to(page).as_posix())}

    async def send(request: Request) -> Response:
        return await files.get_response(paths[request.scope["route"].path], request.scope)

    for path in paths:
        app.add_api_route(path, send, methods=["GET", "HEAD"], include_in_schema=False)


class Gate:
    """ASGI middleware around the app: request ids, body size limit, security headers, log lines and metrics.

    Args:
        app: the wrapped application.
        metrics: counts requests.
        max_body: largest body in bytes.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, max_body: int) -> None:
        self.app, self.metrics, self.max_body = app, metrics, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        start, status, headers = time.perf_counter(), CLIENT_GONE, Headers(scope=scope)
        method = scope["method"]
        if method == "HEAD":  # same response as GET; uvicorn sends only its headers
            scope = {**scope, "method": "GET"}
        given = headers.get("x-request-id", "")
        request_id = given if _SAFE_ID.fullmatch(given) else uuid4().hex
        facts = scope.setdefault("state", {}).setdefault("facts", {})  # facts that a route adds to the log line
        added = {**_HEADERS, "x-request-id": request_id}
        if "content-length" in headers and "transfer-encoding" in headers:
            added["connection"] = "close"  # a proxy might read further requests after it (RFC 9112, 6.3)
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name.encode(), value.encode()) for name, value in added.items()),
                ]
            await send(message)

        try:
            app = _refuse if scope["state"].get(OVERLOADED) else self.app
            await app(scope, self._limited(headers, receive, is_file=scope["path"] == FILE), send_with_headers)
        except Exception as error:
            log_event("error", level=logging.ERROR, exc_info=error, request_id=request_id)
            if begun:  # uvicorn then closes the connection
                raise
            failure = error_response(500, f"internal error; the server's log has the details of request {request_id}")
            await failure(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", None) or scope["state"].get(ROUTE, "other")
            self.metrics.on_request(route, status, seconds)
            log_event(
                "request",
                request_id=request_id,
                method=method[:16],
                route=route,
                status=status,
                ms=round(1000 * seconds, 1),
                client=(scope.get("client") or ("",))[0][:64],
                **facts,
            )

    def _limited(self, headers: Headers, receive: Receive, *, is_file: bool) -> Receive:
        """Returns a receiver of a body up to the limit; JSON and forms without files have no NUL."""
        declared = headers.get("content-length", "")
        # FastAPI passes this exception to the app's own handlers.
        advice = "divide the file, or raise --max-body" if is_file else "send several requests"
        refusal = HTTPException(413, f"the body has more than {self.max_body} bytes; {advice}")
        received = 0

        async def limited() -> Message:
            nonlocal received
            if declared.isdecimal() and int(declared[:20]) > self.max_body:
                raise refusal
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.max_body:
                raise refusal
            if b"\0" in message.get("body", b"") and not is_file:
                raise HTTPException(400)
            return message

        return limited


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"Retry-After": "5", "Connection": "close"}
    await error_response(503, "too many connections are open; try again later", headers)(scope, receive, send)
