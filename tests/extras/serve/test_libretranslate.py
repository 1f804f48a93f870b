"""What clients of LibreTranslate send, byte for byte as their packages do, and what they must get.

Recorded from deep-translator 1.11.4, libretranslatepy 2.1.4 (PyPI), libretranslate 1.0.1, libretranslate-ts 0.5.12 and
translate 3.1.0 (npm), Weblate 2026.10.1, curl, and FormData of Node.js and .NET.
"""

import json
import re
from typing import Any

import httpx
import pytest

from softsearch.extras.serve.languages import Side, detect, match, name_of, words_of
from softsearch.extras.serve.models import Model
from softsearch.runtime.bundle import Bundle
from tests.support.serving import BUNDLE, GOLDEN

SENTENCE = (GOLDEN / "sources.txt").read_text().splitlines()[1]
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
_PART = 'Content-Disposition: form-data; name="{}"\r\n'


def _multipart(*fields: tuple[str, str], head: str = _PART) -> bytes:
    parts = [f"--boundary\r\n{head.format(name)}\r\n{value}\r\n" for name, value in fields]
    return "".join([*parts, "--boundary--\r\n"]).encode()


FIELDS = [("q", "ten"), ("source", "en"), ("target", "de")]
DOTNET = "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name={}\r\n"
REQUESTS: dict[str, tuple[str, str, bytes]] = {  # the address, the content type, the body
    "deep-translator": ("?q=ten&source=en&target=de&format=text&api_key=x", "", b""),
    "deep-translator with a type": ("?q=t%65n&source=en&target=de&format=text", JSON, b""),
    "libretranslatepy": ("", FORM, b"q=ten&source=en&target=de&api_key=kkkkkkkkkkkkkkkkkkkk"),
    "libretranslate": (
        "", JSON, b'{"q":"ten","source":"auto","target":"de","format":"text","apiKey":""}',
    ),
    "libretranslate-ts": ("", JSON, b'{"q":"ten","source":"en","target":"de","format":"text","api_key":""}'),
    "translate": ("", JSON, b'{"q":"ten","source":"en","target":"de","api_key":"k"}'),
    "a page of LibreTranslate": (
        "", "multipart/form-data; boundary=boundary",
        _multipart(*FIELDS, ("format", "text"), ("alternatives", "0"), ("api_key", ""), ("secret", "4A7")),
    ),
    "FormData": ("", "multipart/form-data; boundary=boundary", _multipart(*FIELDS)),
    ".NET": ("", 'multipart/form-data; boundary="boundary"', _multipart(*FIELDS, head=DOTNET)),
    "empty fields": ("", FORM, b"q=ten&source=en&target=de&format=&alternatives=&secret=&"),
    "capital letters": ("", JSON, b'{"q":"ten","source":"EN","target":"DE"}'),
    "regions": ("", JSON, b'{"q":"ten","source":"en-US","target":"de_AT"}'),
    "names": ("", JSON, b'{"q":"ten","source":"English","target":"german"}'),
}  # fmt: skip


@pytest.mark.parametrize(("address", "content_type", "body"), REQUESTS.values(), ids=REQUESTS)
def test_a_client_gets_a_translation(address: str, content_type: str, body: bytes, client: httpx.Client) -> None:
    headers = {"content-type": content_type} if content_type else {}
    answer = client.post(f"/translate{address}", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["translatedText"] == "zehn"


def test_weblate_gets_a_list_and_its_own_signs_back(client: httpx.Client) -> None:
    """Its LibreTranslate machinery sends up to 20 texts, with ``[X4X]`` in place of a placeholder at character 4."""
    body = {"api_key": "", "q": ["ten", "ten [X4X] euro"], "source": "en", "target": "de"}
    assert client.post("/translate", json=body).json()["translatedText"][0] == "zehn"
    found = client.post("/translate", json={"text": body["q"], "keep_usual": True}).json()["translations"]
    assert [each["n_best"][0]["text"].count("[X4X]") for each in found] == [0, 1]


def _texts(client: httpx.Client, **body: Any) -> list[str]:
    answer = client.post("/translate", json=body).json()
    return [hypothesis["text"] for hypothesis in answer["translations"][0]["n_best"]]


def test_text_of_several_lines_has_alternatives(client: httpx.Client) -> None:
    body = {"q": f"{SENTENCE}\n\nten", "source": "en", "target": "de", "format": "text", "alternatives": 2}
    first, ten = (_texts(client, text=text, n_best=3) for text in (SENTENCE, "ten"))
    texts = [f"{one}\n\n{other}" for one, other in zip(first, ten, strict=True)]
    found = client.post("/translate", json=body).json()
    assert found == {"translatedText": texts[0], "alternatives": texts[1:]}
    assert client.post("/translate", data={name: str(value) for name, value in body.items()}).json() == found


def test_lists_and_the_language_that_was_detected(client: httpx.Client) -> None:
    body = {"q": ["four", "nine"], "source": "auto", "target": "de"}
    found = client.post("/translate", json=body).json()
    assert found["translatedText"] == [_texts(client, text=text)[0] for text in ("four", "nine")]
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "en"]
    assert all(50 < each["confidence"] < 100 for each in found["detectedLanguage"])
    assert client.post("/translate", data=body).json() == found


