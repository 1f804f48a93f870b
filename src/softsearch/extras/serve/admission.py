"""Checks before a request's route: origin, key and the server's state; then converts forms to JSON.

No body is read before that, except for an API key, which clients of LibreTranslate send in the body.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from softsearch.extras.serve.access import Service
from softsearch.extras.serve.answers import error_response
from softsearch.extras.serve.line_queue import RequestError

LIBRE = ("/translate", "/detect")  # their clients send JSON, forms, or fields in the address
FILE = "/translate_file"  # a form with a file, which may have NUL
WORK = (*LIBRE, FILE, "/translate/stream", "/score")
FORM = "form"  # in the state of a request with a file: its fields by name; the file is a name and bytes
ROUTE = "route"  # in the state of a request that has not reached its route, for its log line
_UNKNOWN_BODY = 65_536  # bytes to search for an API key
_MAX_FIELDS = 100
_KEY_NAME = re.compile(rb"api_?key", re.IGNORECASE)  # spellings, see _key
_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_FIELD_NAME = re.compile(r';\s*name=(?:"([^"]{0,100})"|([^\s;"]{1,100}))', re.IGNORECASE)
_FILE_NAME = re.compile(r";\s*filename\*?=(?:\"([^\"]*)|([^\s;\"]*))", re.IGNORECASE)
_NO_ADDRESS = f"the address has no fields in UTF-8, or more than {_MAX_FIELDS}; send JSON in the body instead"
_NO_FORM = "the body is neither JSON nor a form in UTF-8; send JSON with content-type: application/json"


class Admission:
    """ASGI middleware around the routes.

    Args:
        app: the wrapped application.
        service: has the keys and the state.
    """

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["path"] in WORK:
            scope["state"][ROUTE] = scope["path"]
            try:
                is_file = scope["path"] == FILE and scope["method"] == "POST"
                receive = await (self._read_file if is_file else self._authorize)(scope, receive)
            except RequestError as error:
                await error_response(error.status, str(error), error.headers)(scope, receive, send)
                return
            except HTTPException as error:
                detail = _NO_FORM if error.status_code == 400 else error.detail
                await error_response(error.status_code, detail)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _authorize(self, scope: Scope, receive: Receive) -> Receive:
        """Refuses a request, or returns the receiver for its route."""
        headers, service = Headers(scope=scope), self.service
        service.check_origin(headers)
        takes_forms = scope["path"] in LIBRE and scope["method"] == "POST"
        address = _address_fields(scope["query_string"]) if takes_forms else {}
        known = service.knows(_bearer(headers)) or service.knows(_key(address or {}))
        if not known and not takes_forms:
            service.refuse_key()
        is_json = _media_type(headers).endswith("json")
        if known and address is None:
            raise RequestError(400, _NO_ADDRESS)
        if known and (not takes_forms or (is_json and "q" not in (address or {}))):
            service.dispatcher.check_ready()
            return receive
        body = await _read(receive, None if known else _UNKNOWN_BODY)
        if not known and not _KEY_NAME.search(body or b""):
            service.refuse_key()  # before the body is parsed
        # In a thread, because Python decodes percent signs slowly.
        fields = await asyncio.to_thread(_body_fields, body or b"", headers, lenient=not known)
        if not known and not (isinstance(fields, dict) and service.knows(_key(fields))):
            service.refuse_key()
        if address is None:
            raise RequestError(400, _NO_ADDRESS)
        service.dispatcher.check_ready()
        if body is None or (is_json and body):
            return _replay(body or b"", receive)
        content = json.dumps((fields or {}) | address).encode()
        sent = {b"content-type": b"application/json", b"content-length": b"%d" % len(content)}
        others = [pair for pair in scope["headers"] if pair[0] not in (*sent, b"transfer-encoding")]
        scope["headers"] = [*others, *sent.items()]
        return _replay(content, receive)

    async def _read_file(self, scope: Scope, receive: Receive) -> Receive:
        """Refuses a form with a file, or puts its fields into the request's state; the key comes before the file."""
        headers, service = Headers(scope=scope), self.service
        service.check_origin(headers)
        known = service.knows(_bearer(headers)) or service.knows(_key(_address_fields(scope["query_string"]) or {}))
        body = bytearray()

        async def check_key() -> None:
            begin = bytes(body[:_UNKNOWN_BODY])
            fields = await asyncio.to_thread(_file_fields, begin, headers, lenient=True)
            if not service.knows(_key(fields)):
                service.refuse_key()

        async for chunk in _chunks(receive):
            body += chunk
            if not known and len(body) > _UNKNOWN_BODY:
                await check_key()
                known = True
        if not known:
            await check_key()
        service.dispatcher.check_ready()
        scope["state"][FORM] = await asyncio.to_thread(_file_fields, bytes(body), headers, lenient=False)
        return _replay(b"", receive)


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _bearer(headers: Headers) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key if scheme.lower() == "bearer" else ""


