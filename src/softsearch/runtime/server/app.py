"""The HTTP server as an ASGI application."""

from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.staticfiles import StaticFiles

import softsearch
from softsearch.runtime.server.answers import add_answers
from softsearch.runtime.server.middleware import Gate
from softsearch.runtime.server.routes import router
from softsearch.runtime.server.service import Service


def make_app(service: Service, *, page: Path | None = None) -> FastAPI:
    """The routes, and what every request passes.

    Args:
        service: the server behind the routes; :attr:`app.state.service` holds it.
        page: the folder of the browser page, if it is built.
    """
    app = FastAPI(
        title="softsearch",
        version=softsearch.__version__,
        description="Translates with exported models.",
        docs_url=None,  # these pages load their scripts from another host
        redoc_url=None,
        redirect_slashes=False,  # to a host that the client names
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    add_answers(app)
    if service.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["Retry-After", "X-Request-ID"],
        )
    app.add_middleware(Gate, metrics=service.metrics, max_body=service.limits.body)
    app.include_router(router)
    if page is not None:
        _add_page(app, page)
    return app


def _add_page(app: FastAPI, page: Path) -> None:
    """A route for each file: one for all of them would answer for every other route's wrong methods."""
    files = StaticFiles(directory=page)
    paths = {"/": "index.html", "/docs": "docs/index.html"}
    paths |= {f"/{name}": name for path in page.rglob("*.*") if (name := path.relative_to(page).as_posix())}

    async def send(request: Request) -> Response:
        return await files.get_response(paths[request.scope["route"].path], request.scope)

    for path in paths:
        app.add_api_route(path, send, methods=["GET", "HEAD"], include_in_schema=False)