def test_a_long_sentence_is_translated_in_parts(client: httpx.Client) -> None:
    answer = client.post("/translate", json={"q": "twenty-one, " * 200, "source": "en", "target": "de"})
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["translatedText"]) > 200


@pytest.mark.parametrize("text", ["gr\u00f6\u00dfe \u0416 100 % + \u4e2d", "a+b %41 \u201cx\u201d"])
def test_forms_are_utf8_raw_in_percent_signs_or_in_parts(text: str, client: httpx.Client) -> None:
    wanted = client.post("/translate", json={"q": text, "source": "en", "target": "de"}).json()
    quoted = str(httpx.QueryParams({"q": text})).encode()
    raw = f"q={text.replace('%', '%25').replace('+', '%2B')}".encode()
    for content in (quoted, raw):
        answer = client.post("/translate", content=content + b"&source=en&target=de", headers={"content-type": FORM})
        assert answer.json() == wanted
    parts = _multipart(("q", text), *FIELDS[1:])
    headers = {"content-type": "multipart/form-data; boundary=boundary"}
    assert client.post("/translate", content=parts, headers=headers).json() == wanted
    address = client.post("/translate", params={"q": text, "source": "en", "target": "de"})
    assert address.json() == wanted


def test_tags_of_html_stay(client: httpx.Client) -> None:
    body = {"q": ["<p>ten</p>\n<p class='a'>four &amp; <b>nine</b>", "<b>ten</b>"], "source": "en", "target": "de"}
    found = client.post("/translate", json=body | {"format": "html", "alternatives": 1}).json()
    first, other = found["translatedText"]
    assert re.findall("<[^>]*>", first) == ["<p>", "</p>", "<p class='a'>", "<b>", "</b>"]
    assert first.startswith("<p>zehn</p>\n<p class='a'>")
    assert other == "<b>zehn</b>"
    assert [len(each) for each in found["alternatives"]] == [1, 1]
    assert client.post("/translate", data=body | {"format": "html", "alternatives": "1"}).json() == found


def test_html_is_read_as_browsers_read_it(client: httpx.Client) -> None:
    posts = {
        "<p>ten <b>four <i>nine</b></i>": "<p>zehn <b>vier <i>neun</i></b>",
        "<p>ten <b>four</p><p>nine</b></p></div>": "<p>zehn <b>vier</b></p><p><b>neun</b></p></div>",
        "ten <code>rm &lt;x></code> four": "zehn <code>rm &lt;x></code> vier",
    }
    found = client.post("/translate", json={"q": [*posts], "source": "en", "target": "de", "format": "html"}).json()
    assert [_tags(text) for text in found["translatedText"]] == [_tags(text) for text in posts.values()]


def _tags(text: str) -> list[str]:
    return re.findall("<code.*</code>|<[^>]*>", text)


MANY = [(f"f{number}", "x") for number in range(101)]


@pytest.mark.parametrize(
    ("content_type", "body", "said"),
    [
        ("multipart/form-data", _multipart(*FIELDS), "neither JSON nor a form"),
        ("multipart/form-data; boundary=other", _multipart(*FIELDS), "neither JSON nor a form"),
        ("multipart/form-data; boundary=boundary", _multipart(*FIELDS)[:-5], "neither JSON nor a form"),
        ("multipart/form-data; boundary=boundary", _multipart(*FIELDS, *MANY), "neither JSON nor a form"),
        ("multipart/form-data; boundary=boundary", _multipart(*FIELDS, head="X: {}\r\n"), "neither JSON nor a form"),
        (
            "multipart/form-data; boundary=boundary",
            _multipart(*FIELDS, head='Content-Disposition: form-data; name="{}"; filename="a.txt"\r\n'),
            "the form contains a file; send its text in the field q",
        ),
        (FORM, b"q=\xff&source=en&target=de", "neither JSON nor a form in UTF-8"),
        (FORM, b"q=%ff&source=en&target=de", "neither JSON nor a form in UTF-8"),
        ("text/plain", json.dumps(dict(FIELDS)).encode(), "send JSON with content-type: application/json"),
    ],
)
def test_a_form_that_cannot_be_read_is_explained(
    content_type: str, body: bytes, said: str, client: httpx.Client
) -> None:
    answer = client.post("/translate", content=body, headers={"content-type": content_type})
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_what_clients_ask_first(client: httpx.Client) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    asked = client.request("GET", "/languages", content=b"", headers={"content-type": FORM})  # libretranslatepy
    assert asked.status_code == 200
    settings = client.get("/frontend/settings").json()
    assert settings["keyRequired"] is False
    assert settings["charLimit"] == 256_000
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    for path in ("/health", "/healthz", "/readyz", "/languages"):
        head = client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["content-length"]) > 0
    assert client.head("/translate").status_code == 405


