"""The routes of files: LibreTranslate's upload, with progress for those who want it, and its download."""

import re
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from softsearch.errors import SoftsearchError, printable
from softsearch.extras.serve import schema
from softsearch.extras.serve.access import Served
from softsearch.extras.serve.admission import FILE, FORM
from softsearch.extras.serve.files import Files
from softsearch.extras.serve.gone import unless_gone
from softsearch.extras.serve.line_queue import RequestError
from softsearch.extras.serve.routes import EVENT_HEADERS, FAILURES
from softsearch.extras.serve.shared_state import FILE_SECONDS, State
from softsearch.extras.shared.served_files import REVIEW, WrittenFile

_EVENTS = "text/event-stream"
_PREFIX = re.compile(r"(?:/[\w.~-]+)+")  # of the server's addresses behind a proxy
_BODY = {
    "type": "object",
    "required": ["file", "source", "target"],
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "A file of a kind in GET /frontend/settings."},
        "existing": {
            "type": "string",
            "format": "binary",
            "description": "The target's file, of formats with a file for each language: its texts stay.",
        },
        "source": {"type": "string", "description": 'A language of GET /languages, or "auto".', "example": "en"},
        "target": {"type": "string", "description": "The target language.", "example": "de"},
        "api_key": {"type": "string", "description": "A key, if the server asks for one; before the file."},
    },
}
_SAID: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "where the file is; with `Accept: text/event-stream` events `progress` with lines `done` and "
        "`of`, then `done` with this answer, or `error` with an error",
        "content": {_EVENTS: {}},
    }
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    404: {"model": schema.Error, "description": "there is no such file, or no more"},
}
_NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "The end of a `translatedFileUrl`.",
}
router = APIRouter(tags=["Requests"])


@router.post(
    FILE,
    response_model=schema.FileResponse,
    responses=FAILURES | _SAID,
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _BODY}}}},
)
async def translate_file(request: Request, service: Served) -> Response:
    """Translates a file: a message catalog or plain text."""
    files: Files = request.app.state.files
    kind, sent, name = files.read(getattr(request.state, FORM))
    found = files.translate(kind, sent, partial(service.count, request))
    begun = await unless_gone(request, anext(found))  # an error before this has its own status

    async def answer(written: WrittenFile) -> dict[str, Any]:
        key = await service.shared(State.keep_file, name, written.content)
        address = f"{_address(request)}/download_file/{quote(key)}"
        review = {"review": written.review, "reviewName": name + REVIEW}
        return {"translatedFileUrl": address, "report": dict(written.report), **review}

    async def events() -> AsyncIterator[str]:
        yield _event("progress", dict(zip(("done", "of"), begun, strict=True)))
        try:
            async for each in found:
                yield (
                    _event("done", await answer(each))
                    if isinstance(each, WrittenFile)
                    else _event("progress", dict(zip(("done", "of"), each, strict=True)))
                )
        except SoftsearchError as error:
            yield _event("error", {"error": printable(str(error))})

    if _EVENTS in request.headers.get("accept", ""):
        return StreamingResponse(events(), media_type=_EVENTS, headers=EVENT_HEADERS)
    written = await unless_gone(request, _last(found))
    return JSONResponse(await answer(written))


async def _last(found: AsyncIterator[Any]) -> WrittenFile:
    return [each async for each in found][-1]


def _event(name: str, data: Sequence[Any] | dict[str, Any]) -> str:
    return f"event: {name}\ndata: {schema.dumps(data, ensure_ascii=True)}\n\n"


def _address(request: Request) -> str:
    """The address of this server as the client knows it, also behind a proxy that says so."""
    prefix = request.headers.get("x-forwarded-prefix", "").rstrip("/")
    return f"{request.url.scheme}://{request.url.netloc}" + (prefix if _PREFIX.fullmatch(prefix) else "")


@router.get("/download_file/{name}", response_class=Response, responses=_FILE, openapi_extra={"parameters": [_NAME]})
async def download_file(request: Request, service: Served) -> Response:
    """Returns a translated file, to whoever knows its name."""
    name = request.path_params["name"]
    content = await service.shared(State.file, name)
    if content is None:
        minutes = f"{FILE_SECONDS / 60:.0f} minutes"
        raise RequestError(404, f"there is no file of this name, or no more: it is kept for {minutes}; send it again")
    sent = {"Content-Disposition": f'attachment; filename="{name.partition(".")[2]}"', "Cache-Control": "no-store"}
    return Response(content, media_type="application/octet-stream", headers=sent)
