"""Responses to failed requests: always ``{"error": ...}``, with the status for the error."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from softsearch.errors import SoftsearchError, printable
from softsearch.extras.serve.schema import LIBRE, REQUESTS, TAGS, LibreRequest, TranslateRequest
from softsearch.suggestions import did_you_mean

_SHOWN = 40  # largest number of a client's characters in a message


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Returns an error in the common form."""
    return JSONResponse({"error": printable(message)}, status, headers)


async def _failed(_: Request, error: Any) -> JSONResponse:
    return error_response(getattr(error, "status", 422), str(error), getattr(error, "headers", None))


async def _http_error(request: Request, error: Any) -> JSONResponse:
    path, detail = shown(request.url.path), str(error.detail)
    explained = {
        400: "the body cannot be read; expected JSON in UTF-8",
        404: f"there is nothing at {path}; GET /openapi.json lists all routes",
        405: f"{path} does not support {shown(request.method)}; see the header Allow",
    }
    return error_response(error.status_code, explained.get(error.status_code, detail), error.headers)


async def _invalid(request: Request, error: Any) -> JSONResponse:
    """Names the first wrong field, its value, and what was expected."""
    first = error.errors()[0]
    kind, place, message = first["type"], list(first["loc"]), first["msg"]
    if kind == "json_invalid":
        return error_response(
            400, f"the body is not JSON at character {place[-1]}: {first['ctx']['error']}; correct it"
        )
    model: type[BaseModel] = LibreRequest if LIBRE in place else REQUESTS.get(request.url.path, TranslateRequest)
    names = [part for part in place if part not in TAGS]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{printable(part[:_SHOWN])}" for part in names)[1:]
    if kind == "extra_forbidden":
        advice = did_you_mean(field, model.model_fields) or f"expected some of {', '.join(model.model_fields)}"
        if model is LibreRequest and field in TranslateRequest.model_fields:
            advice = "requests with q are LibreTranslate's; send the sentences as text instead of q"
        return error_response(422, f"{field} is not a field of this request; {advice}")
    if kind == "missing":
        return error_response(422, f"{field or 'the body'} is missing; add it")
    if kind == "value_error":
        reason = str(first["ctx"]["error"])
        return error_response(422, f"{field}: {reason}") if field else error_response(400, reason)
    if not field:
        message = f"an object with {', '.join(model.model_fields)}"
    expected = message.removeprefix("Input should be ")
    if field and expected == message:
        return error_response(422, f"{field}: {message}; correct it")
    found = shown(first["input"])
    return error_response(422, f"{field or 'the body'} is {found}, expected {expected}; correct it")


HANDLERS: Mapping[Any, Any] = {  # for FastAPI
    SoftsearchError: _failed,
    HTTPException: _http_error,
    RequestValidationError: _invalid,
}


def shown(value: Any) -> str:
    """Shortens a client's value: the start of a string or number, or the type of another value."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}..."
    if isinstance(value, list | dict | bytes):
        return {list: "a list", dict: "an object", bytes: "text"}[type(value)]
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN:  # Python refuses to format very large ones
        return "a very large number"
    return json.dumps(value)