def test_detection_takes_forms_and_fields_that_it_ignores(client: httpx.Client) -> None:
    found = client.post("/detect", json={"q": "four", "format": "text", "api_key": ""}).json()  # libretranslate-ts
    assert client.post("/detect", content=b"q=four", headers={"content-type": FORM}).json() == found
    assert [each["language"] for each in found] == ["en", "de"]  # one vocabulary: nobody can tell
    assert found[0]["confidence"] == found[1]["confidence"] < 50
    assert client.post("/detect", json={}).json() == {"error": "q is missing; add it"}


def test_a_language_is_judged_by_its_letters_and_the_vocabularies(bundle_dir: Any) -> None:
    own, shared = Model("own", Bundle.open(bundle_dir)).encoder, Model("golden", Bundle.open(BUNDLE)).encoder
    (first, second) = detect("seven eight nine", {"de": [Side(own, 1)], "en": [Side(own, 0)]})
    assert (first.language, second.language) == ("en", "de")
    assert first.confidence > 2 * second.confidence
    assert first.confidence + second.confidence <= 100.1
    one, other = detect("twenty-one years ago", {"en": [Side(shared, 0)], "ru": [Side(shared, 0)]})
    assert (one.language, other.confidence) == ("en", 0.0)  # Latin letters are not Russian
    for text in ("\u043f\u0440\u0438\u0432\u0435\u0442", "", "\u6f22\u5b57"):
        assert [each.confidence for each in detect(text, {"en": [Side(shared, 0)]})] == [0.0]
    (french,) = detect("bonjour tout le monde", {"en": [Side(shared, 0)]})
    assert french.confidence < 10  # honest: no model has this language


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<p class='red house'>vieux <b>chiens</b></p>", "vieux chiens"),
        ("caf&eacute; &#233;t&#xe9; e\u0301t\u00e9 &#99999999999;", "caf\u00e9 \u00e9t\u00e9 \u00e9t\u00e9"),
        ("see <code>rm -rf</code><style>p {color: red}</style> https://a.example/red?x=y <!-- note -->12", "see"),
        ("\uff2f\uff2c\uff24 d\u2019accord don't", "OLD d\u2019accord don't"),
        ("\u0939\u093f\u0928\u094d\u0926\u0940 3 %", "\u0939\u093f\u0928\u094d\u0926\u0940"),
        ("12 <br> :-) \u2014", ""),
        ("<" * 50_000 + "ten", ""),
        (f"<img src='data:image/png;base64,{'aB3/' * 10_000}'> ten", "ten"),
        ("ten <a href='cut", "ten"),
    ],
)
def test_only_words_have_a_language(text: str, words: str) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("asked", "code", "fit"),
    [
        ("en", "en", 2), ("EN", "en", 2), ("en-US", "en", 1), ("en", "en_GB", 1), ("eng", "en", 2), ("ger", "de", 2),
        ("English", "en", 2), ("zt", "zh-Hant", 2), ("zh-TW", "zh_Hant", 2), ("zh", "zh-Hans", 1), ("pb", "pt-BR", 2),
        ("zh-Hant", "zh-Hans", 0), ("zh-TW", "zh", 0), ("zh-HK", "zh-CN", 0), ("zh", "zh-TW", 0), ("zh-SG", "zh", 1),
        ("sr-Latn", "sr", 0), ("sr", "sr-Latn", 0), ("sr-ME", "sr", 0), ("sr-Cyrl", "sr", 1), ("sh", "sr-Latn", 2),
        ("pa-PK", "pa", 0), ("uz-AF", "uz_Cyrl", 0), ("ps", "pbt_Arab", 1), ("Pashto", "pbt_Arab", 2),
        ("sq", "als_Latn", 1), ("ar", "arb_Arab", 1), ("zh", "zho_Hans", 1), ("zh", "zho_Hant", 0),
        ("English", "eng_Latn", 2), ("Chinese", "zh", 2), ("Chinese", "zh-Hant", 0),
        ("de", "en", 0), ("", "en", 0), ("e" * 10_000, "e", 0), ("x-y", "en+fr", 0),
    ],
)  # fmt: skip
def test_languages_as_clients_spell_them(asked: str, code: str, fit: int) -> None:
    assert match(asked, code) == fit


@pytest.mark.parametrize(
    ("code", "name"),
    [("de", "German"), ("zh-Hans", "Chinese (Simplified)"), ("pbt_Arab", "Pashto"), ("en+fr", "en+fr"), ("", "")],
)
def test_names_of_languages(code: str, name: str) -> None:
    assert name_of(code) == name
