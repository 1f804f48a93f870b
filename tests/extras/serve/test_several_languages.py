"""A server of three models, whose source languages have two scripts: each text goes to the model of its language."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from softsearch import Translator
from softsearch.extras.serve.languages import Detection
from softsearch.extras.serve.libretranslate import Choice, choose
from softsearch.extras.serve.line_queue import RequestError
from softsearch.extras.serve.models import model_facts
from softsearch.runtime.bundle import Bundle
from tests.support.bundles import make_bundle, tokenizers_of
from tests.support.serving import serving

WORDS = {
    "en": ["old red young", "dogs houses cats", "see love"],
    "fr": ["vieux rouge petits", "chiens maisons chats", "voir aimer"],
    "ru": [
        "\u0441\u0442\u0430\u0440\u044b\u0435 \u044e\u043d\u044b\u0435",
        "\u0441\u043e\u0431\u0430\u043a\u0438",
        "\u0432\u0438\u0434\u044f\u0442",
    ],
    "de": ["alte rote junge", "hunde katzen frauen", "sehen lieben"],
}
EN, FR = "old dogs see red houses", "vieux chiens voir rouge maisons"
RU = "\u0441\u0442\u0430\u0440\u044b\u0435 \u0441\u043e\u0431\u0430\u043a\u0438 \u0432\u0438\u0434\u044f\u0442"


def _lines(language: str) -> list[str]:
    adjectives, nouns, verbs = (each.split() for each in WORDS[language])
    return [" ".join(words) for words in product(adjectives, nouns, verbs, adjectives, nouns)]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle into German for each source language; their models were not trained, but differ."""
    folder, found = tmp_path_factory.mktemp("three"), {}
    for seed, src in enumerate(("en", "fr", "ru")):
        training = {"config": {"data": {"src_lang": src, "tgt_lang": "de"}}}
        pair = tokenizers_of(_lines(src), _lines("de"))
        found[src] = make_bundle(folder / src, seed=seed, pair=pair, training=training).path
    return found


@pytest.fixture(scope="module")
def ask(bundles: dict[str, Path]) -> Iterator[Any]:
    """Sends a request for a translation into German, and returns the answer."""
    with serving(*bundles.values(), "--workers", 1) as server, httpx.Client(base_url=server.url, timeout=60) as client:

        def post(path: str = "/translate", **body: Any) -> Any:
            answer = client.post(path, json={"source": "auto", "target": "de"} | body)
            return answer.json() | {"status": answer.status_code} if isinstance(answer.json(), dict) else answer.json()

        yield post


@pytest.mark.parametrize(("language", "text"), [("en", EN), ("fr", FR), ("ru", RU)])
def test_the_model_of_the_language_translates(language: str, text: str, ask: Any, bundles: dict[str, Path]) -> None:
    (wanted,) = Translator(bundles[language], threads=1).translate([text])
    found = ask(q=text)
    assert found["translatedText"] == wanted.text
    assert found["detectedLanguage"]["language"] == language
    assert found["detectedLanguage"]["confidence"] > 50
    assert ask(q=text, source=language)["translatedText"] == wanted.text
    assert ask("/detect", q=text)[0]["language"] == language
    tags = ask(q=f"<div class='old dogs see red'><p>{text}</p></div>", format="html")
    assert tags["detectedLanguage"] == found["detectedLanguage"]
    assert wanted.text in tags["translatedText"]


def test_each_text_of_a_list_has_its_own_language(ask: Any) -> None:
    texts = [FR, "12", EN, "", RU, FR]
    found = ask(q=texts, alternatives=1)
    alone = [ask(q=text, alternatives=1) for text in (FR, EN, RU)]
    for key in ("translatedText", "alternatives", "detectedLanguage"):
        assert [found[key][index] for index in (0, 2, 4, 5)] == [each[key] for each in (*alone, alone[0])]
    # What has no words takes the language of most other texts.
    assert found["detectedLanguage"][1] == {"language": "fr", "confidence": 0.0}
    assert found["translatedText"][3] == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03c3\u03b1\u03c2",
            "0 %",
        ),  # Greek: no model has its letters
        ("das ist gut", "expected at least 10 %"),
        ("12", "it has no words"),
        ("<old dogs>", "it has no words"),
        ([EN, "xyz qqq"], "the language of q[1] is not clear"),
    ],
)
def test_a_language_that_is_not_clear_is_not_guessed(text: str | list[str], said: str, ask: Any) -> None:
    found = ask(q=text)
    assert found["status"] == 400
    assert found["error"].endswith("; name it in source: en, fr, ru")
    assert said in found["error"]
    assert "translatedText" not in found
    assert ask(q=text, source="fr")["status"] == 200  # the advice


@pytest.mark.parametrize(
    ("sources", "confidences", "src"),
    [
        ([], {"en": 40.0, "fr": 40.0}, "en"),  # one model that is not told the language: either gives the same
        (["en", "fr"], {"en": 40.0, "fr": 40.0}, None),
        (["en", "fr"], {"fr": 60.0, "en": 29.0}, "fr"),
        ([], {"en": 40.0, "fr": 39.0, "ru": 21.0}, None),  # which another model reads
        ([], {"ru": 9.9, "en": 0.0, "fr": 0.0}, None),
        ([], {"ru": 10.0, "en": 5.0, "fr": 0.0}, "ru"),
    ],
)
def test_what_is_clear_enough(
    sources: list[str], confidences: dict[str, float], src: str | None, bundles: dict[str, Path]
) -> None:
    plain = model_facts("ru", Bundle.open(bundles["ru"]))
    many = replace(plain, name="many", src_lang="en+fr", sources=sources, targets=["de", "it"])
    by_source = {"en": Choice(many, "en", "de"), "fr": Choice(many, "fr", "de"), "ru": Choice(plain, "ru", "de")}
    found = [[Detection(*each) for each in confidences.items()]]
    if src is None:
        with pytest.raises(RequestError, match="the language of q is not clear"):
            choose(by_source, ["text"], found)
    else:
        (choice,) = choose(by_source, ["text"], found)
        assert choice == by_source[src]._replace(detected=found[0][0])


def test_many_texts_are_judged_by_a_worker(ask: Any) -> None:
    texts = [EN, FR, RU] * 40  # more than the main process looks at
    found = ask(q=texts)
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "fr", "ru"] * 40
    assert found["translatedText"] == ask(q=texts[:3])["translatedText"] * 40


@pytest.mark.parametrize("source", ["uk", "sr-Latn", "auto-detect"])
def test_a_language_without_a_model_is_refused(source: str, ask: Any) -> None:
    assert "is not supported, expected one of: en to de, fr to de, ru to de" in ask(q=EN, source=source)["error"]
    assert "is not supported" in ask(q=EN, target="en")["error"]


def test_a_text_may_have_as_many_sentences_as_characters(ask: Any) -> None:
    """The limits of sentences are those of /translate's own requests."""
    text = " ".join(["Dogs."] * 300)
    found = ask(q=text, source="en")
    one = ask(q="Dogs.", source="en")["translatedText"]
    assert found["translatedText"] == " ".join([one] * 300)
    assert ask(q=["Dogs."] * 200, source="en")["translatedText"] == [one] * 200
    assert "q has 256001 characters, expected at most 256000" in ask(q="a" * 256_001)["error"]
    assert len(json.dumps(ask("/detect", q="dogs " * 50_000))) < 300
