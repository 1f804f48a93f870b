"""Answers to requests that fail: one shape, ``{"error": ...}``, with the status that fits the error."""

import json
import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from softsearch.errors import ConfigError, InputError, SoftsearchError, printable
from softsearch.runtime.server.errors import DeadlineError, LineError, NotReadyError, QueueFullError
from softsearch.runtime.server.schema import (
    LIBRE,
    MANY,
    NATIVE,
    ONE,
    Error,
    LibreRequest,
    ScoreRequest,
    StreamRequest,
    TranslateRequest,
)

_SHOWN = 40  # characters of what a client sent, at most
_MODELS: dict[str, type[BaseModel]] = {
    "/translate": TranslateRequest,
    "/translate/stream": StreamRequest,
    "/score": ScoreRequest,
}
RETRY_AFTER = 5  # s, where the queue does not tell
CLIENT_GONE = 499  # nginx's number; nobody reads this answer, it is for the log
FAILURES: dict[int | str, dict[str, Any]] = {  # for the OpenAPI document
    status: {"model": Error, "description": description}
    for status, description in {
        400: "the body is not JSON, or a language pair is unknown",
        401: "no valid API key, where the server asks for one",
        403: "a form from a page of another origin",
        413: "the body is too large",
        422: "a field, a sentence or an option is wrong",
        500: "an error of the server, which is in its log",
        503: "the server is overloaded, or not ready; see Retry-After",
        504: "the deadline passed",
    }.items()
}


class RefusedError(SoftsearchError):
    """A request that the server refuses.

    Args:
        status: of the response.
        message: what is wrong, found and expected, and what to do.
        headers: of the response.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class ClientGoneError(Exception):
    """The client closed its connection before the answer."""


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The one shape of errors."""
    return JSONResponse({"error": printable(message)}, status, headers)


def answer(error: SoftsearchError) -> JSONResponse:
    """The answer to a request that failed."""
    match error:
        case RefusedError():
            return error_response(error.status, str(error), error.headers)
        case QueueFullError():
            return error_response(503, str(error), {"Retry-After": str(max(1, math.ceil(error.retry_after)))})
        case NotReadyError():
            return error_response(503, str(error), {"Retry-After": str(RETRY_AFTER)})
        case DeadlineError():
            return error_response(504, str(error))
        case LineError() | InputError() | ConfigError():
            return error_response(422, str(error))
    return error_response(500, str(error))  # WorkerLostError, InternalError: the messages are written for the client


def add_answers(app: FastAPI) -> None:
    """Makes an app answer failures in this way."""

    async def failed(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, SoftsearchError)
        return answer(error)

    async def http_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        explained = {
            400: "the body cannot be read; expected JSON in UTF-8",
            404: f"there is nothing at {shown(request.url.path)}; GET /openapi.json lists what there is",
            405: f"{shown(request.url.path)} does not take {shown(request.method)}; see the header Allow",
        }
        return error_response(error.status_code, explained.get(error.status_code, str(error.detail)), error.headers)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return _invalid(request.url.path, error)

    async def gone(_: Request, __: Exception) -> JSONResponse:
        return error_response(CLIENT_GONE, "the client closed its connection")

    app.add_exception_handler(SoftsearchError, failed)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(ClientGoneError, gone)


def shown(value: Any) -> str:
    """What a client sent, in short: the start of a string or number, the kind of anything else."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}..."
    if isinstance(value, list | dict | bytes):
        return {list: "a list", dict: "an object", bytes: "text"}[type(value)]
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN:  # Python refuses to write very long ones
        return "a very large number"
    return json.dumps(value)


def _invalid(path: str, error: RequestValidationError) -> JSONResponse:
    """Names the first field that is wrong, its value, and what was expected."""
    first = error.errors()[0]
    kind, place, message = first["type"], list(first["loc"]), first["msg"]
    if kind == "json_invalid":
        return error_response(
            400, f"the body is not JSON at character {place[-1]}: {first['ctx']['error']}; correct it"
        )
    model = LibreRequest if LIBRE in place else _MODELS.get(path, TranslateRequest)
    names = [part for part in place if part not in ("body", ONE, MANY, NATIVE, LIBRE)]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{printable(part[:_SHOWN])}" for part in names)[1:]
    if kind == "extra_forbidden":
        near = get_close_matches(field, model.model_fields, n=1)
        advice = f"did you mean {near[0]}?" if near else f"expected some of {', '.join(model.model_fields)}"
        return error_response(422, f"{field} is not a field of this request; {advice}")
    if kind == "missing":
        return error_response(422, f"{field or 'the body'} is missing; add it")
    found = shown(first["input"])
    if kind == "model_type" or kind == "model_attributes_type":
        return error_response(422, f"the body is {found}, expected an object with {', '.join(model.model_fields)}")
    if kind == "value_error":
        reason = str(first["ctx"]["error"])
        return error_response(422, f"{field}: {reason}") if field else error_response(400, reason)
    expected = message.removeprefix("Input should be ")
    if expected == message:
        return error_response(422, f"{field}: {message}; correct it")
    return error_response(422, f"{field} is {found}, expected {expected}; correct it")
