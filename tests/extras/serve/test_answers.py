"""Requests that fail: the status, one shape, the field and what to do; nothing of the server's inside."""

import json
import socket
from typing import Any

import httpx
import pytest

from tests.support.serving import Served

LONG = "x" * 5000
WORDS = [f"{one}{other}" for one in "abcdef" for other in "qrstuvwxyz"]
BAD = {  # the body of POST /translate: the status, what the answer says
    "": (422, "the body is missing"),
    '{"text": "four"': (400, "the body is not JSON at character 15"),
    "[" * 100_000: (400, "the body cannot be read"),
    '{"text": "\\ud800"}': (422, "text: character 0 is half of a surrogate pair"),
    '{"text": "four", "seed": ' + "9" * 5000 + "}": (400, "the body cannot be read"),
    '{"text": "four", "seed": ' + "9" * 500 + "}": (422, "seed is a very large number, expected less than or equal to"),
    "null": (422, "the body is null, expected an object with"),
    "[]": (422, "the body is a list, expected an object with"),
    "{}": (422, "text is missing; add it"),
    '{"text": 5}': (422, "text is 5, expected a valid string"),
    '{"text": []}': (422, "text: List should have at least 1 item"),
    '{"text": ["four", 5]}': (422, "text[1] is 5, expected a valid string"),
    '{"text": "four", "beem": 3}': (422, "beem is not a field of this request; did you mean 'beam'?"),
    '{"text": "four", "rescore": "/etc/passwd"}': (422, "rescore is not a field"),
    '{"text": "four", "banned": ["@/etc/passwd"]}': (422, "banned is not a field"),
    '{"text": "four", "max_nodes": 1000000}': (422, "max_nodes is not a field"),
    '{"text": "four", "search": "exact"}': (422, "search is 'exact', expected 'greedy', 'beam' or 'sample'"),
    '{"text": "four", "beam": true}': (422, "beam is true, expected a valid integer"),
    '{"text": "four", "beam": 2.5}': (422, "beam is 2.5, expected a valid integer"),
    '{"text": "four", "beam": 0}': (422, "beam is 0, expected greater than or equal to 1"),
    '{"text": "four", "beam": 21}': (422, "beam is 21, expected at most 20 on this server"),
    '{"text": "four", "beam": 1e999}': (422, "beam is Infinity, expected a valid integer"),
    '{"text": "four", "n_best": 6}': (422, "n_best is 6, expected at most beam (5)"),
    '{"text": "four", "max_length": 501}': (422, "max_length is 501, expected at most 500"),
    '{"text": "four", "length_penalty": NaN}': (422, "length_penalty is NaN, expected"),
    '{"text": "four", "length_penalty": -1}': (422, "length_penalty is -1, expected"),
    '{"text": "four", "temperature": 0}': (422, "temperature is 0, expected greater than or equal to 0.000000001"),
    '{"text": "four", "search": "sample", "temperature": 1e-320}': (422, "temperature is 1e-320, expected greater"),
    '{"text": "four", "search": "sample", "n_best": 21}': (422, "n_best is 21, expected at most 20"),
    '{"text": "four", "temperature": 2}': (422, "temperature is an option of search sample"),
    '{"text": "four", "model": "../golden"}': (422, "model is '../golden', expected one of golden"),
    '{"text": "four", "prefix": ["a", "b"]}': (422, "text has 1 sentences and prefix has 2 sentences"),
    '{"text": "four", "prefix": "Ж"}': (422, "vocabulary lacks a part of the prefix"),
    '{"text": "four", "glossary": ["four"]}': (422, "glossary: expected an object of terms and their translations, or"),
    '{"text": "four", "glossary": {"four": 4}}': (422, "glossary.four is 4, expected a valid string"),
    '{"text": "four", "glossary": {"four": "|"}}': (422, "glossary:1 has an empty term"),
    '{"text": "four", "glossary": {"four": "a\\u0007"}}': (422, "glossary:1 has an empty term or a control character"),
    '{"text": "four", "glossary": {"a": "b", "A": "c"}}': (422, "glossary:2 has 'A' again with another translation"),
    '{"text": "four", "glossary": "/etc/passwd"}': (422, "glossary is '/etc/passwd', expected one of money"),
    '{"text": "four", "glossary": {"four": "5"}, "search": "sample"}': (
        422,
        "terms and text to copy need beam or greedy search, found sample",
    ),
    '{"text": "four", "glossary_bonus": 1}': (422, "glossary_bonus needs glossary"),
    '{"text": "four", "glossary": {"a": "b"}, "glossary_bonus": NaN}': (422, "glossary_bonus is NaN, expected"),
    '{"text": "four", "glossary": {"a": "b"}, "glossary_bonus": -1}': (422, "glossary_bonus is -1, expected greater"),
    '{"text": "four", "keep": ["("]}': (422, "keep='(' has no ) for a ( at character 2"),
    '{"text": "four", "keep": "f"}': (422, "keep is 'f', expected a valid list"),
    json.dumps({"text": "four", "keep": ["(?:a{9999}){999}"]}): (
        422,
        "more than 1000 characters, with repetitions written out",
    ),
    json.dumps({"text": "four", "keep": ["a"] * 21}): (422, "keep: List should have at most 20 items"),
    json.dumps({"text": "a" * 400 + "c", "keep": ["(a|aa)+$b"]}): (422, "keep='(a|aa)+$b' takes more than 1 s"),
    json.dumps({"text": "four", "glossary": {str(n): "x" for n in range(70_000)}}): (
        422,
        "glossary: 70000 terms, expected",
    ),
    json.dumps({"text": "four", "glossary": {"four": LONG}}): (422, "glossary.four: String should have at most 200"),
    json.dumps({"text": " ".join(WORDS), "glossary": dict.fromkeys(WORDS, "vier")}): (422, "line 1 has 60 terms"),
    f'{{"text": "{LONG}"}}': (422, "text[0] has 5000 characters, expected at most 2000"),
    json.dumps({"text": ["a"] * 129}): (422, "text has 129 sentences, expected at most 128"),
    json.dumps({"text": ["a" * 2000] * 6, "alignments": True}): (422, "alignments of 12000 characters"),
    json.dumps({"text": ["a" * 2000] * 7, "n_best": 20, "beam": 20}): (422, "translations of up to 561400 tokens"),
    json.dumps({"text": ["a"] * 52, "n_best": 20, "beam": 20, "max_length": 500}): (422, "expected at most 513280"),
    json.dumps({"text": ["a"] * 52, "n_best": 20, "search": "sample", "max_length": 500}): (422, "lower n_best"),
    json.dumps({f"f{number}": 1 for number in range(70_000)}): (400, "the body has 70000 fields, expected at most 100"),
    json.dumps({"text": "a", LONG: 1}): (422, "is not a field of this request"),
    json.dumps({"text": "a", "\x1b[2J\n": 1}): (422, r"\x1b[2J\n is not a field"),
    '{"q": "four", "source": "en"}': (422, "target is missing"),
    '{"q": "four", "source": "en", "target": "de", "beam": 2}': (422, "send the sentences as text instead of q"),
    '{"q": "four", "source": "en", "target": "xx"}': (400, "'en' to 'xx' is not supported, expected one of: en to de"),
    '{"q": "four", "source": "de", "target": "de"}': (400, "'de' to 'de' is not supported"),
    json.dumps({"q": ["a" * 2000] * 17, "source": "en", "target": "de", "format": "html"}): (
        422,
        "sum to 68000000, expected",
    ),
    '{"q": "four", "source": "en", "target": "de", "format": "xml"}': (
        422,
        "format is 'xml', expected 'text' or 'html'",
    ),
    json.dumps({"q": "<i>four " * 513, "source": "en", "target": "de", "format": "html"}): (
        422,
        "line 1: <i> is in more than 512 open elements; close some",
    ),
    '{"q": "four", "source": "en", "target": "de", "alternatives": 20}': (422, "n_best is 21, expected at most 20"),
}


