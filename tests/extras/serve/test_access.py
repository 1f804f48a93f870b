"""API keys: read strictly, asked for where there is work, compared whole; forms of pages of other origins."""

from pathlib import Path

import httpx
import pytest

from softsearch.errors import ConfigError
from softsearch.extras.serve.access import read_keys
from tests.extras.serve.test_app import ask, make_service

KEY = "0123456789abcdef"


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


def test_the_rest_needs_none(tmp_path: Path) -> None:
    service = make_service(api_keys=_keys(tmp_path, KEY))
    paths = ("/healthz", "/models", "/languages", "/metrics", "/openapi.json")
    answers = ask(service, *(httpx.Request("GET", f"http://test{path}") for path in paths))
    assert [answer.status_code for answer in answers] == [200] * len(paths)
    work = {"/translate/stream": {"text": "a"}, "/score": {"src": ["a"], "tgt": ["b"]}}
    answers = ask(service, *(httpx.Request("POST", f"http://test{path}", json=body) for path, body in work.items()))
    assert [answer.status_code for answer in answers] == [401, 401]


FORM = "application/x-www-form-urlencoded"


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
    headers = {"content-type": content_type} | ({} if origin is None else {"origin": origin})
    body = b'{"text": "ten"}' if content_type.endswith("json") else b"q=ten&source=en&target=de"
    request = httpx.Request("POST", "http://test/translate", content=body, headers=headers)
    (answer,) = ask(make_service(cors=["https://a.example"]), request)
    assert answer.status_code == status, answer.text
    assert ("page of another origin" in answer.text) == (status == 403)


def test_keys_are_lines(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# of the team\n{KEY}\n\n  {KEY}2  \n")
    assert read_keys(file) == [KEY, f"{KEY}2"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"short", ":1 is no API key; expected 16"),
        (b"\nwith space 1234567", ":2 is no API key"),
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
