"""Files as LibreTranslate's clients send and fetch them: catalogs, filled, and plain text."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from softsearch.errors import InputError
from softsearch.extras.serve import shared_state
from softsearch.extras.serve.access import Service
from softsearch.extras.serve.files import Files, safe_name
from softsearch.extras.serve.line_queue import RequestError
from softsearch.extras.serve.monitoring import Metrics
from softsearch.extras.serve.shared_state import State
from softsearch.extras.shared.served_files import kind_of
from softsearch.runtime.cli import main
from softsearch.runtime.parts import NO_STAGES
from tests.extras.serve.dispatchers import Open
from tests.extras.serve.test_access import KEY
from tests.extras.serve.test_app import ask, make_service
from tests.support.serving import BUNDLE, eventually, serving

PAIR = {"source": "en", "target": "de"}
PO = r"""msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

msgid "ten"
msgstr ""

#, c-format
msgid "four %s"
msgid_plural "nine %s"
msgstr[0] ""
msgstr[1] ""

msgid "eleven"
msgstr "elf"
"""


def send(client: httpx.Client, name: str, content: bytes | str, **fields: str) -> httpx.Response:
    return client.post("/translate_file", files={"file": (name, content)}, data=PAIR | fields)


def fetched(answer: httpx.Response) -> httpx.Response:
    """The file, from the address in the answer."""
    assert answer.status_code == 200, answer.text
    with httpx.Client(trust_env=False, timeout=60) as other:
        found = other.get(answer.json()["translatedFileUrl"])
    assert found.status_code == 200, found.text
    return found


def test_a_catalog_comes_back_as_the_command_fills_it(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "x.po").write_text(PO)
    assert main(["localise", str(BUNDLE), str(tmp_path / "x.po"), "--out", str(tmp_path / "new.po")]) == 0
    answer = send(client, "C:\\new\\../my caf\u00e9.po", PO)
    found = fetched(answer)
    assert found.content == (tmp_path / "new.po").read_bytes()
    assert b'msgstr "zehn"' in found.content
    assert b"#, fuzzy" in found.content
    assert found.headers["content-disposition"] == 'attachment; filename="my_caf__de.po"'
    report = answer.json()["report"]
    assert (report["translated before"], sum(report.values())) == (1, 3)
    assert answer.json()["review"] == ""  # the file has the marks


def test_files_of_one_language_come_with_that_of_the_other(client: httpx.Client) -> None:
    source = json.dumps({"a": "ten", "b": "From the memory", "c": "eleven"})
    found = fetched(send(client, "en.json", source))
    assert found.json() == {"a": "zehn", "b": "Aus dem Speicher", "c": "elf"}
    assert found.headers["content-disposition"] == 'attachment; filename="en_de.json"'
    files = {"file": ("en.json", source), "existing": ("de.json", '{\n    "c": "mein  Elf",\n    "z": "x"\n}\n')}
    answer = client.post("/translate_file", files=files, data=PAIR)
    assert fetched(answer).text == (
        '{\n    "c": "mein  Elf",\n    "z": "x",\n    "a": "zehn",\n    "b": "Aus dem Speicher"\n}\n'
    )
    assert answer.json()["report"]["translated before"] == 1
    assert answer.json()["report"]["from the memory"] == 1
    assert answer.json()["reviewName"] == "en_de.json.review.tsv"
    review = [line.split("\t") for line in answer.json()["review"].splitlines()]
    assert [row[:3] for row in review] == [["a", "ten", "zehn"], ["b", "From the memory", "Aus dem Speicher"]]
    damaged = client.post("/translate_file", files=files | {"existing": ("de.json", "{")}, data=PAIR)
    assert "en.json cannot be read" in damaged.json()["error"]
    assert "or the one in the target language that was sent with it" in damaged.json()["error"]
    for name in ("x.po", "x.txt"):
        answer = client.post("/translate_file", files=files | {"file": (name, PO)}, data=PAIR)
        assert answer.status_code == 422
        assert f"'{name}' is none" in answer.json()["error"]


def test_the_server_s_glossary_is_that_of_files(tmp_path: Path) -> None:
    """A catalog comes back as the command fills it with the same terms, and says what lacks one."""
    (tmp_path / "x.po").write_text(f'{PO}\nmsgid "lost"\nmsgstr ""\n')
    (tmp_path / "terms.tsv").write_text("ten\tneun\nlost\t\u65e5\n", encoding="utf-8")  # one cannot be written
    terms = "--glossary", str(tmp_path / "terms.tsv")
    command = ["localise", str(BUNDLE), str(tmp_path / "x.po"), *terms, "--out", str(tmp_path / "new.po")]
    assert main(command) == 0
    with (
        serving(f"golden={BUNDLE}", "--workers", 1, *terms) as server,
        httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client,
    ):
        answer = send(client, "x.po", (tmp_path / "x.po").read_text())
        found = fetched(answer)
    assert found.content == (tmp_path / "new.po").read_bytes()
    assert re.search(r'"ten"\nmsgstr ".*\bneun\b', found.text)
    assert answer.json()["report"]["left untranslated"] == 1


def test_requests_do_not_see_the_messages_of_others(client: httpx.Client) -> None:
    secret = '\nmsgid "secret words"\nmsgstr "nur meine"\n'
    send(client, "x.po", PO + secret)
    found = fetched(send(client, "x.po", PO + '\nmsgid "secret words"\nmsgstr ""\n'))
    assert "nur meine" not in found.text


def test_text_is_translated_in_paragraphs(client: httpx.Client) -> None:
    text = "ten.\n\nfour euro.\r\n" * 100
    wanted = client.post("/translate", json={"q": text, **PAIR}).json()["translatedText"]
    found = fetched(send(client, "x.TXT", text.encode("utf-8-sig"), source="auto"))
    assert found.content.decode() == wanted


def test_progress_is_told_to_those_who_ask(client: httpx.Client) -> None:
    lines = "".join(f'\nmsgid "ten {n}"\nmsgstr ""\n' for n in range(70))
    request: dict[str, Any] = {"files": {"file": ("x.po", PO + lines)}, "data": PAIR}
    with client.stream("POST", "/translate_file", headers={"accept": "text/event-stream"}, **request) as answer:
        events = re.findall(r"event: (\w+)\ndata: (.*)\n\n", answer.read().decode())
    assert [name for name, _ in events] == ["progress"] * 4 + ["done"]
    assert [json.loads(data)["done"] for _, data in events[:4]] == [0, 32, 64, 73]
    assert client.get(json.loads(events[-1][1])["translatedFileUrl"]).status_code == 200


def test_a_proxy_s_address_is_in_the_answer(client: httpx.Client) -> None:
    for prefix, wanted in (("/mt/", "https://host.example/mt/"), ("/../x y", "https://host.example/")):
        headers = {"host": "host.example", "x-forwarded-proto": "https", "x-forwarded-prefix": prefix}
        answer = client.post("/translate_file", files={"file": ("x.txt", b"ten")}, data=PAIR, headers=headers)
        assert answer.json()["translatedFileUrl"].startswith(f"{wanted}download_file/")


@pytest.mark.parametrize(
    ("name", "content", "fields", "status", "said"),
    [
        ("x.exe", b"MZ", {}, 400, "'x.exe' is not a file that is translated; expected one of .po, "),
        ("x.po", b'msgid "a', {}, 422, "x.po cannot be read"),
        ("../x.po", PO.replace("Language: de", "Language: fr"), {}, 422, "x.po is a catalog of 'fr', expected 'de'"),
        ("x.txt", b"a\xff", {}, 422, "x.txt is not UTF-8 at byte 1; save it as UTF-8"),
        ("x.xlf", b'<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', {}, 422, "declares entities"),
        ("x.txt", b"ten", {"target": "fr"}, 400, "'en' to 'fr' is not supported"),
        ("x.txt", b"ten", {"target": ""}, 422, "target is missing"),
        ("", b"ten", {}, 422, "file is missing"),
        ("x.txt", b"a" * 1_100_000, {}, 413, "more than 1000000 bytes; divide the file, or raise --max-body"),
    ],
)
def test_what_cannot_be_translated_is_explained(
    name: str, content: bytes | str, fields: dict[str, str], status: int, said: str, client: httpx.Client
) -> None:
    answer = send(client, name, content, **fields)
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]


@pytest.mark.parametrize("content", [b'{"file": "x"}', b"file=x&source=en&target=de"])
def test_a_body_that_is_no_form_with_a_file_is_explained(content: bytes, client: httpx.Client) -> None:
    answer = client.post("/translate_file", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert "send multipart/form-data with file, source and target" in answer.json()["error"]
    for files in ({"file": (None, "x")}, {"other": ("x.po", "x")}):
        assert client.post("/translate_file", files=files, data=PAIR).status_code == 422  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "a.po"])
def test_nothing_else_can_be_fetched(name: str, client: httpx.Client) -> None:
    answer = client.get(f"/download_file/{name}")
    assert answer.status_code == 404
    assert "error" in answer.json()


def test_settings_name_what_is_translated(client: httpx.Client) -> None:
    settings = client.get("/frontend/settings").json()
    assert settings["filesTranslation"] is True
    assert {".po", ".xlf", ".ts", ".txt"} <= {*settings["supportedFilesFormat"]}
    assert ".tmx" not in settings["supportedFilesFormat"]
    assert all(kind_of(f"x{suffix}") for suffix in settings["supportedFilesFormat"])


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("a/b\\c d.po", "c_d.po"), ("..", "file"), ("", "file"), (".po", "po"), ('"\r\n.txt', "_.txt"),
        ("x" * 200 + ".po", "x" * 97 + ".po"), ("\u043d.po", "_.po"),
    ],
)  # fmt: skip
def test_no_name_of_a_client_is_trusted(given: str, safe: str) -> None:
    assert safe_name(given) == safe


def test_files_are_few_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_state, "_BYTES", 10)
    state = State()
    first, second = state.keep_file("a.po", b"12345"), state.keep_file("a.po", b"123456")
    assert first != second
    assert (state.file(first), state.file(second)) == (None, b"123456")
    monkeypatch.setattr(shared_state.time, "monotonic", lambda: 1e9)
    assert state.file(second) is None


def test_old_files_go_though_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_state, "FILE_SECONDS", 0.05)
    state = State()
    for _ in range(2):  # also after all were gone
        for _ in range(3):
            state.keep_file("a.po", b"12345")
        assert state._files
        eventually(lambda: not state._files)


def test_a_file_needs_the_server_s_key_before_it(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(KEY)
    service, url = make_service(api_keys=tmp_path / "keys"), "http://test/translate_file"
    small, large = {"file": ("x.txt", b"ten")}, {"file": ("x.txt", b"\0ten" * 50_000)}
    requests = [
        *(httpx.Request("POST", url, files=files, data=PAIR | {"api_key": KEY}) for files in (small, large)),
        httpx.Request("POST", url, files=large, data=PAIR, headers={"authorization": f"Bearer {KEY}"}),
        *(httpx.Request("POST", url, files=files, data=PAIR) for files in (small, large)),
        httpx.Request("POST", url, files=large | {"api_key": (None, KEY)}, data=PAIR),  # behind the file
        httpx.Request("POST", url, files=small, data=PAIR, headers={"origin": "http://other"}),
    ]
    answers = ask(service, *requests)
    assert [answer.status_code for answer in answers] == [503, 503, 503, 401, 401, 401, 403]  # 503: let in


async def test_bad_lines_stay_empty_and_a_full_queue_is_waited_for(
    serve: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(queue=4) as dispatcher:
        asked: list[int] = []
        files = Files(Service(dispatcher, dispatcher.settings, Metrics()))
        translate = dispatcher.translate

        async def busy(model: str, lines: list[str], *args: Any, **options: Any) -> Any:
            asked.append(len(lines))
            if len(asked) == 1:
                raise RequestError(503, "full")
            if "bad" in lines:
                raise InputError("line 1: bad")
            return await translate(model, lines, *args, **options)

        monkeypatch.setattr(dispatcher, "translate", busy)
        monkeypatch.setattr("softsearch.extras.serve.files._PAUSE", 0.0)
        found = await files._translated("small", ["one", "bad", "two"], NO_STAGES, ())
        assert [bool(each.text) for each in found] == [True, False, True]
        assert asked == [3, 3, 1, 1, 1]


def test_a_client_that_leaves_makes_room_for_the_next(client: httpx.Client) -> None:
    request: dict[str, Any] = {"files": {"file": ("x.txt", b"four euro eighty-three cents. " * 400)}, "data": PAIR}
    for _ in range(4):  # more than are translated at once
        with client.stream("POST", "/translate_file", headers={"accept": "text/event-stream"}, **request) as answer:
            assert next(answer.iter_lines()) == "event: progress"
    assert fetched(send(client, "x.txt", "ten")).text == "zehn"


@pytest.mark.day
def test_files_and_other_requests_share_a_small_queue(tmp_path: Path) -> None:
    """Fault: three files at a time on a server whose queue holds 16 lines. Effect: all of them, and text meanwhile."""
    lines = "".join(f'\nmsgid "ten {n}"\nmsgstr ""\n' for n in range(100))
    with serving(BUNDLE, "--workers", 1, "--queue", 16, "--max-sentences", 16, "--deadline", 120) as served:

        async def run() -> list[httpx.Response]:
            async with httpx.AsyncClient(base_url=served.url, timeout=120, trust_env=False) as client:
                sent = [
                    client.post("/translate_file", files={"file": ("x.po", PO + lines)}, data=PAIR) for _ in range(3)
                ]
                text = [client.post("/translate", json={"text": "ten"}) for _ in range(5)]
                return [*await asyncio.gather(*sent, *text)]

        answers = asyncio.run(run())
    assert [answer.status_code for answer in answers] == [200] * 8
