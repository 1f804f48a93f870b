"""API keys: read strictly, asked for where there is work, compared whole; forms of pages of other origins."""

from pathlib import Path

import httpx
import pytest
from starlette.types import Message

from softsearch.errors import ConfigError
from softsearch.extras.serve import admission
from softsearch.extras.serve.access import read_keys
from softsearch.extras.serve.admission import FILE, LIBRE, WORK
from softsearch.extras.serve.app import make_app
from softsearch.extras.serve.file_routes import router as file_router
from softsearch.extras.serve.routes import router
from tests.extras.serve.test_app import ask, make_service

KEY = "0123456789abcdef"
FORM = "application/x-www-form-urlencoded"


def _keys(folder: Path, *keys: str) -> Path:
    file = folder / "keys"
    file.write_text("\n".join(keys))
    return file


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"authorization": f"Bearer {KEY}"}, {"text": "a"}, 503),  # not ready: it was let in
        ({"authorization": f"bearer {KEY}"}, {"text": "a"}, 503),
        ({}, {"q": "a", "source": "en", "target": "de", "api_key": KEY}, 503),
        ({}, {"q": "a", "source": "en", "target": "de", "apiKey": KEY}, 503),
        ({}, {"q": "a" * 70_000, "source": "en", "target": "de", "api_key": KEY}, 401),  # it must be in the header
        ({}, {"q": "a", "source": "en", "target": "de", "api_key": [KEY]}, 401),
        ({}, {"text": "a"}, 401),
        ({"authorization": f"Bearer {KEY[:-1]}"}, {"text": "a"}, 401),
        ({"authorization": f"Bearer {KEY}x"}, {"text": "a"}, 401),
        ({"authorization": f"Basic {KEY}"}, {"text": "a"}, 401),
        ({"authorization": "Bearer "}, {"text": "a"}, 401),
        ({}, {"q": "a", "source": "en", "target": "de"}, 401),
        ({}, {"q": "a", "source": "en", "target": "de", "api_key": "Ж"}, 401),
    ],
)
def test_work_needs_a_key(headers: dict[str, str], body: dict[str, str], status: int, tmp_path: Path) -> None:
    service = make_service(api_keys=_keys(tmp_path, "another-key-of-ours", KEY))
    (answer,) = ask(service, httpx.Request("POST", "http://test/translate", json=body, headers=headers))
    assert answer.status_code == status, answer.text
    assert KEY not in answer.text
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"


def test_every_route_with_work_asks_for_a_key() -> None:
    routes = [*router.routes, *file_router.routes]
    assert {route.path for route in routes if "POST" in route.methods} == {*WORK}  # type: ignore[attr-defined]