def _check(answer: httpx.Response, status: int, said: str) -> None:
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    assert list(body) == ["error"]
    assert said in body["error"]
    assert body["error"].isprintable()
    assert len(body["error"]) < 600
    assert "Traceback" not in body["error"]
    assert "pydantic" not in answer.text


@pytest.mark.parametrize(("body", "wanted"), BAD.items(), ids=range(len(BAD)))
def test_a_bad_body_is_explained(body: str, wanted: tuple[int, str], client: httpx.Client) -> None:
    """Fault: broken JSON, wrong types, unknown fields. Effect: 400 or 422 with the reason, without a traceback."""
    answer = client.post("/translate", content=body.encode(), headers={"content-type": "application/json"})
    _check(answer, *wanted)


def test_every_limit_of_a_stream_and_of_scores_holds(client: httpx.Client) -> None:
    stream = client.post("/translate/stream", json={"text": ["four"]})
    _check(stream, 422, "text is a list, expected a valid string")
    _check(client.post("/translate/stream", json={"text": LONG}), 422, "text[0] has 5000 characters")
    _check(client.post("/translate/stream", json={"text": "a", "n_best": 6}), 422, "n_best is 6")
    _check(
        client.post("/score", json={"src": ["a"], "tgt": ["a", "b"]}),
        422,
        "src has 1 sentences and tgt has 2 sentences",
    )
    _check(client.post("/score", json={"src": ["a"], "tgt": [LONG]}), 422, "tgt[0] has 5000 characters")
    _check(client.post("/score", json={"src": ["a"], "tgd": ["a"]}), 422, "tgt is missing")