def _key(fields: Mapping[str, Any]) -> str:
    """Returns the key in a LibreTranslate request; a Node.js client spells the field differently."""
    key = fields.get("api_key") or fields.get("apiKey")
    return key if isinstance(key, str) else ""


async def _read(receive: Receive, most: int | None) -> bytes | None:
    """Reads the body; None if it has more bytes than ``most``."""
    body = bytearray()
    async for chunk in _chunks(receive):
        body += chunk
        if most is not None and len(body) > most:
            return None
    return bytes(body)


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        yield message.get("body", b"")
        more = message.get("more_body", False)  # also when the client has left


def _replay(body: bytes, receive: Receive) -> Receive:
    """Returns a receiver that replays a body, then passes on everything after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _body_fields(body: bytes, headers: Headers, *, lenient: bool) -> Any:
    """Returns the fields of a body by name; an unreadable body is an error, or {} if ``lenient``."""
    kind = _media_type(headers)
    try:
        if kind.endswith("json"):
            return json.loads(body) if lenient else {}
        return _multipart(body, headers["content-type"]) if kind == "multipart/form-data" else _fields(body)
    except (ValueError, RecursionError):
        if lenient:
            return {}
        raise RequestError(400, _NO_FORM) from None


def _fields(encoded: bytes) -> dict[str, Any]:
    """Returns the fields of an address or a form by name, percent-encoded or raw UTF-8; repeated ones as a list.

    Raises:
        ValueError: it is not a form.
    """
    text = encoded.decode()
    if text.lstrip()[:1] in ("{", "[", "<"):
        raise ValueError
    return _by_name(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS))


def _address_fields(encoded: bytes) -> dict[str, Any] | None:
    """Returns the fields of an address by name; None if it is unreadable."""
    try:
        return _fields(encoded)
    except ValueError:
        return None


def _multipart(body: bytes, content_type: str) -> dict[str, Any]:
    """Returns the fields of a multipart form by name; refuses files.

    Raises:
        ValueError: it is not a form of at most 100 fields.
        RequestError: it has a file.
    """
    parts = _parts(body, content_type)
    if any(part.file is not None for part in parts):
        raise RequestError(
            400, "the form contains a file; send its text in the field q, or the file to /translate_file"
        )
    return _by_name([(part.name, part.value.decode()) for part in parts])


def _file_fields(body: bytes, headers: Headers, *, lenient: bool) -> dict[str, Any]:
    """Returns the fields of a form with a file by name, the file as its name and bytes.

    An unreadable body is an error, or has no fields if ``lenient``, as is a file whose end is missing.

    Raises:
        RequestError: it is unreadable.
    """
    try:
        if _media_type(headers) != "multipart/form-data":
            raise ValueError
        parts = _parts(body, headers["content-type"], cut=lenient)
        fields = _by_name([(part.name, part.value.decode()) for part in parts if part.file is None])
    except ValueError:
        if lenient:
            return {}
        raise RequestError(
            400, "the body is not a form with a file; send multipart/form-data with file, source and target"
        ) from None
    return fields | {part.name: (part.file, part.value) for part in parts if part.file is not None}


class _Part(NamedTuple):
    """A part of a form; ``file`` is its file's name as sent, None if it is none."""

    name: str
    file: str | None
    value: bytes


def _parts(body: bytes, content_type: str, *, cut: bool = False) -> list[_Part]:
    """Returns the parts of a multipart form, which stay in memory; without the last if the body is ``cut``.

    Raises:
        ValueError: it is not a form of at most 100 fields.
    """
    found = _BOUNDARY.search(content_type)
    if not found:
        raise ValueError
    boundary = (found[1] or found[2]).encode()
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, _MAX_FIELDS + 1)
    if not parts or (parts.pop()[:2] != b"--" and not cut):
        raise ValueError
    read = []
    for part in parts:
        head, _, value = part.partition(b"\r\n\r\n")
        lines = head.decode().splitlines()
        header = next((line for line in lines if line.lower().startswith("content-disposition:")), "")
        if not (name := _FIELD_NAME.search(header)):
            raise ValueError
        file = _FILE_NAME.search(header)
        read.append(_Part(name[1] or name[2] or "", file and (file[1] or file[2] or ""), value))
    return read


def _by_name(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}
