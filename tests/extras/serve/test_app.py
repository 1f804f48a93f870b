"""What every request passes: ids, headers, and errors that nobody expected."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from softsearch.extras.serve.access import Service
from softsearch.extras.serve.app import make_app
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.models import ModelFacts, model_facts
from softsearch.extras.serve.monitoring import Metrics
from softsearch.extras.serve.settings import Settings
from softsearch.runtime.bundle import Bundle
from tests.support.serving import BUNDLE, Served


class BrokenDispatcher(Dispatcher):
    """Fails in a way that nobody expected."""

    @property
    def ready(self) -> bool:
        return True

    @property
    def models(self) -> dict[str, ModelFacts]:
        return {"golden": model_facts("golden", Bundle.open(BUNDLE))}

    def model(self, name: str) -> Any:
        raise RuntimeError(f"the inside of the server: {name}")


def ask(service: Service, *requests: httpx.Request, **options: Any) -> list[httpx.Response]:
    """The answers of an app in this process."""

    async def run() -> list[httpx.Response]:
        app = make_app(service, **options)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client:
            return [await client.send(request) for request in requests]

    return asyncio.run(run())


def make_service(kind: type[Dispatcher] = Dispatcher, **options: Any) -> Service:
    """A service that has not been started."""
    settings, metrics = Settings(**options), Metrics()
    return Service(kind({"golden": BUNDLE}, settings, metrics), settings, metrics)


def test_an_unexpected_error_is_in_the_log_and_not_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    request = httpx.Request("POST", "http://test/translate", json={"text": "a", "model": "golden"})
    service = make_service(BrokenDispatcher)
    with caplog.at_level(logging.INFO):
        (answer,) = ask(service, request)
    assert answer.status_code == 500
    request_id = answer.headers["x-request-id"]
    assert answer.json() == {"error": f"internal error; the server's log has the details of request {request_id}"}
    error, line = (record for record in caplog.records if record.name == "softsearch.server")
    assert error.exc_info is not None
    assert str(error.exc_info[1]) == "the inside of the server: golden"
    assert error.facts["request_id"] == line.facts["request_id"] == request_id  # type: ignore[attr-defined]
    assert line.facts["status"] == 500  # type: ignore[attr-defined]


def test_before_the_start_and_at_the_end_only_health_is_good() -> None:
    service = make_service()
    health, ready, translate = (
        httpx.Request("GET", "http://test/healthz"),
        httpx.Request("GET", "http://test/readyz"),
        httpx.Request("POST", "http://test/translate", json={"text": "a"}),
    )
    answers = ask(service, health, ready, translate)
    assert [answer.status_code for answer in answers] == [200, 503, 503]
    assert answers[1].json() == {"error": "the server is loading its models; try again later"}
    assert answers[2].headers["retry-after"] == "5"
    service.dispatcher.draining = True
    assert "stopping" in ask(service, ready)[0].json()["error"]


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1._Z", True), ("a b", False), ("x" * 65, False), ("\xe9", False), ("", False)]
)
def test_a_clients_id_is_kept_if_it_is_harmless(given: str, kept: bool, client: httpx.Client, served: Served) -> None:
    answer = client.get("/healthz", headers={"x-request-id": given.encode("latin-1")})
    request_id = answer.headers["x-request-id"]
    assert (request_id == given) == kept
    line = served.wait("request", request_id=request_id)
    assert line.items() >= {"method": "GET", "route": "/healthz", "status": 200, "client": "127.0.0.1"}.items()


def test_the_log_has_the_template_of_the_route_and_the_work(client: httpx.Client, served: Served) -> None:
    client.post("/translate?a=b", json={"text": ["four", "nine"]}, headers={"x-request-id": "work"})
    line = served.wait("request", request_id="work")
    assert line.items() >= {"route": "/translate", "status": 200, "sentences": 2, "model": "golden"}.items()
    assert line["ms"] > 0
    client.get("/some%1bthing", headers={"x-request-id": "other"})
    assert served.wait("request", request_id="other")["route"] == "other"


def test_the_page_is_beside_the_routes(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>softsearch</title>")
    (tmp_path / "main.js").write_text("1")
    paths = ("/", "/main.js", "/site.json", "/healthz", "/../conftest.py", "/no.js")
    answers = ask(make_service(), *(httpx.Request("GET", f"http://test{path}") for path in paths), page=tmp_path)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 404, 404]
    assert answers[0].text == "<title>softsearch</title>"
    assert answers[2].json()["backend"] == "server"
    assert "error" in answers[5].json()


def test_answers_ask_browsers_for_isolation(client: httpx.Client) -> None:
    for path in ("/healthz", "/nowhere"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-embedder-policy"] == "require-corp"
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "server" not in headers


def test_pages_of_other_origins_are_let_in_only_if_asked_for() -> None:
    request = httpx.Request("GET", "http://test/healthz", headers={"origin": "https://a.example"})
    assert "access-control-allow-origin" not in ask(make_service(), request)[0].headers
    service = make_service(cors=["https://a.example"])
    assert ask(service, request)[0].headers["access-control-allow-origin"] == "https://a.example"
    asked = {"origin": "https://a.example", "access-control-request-method": "POST"}
    asked |= {"access-control-request-private-network": "true", "access-control-request-headers": "content-type"}
    (preflight,) = ask(service, httpx.Request("OPTIONS", "http://test/translate", headers=asked))
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-private-network"] == "true"
    foreign = httpx.Request("OPTIONS", "http://test/translate", headers=asked | {"origin": "https://b.example"})
    assert ask(service, foreign)[0].status_code == 400
    other = httpx.Request("GET", "http://test/healthz", headers={"origin": "https://b.example"})
    assert "access-control-allow-origin" not in ask(service, other)[0].headers


def test_the_openapi_document_has_the_limits_and_keys_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("0123456789abcdef")
    options = {"max_sentences": 7, "max_characters": 11, "max_beam": 3, "max_length": 13}
    request = httpx.Request("GET", "http://test/openapi.json")
    (limited,), (plain,) = (
        ask(make_service(**options, api_keys=tmp_path / "keys"), request),
        ask(make_service(), request),
    )
    schemas = limited.json()["components"]["schemas"]
    for name, field, limit in (
        ("StreamRequest", "text", 11),
        ("TranslateRequest", "text", 77),
        ("LibreRequest", "q", 77),
    ):
        assert f'"maxLength": {limit}' in json.dumps(schemas[name]["properties"][field])
    assert schemas["ScoreRequest"]["properties"]["src"]["maxItems"] == 7
    for field, limit in (("beam", 3), ("n_best", 3), ("max_length", 13), ("min_length", 13)):
        assert f'"maximum": {limit}' in json.dumps(schemas["TranslateRequest"]["properties"][field])
    for path in ("/translate", "/translate/stream", "/score", "/detect"):
        asked, free = (answer.json()["paths"][path]["post"] for answer in (limited, plain))
        assert asked["security"] == [{"key": []}]
        assert "401" in asked["responses"]
        assert "security" not in free
        assert "401" not in free["responses"]
    assert "securitySchemes" in limited.json()["components"]
    assert "securitySchemes" not in plain.json()["components"]