@pytest.mark.parametrize("content_type", ["application/json", FORM])
def test_a_body_that_names_no_key_is_not_parsed(
    content_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_body_fields", None)
    service, headers = make_service(api_keys=_keys(tmp_path, KEY)), {"content-type": content_type}
    (answer,) = ask(service, httpx.Request("POST", "http://test/translate", content=b"[" * 9000, headers=headers))
    assert answer.status_code == 401


def test_the_key_is_found_wherever_clients_put_it(tmp_path: Path) -> None:
    service = make_service(api_keys=_keys(tmp_path, KEY))
    fields = {"q": "a", "source": "en", "target": "de", "api_key": KEY}
    url = "http://test/translate"
    requests = [
        httpx.Request("POST", url, params=fields),
        httpx.Request("POST", url, data=fields),
        httpx.Request("POST", url, data=fields, files={"x": (None, "y")}),
        httpx.Request("POST", "http://test/detect", json={"q": "a", "api_key": KEY}),
    ]
    assert [answer.status_code for answer in ask(service, *requests)] == [503] * len(requests)  # let in


@pytest.mark.parametrize("method", ["POST", "PUT", "GET", "DELETE", "BREW"])
@pytest.mark.parametrize("path", WORK)
@pytest.mark.parametrize("content_type", ["application/json", FORM, "multipart/form-data; boundary=b", "", "x/y"])
async def test_without_a_key_nobody_s_body_is_read(method: str, path: str, content_type: str, tmp_path: Path) -> None:
    """A body without end, of which 64 KiB may hold LibreTranslate's key; what is wrong with it is not told."""
    app, read, sent = make_app(make_service(api_keys=_keys(tmp_path, KEY))), 0, []

    async def receive() -> Message:
        nonlocal read
        read += 4096
        return {"type": "http.request", "body": b"[" * 4096, "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"content-type", content_type.encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b"q=a&api_key=wrong"}
    await app(scope, receive, send)
    assert sent[0]["status"] == 401
    assert read <= (70_000 if path in (*LIBRE, FILE) and method == "POST" else 0)


@pytest.mark.parametrize("query", [b"q=\xff", b"q=%ff", b"q=%ed%a0%80", b"&".join([b"a=b"] * 101), b"{}"])
async def test_an_address_that_cannot_be_read_is_explained_after_the_key(query: bytes, tmp_path: Path) -> None:
    """Fault: broken UTF-8, a surrogate or many fields in the address. Effect: 401 without a key, 400 with one."""
    app = make_app(make_service(api_keys=_keys(tmp_path, KEY)))

    async def status_of(content: bytes, *headers: tuple[bytes, bytes]) -> int:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/translate", "headers": headers, "query_string": query}
        await app(scope, receive, send)
        return int(sent[0]["status"])

    assert await status_of(b"") == 401
    assert await status_of(b"", (b"authorization", f"Bearer {KEY}".encode())) == 400
    body = f'{{"q": "a", "source": "en", "target": "de", "api_key": "{KEY}"}}'.encode()
    assert await status_of(body, (b"content-type", b"application/json")) == 400


async def test_with_a_key_in_the_header_a_body_has_its_own_limit(tmp_path: Path) -> None:
    service, content = make_service(api_keys=_keys(tmp_path, KEY)), b'{"text": "' + b"a" * 900_000
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    service.dispatcher._open = True
    service.dispatcher._pool.workers.append(None)  # type: ignore[arg-type]  # ready
    transport = httpx.ASGITransport(app=make_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for path, more, status in (("/score", b"", 400), ("/translate", b"", 400), ("/translate", content, 413)):
            answer = await client.post(path, content=content + more, headers=headers)
            assert answer.status_code == status, answer.text


def test_the_rest_needs_none(tmp_path: Path) -> None:
    service = make_service(api_keys=_keys(tmp_path, KEY))
    paths = ("/healthz", "/models", "/languages", "/metrics", "/openapi.json")
    answers = ask(service, *(httpx.Request("GET", f"http://test{path}") for path in paths))
    assert [answer.status_code for answer in answers] == [200] * len(paths)
    work = {"/translate/stream": {"text": "a"}, "/score": {"src": ["a"], "tgt": ["b"]}}
    answers = ask(service, *(httpx.Request("POST", f"http://test{path}", json=body) for path, body in work.items()))
    assert [answer.status_code for answer in answers] == [401, 401]


@pytest.mark.parametrize(
    ("content_type", "origin", "status"),
    [
        (FORM, None, 503),  # not ready: it was let in
        (FORM, "http://test", 503),
        (FORM, "https://test", 503),  # a proxy has the TLS
        (FORM, "https://a.example", 503),
        (FORM, "https://b.example", 403),
        (FORM, "null", 403),
        ("text/plain; charset=utf-8", "https://b.example", 403),
        ("", "https://b.example", 403),
        ("application/json", "https://b.example", 503),  # browsers ask first, and get no permission
    ],
)
def test_forms_of_other_origins_are_not_worked_on(content_type: str, origin: str | None, status: int) -> None:
    """Fault: a web page of another origin sends a form. Effect: 403."""
    headers = {"content-type": content_type} | ({} if origin is None else {"origin": origin})
    body = b'{"text": "ten"}' if content_type.endswith("json") else b"q=ten&source=en&target=de"
    request = httpx.Request("POST", "http://test/translate", content=body, headers=headers)
    (answer,) = ask(make_service(cors=["https://a.example"]), request)
    assert answer.status_code == status, answer.text
    assert ("page of another origin" in answer.text) == (status == 403)
    (answer,) = ask(make_service(cors=["*"]), request)
    assert answer.status_code == 503, answer.text


def test_keys_are_lines(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# of the team\n{KEY}\n\n  {KEY}2  \n")
    assert read_keys(file) == [KEY, f"{KEY}2"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"short", ":1 is not an API key; expected 16"),
        (b"\nwith space 1234567", ":2 is not an API key"),
        (b"# none\n", "has no API key"),
        (b"\xff", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_bad_file_is_an_error_that_quotes_no_key(content: bytes | None, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint) as caught:
        read_keys(file)
    assert "short" not in str(caught.value)