def test_bodies_in_other_forms_are_explained(client: httpx.Client) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    _check(client.post("/translate", content=b'{"text": "a"}', headers=form), 400, "send JSON with content-type")
    _check(client.post("/translate", content=b"\xff=1", headers=form), 400, "send JSON with content-type")
    _check(
        client.post("/translate", content=b'{"text": "\xff"}', headers={"content-type": "application/json"}),
        400,
        "UTF-8",
    )
    _check(client.post("/translate", data={str(i): "x" for i in range(200)}), 400, "neither JSON nor a form")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_bodies_in_other_encodings_are_refused(encoding: str, client: httpx.Client) -> None:
    """Fault: a body that is not UTF-8. Effect: 400 with the reason."""
    body = json.dumps({"text": "ten"}).encode(encoding)
    answer = client.post("/translate", content=body, headers={"content-type": "application/json"})
    _check(answer, 400, "expected JSON in UTF-8")


def test_a_large_body_is_refused_declared_or_not(client: httpx.Client) -> None:
    """Fault: a body over `--max-body`. Effect: 413."""
    _check(client.post("/translate", content=b"x" * 10_000_000), 413, "more than 1000000 bytes")
    _check(client.post("/translate", content=iter([b"x" * 600_000] * 2)), 413, "more than 1000000 bytes")


def test_unknown_places_and_methods(client: httpx.Client) -> None:
    _check(client.get("/nowhere/%1b%5b2J"), 404, r"there is nothing at '/nowhere/\x1b[2J'")
    _check(client.get("/" + LONG), 404, "there is nothing at")
    slash = client.get("/docs/", headers={"host": "evil.example"}, follow_redirects=False)
    _check(slash, 404, "there is nothing at '/docs/'")
    answer = client.get("/translate")
    _check(answer, 405, "'/translate' does not support 'GET'")
    assert answer.headers["allow"] == "POST"


def test_two_lengths_of_a_body_end_the_connection(served: Served) -> None:
    """Fault: a request that declares two lengths of its body.

    Effect: refused; the connection is closed.

    RFC 9112, 6.3: a proxy may take what follows for the body, and let a request pass that it would refuse.
    """
    inner = b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
    with socket.create_connection(served.address, timeout=10) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nContent-Length: ")
        client.sendall(b"%d\r\n\r\n0\r\n\r\n%b" % (5 + len(inner), inner))
        received = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert received.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in received


def test_nothing_of_a_request_is_in_the_log(client: httpx.Client, served: Served) -> None:
    secret = "verysecretword"
    for body in ({"text": secret}, {"text": "a", secret: 1}, {"q": secret, "source": secret, "target": secret}):
        client.post(f"/translate?{secret}=1", json=body, headers={"user-agent": secret, "x-request-id": f"{secret}!"})
    client.post("/translate", json={"text": "a"}, headers={"x-request-id": "the-last_1.0"})
    served.wait("request", request_id="the-last_1.0")
    assert secret not in json.dumps(served.events)
