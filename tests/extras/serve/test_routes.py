"""The routes answer as the runtime translates."""

import json
from typing import Any

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from softsearch import Translator
from tests.support.serving import GOLDEN

SOURCES = (GOLDEN / "sources.txt").read_text().splitlines()
SENTENCE = SOURCES[1]


def _translate(client: httpx.Client, **body: Any) -> list[Any]:
    answer = client.post("/translate", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["model"] == "golden"
    return answer.json()["translations"]


def _events(client: httpx.Client, **body: Any) -> list[tuple[str, dict[str, Any]]]:
    answer = client.post("/translate/stream", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = []
    for block in answer.text.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


def test_many_sentences_are_those_of_the_runtime(client: httpx.Client) -> None:
    lines = SOURCES[:100]
    found = _translate(client, text=lines)
    wanted = (GOLDEN / "translations.txt").read_text().splitlines()[:100]
    assert [each["n_best"][0]["text"] for each in found] == wanted


def test_all_options_reach_the_search(client: httpx.Client, translator: Translator) -> None:
    options = {
        "search": "beam",
        "beam": 6,
        "n_best": 3,
        "alignments": True,
        "min_length": 3,
        "max_length": 12,
        "length_penalty": 0.5,
        "length_norm": "gnmt",
        "coverage_penalty": 0.1,
        "no_repeat_ngram": 2,
        "groups": 2,
        "diversity": 0.3,
        "exact_stop": True,
    }
    (found,) = _translate(client, text=SENTENCE, prefix="neun", model="golden", **options)
    (wanted,) = translator.translate([SENTENCE], prefixes=["neun"], **options)
    assert len(found["n_best"]) == 3
    for got, hypothesis in zip(found["n_best"], wanted.n_best, strict=True):
        assert got["text"] == hypothesis.text
        assert got["score"] == pytest.approx(hypothesis.score, abs=1e-5)
        assert got["truncated"] == hypothesis.truncated
        assert got["src_pieces"] == list(hypothesis.src_pieces)
        assert got["tgt_pieces"] == list(hypothesis.tgt_pieces)
        assert hypothesis.alignments is not None
        np.testing.assert_allclose(got["alignments"], hypothesis.alignments, atol=1e-4)


def test_a_trace_comes_with_the_same_translation(client: httpx.Client, translator: Translator) -> None:
    plain, traced = (_translate(client, text=SENTENCE, beam=3, trace=trace)[0] for trace in (False, True))
    traces = traced.pop("traces")
    assert traced == plain
    assert traces == list(translator.translate([SENTENCE], beam=3, trace=True)[0].traces)
    answer = client.post("/translate", json={"text": SENTENCE, "search": "sample", "trace": True})
    assert answer.status_code == 422
    assert "a trace shows beam or greedy search, found Sampling" in answer.json()["error"]
    answer = client.post("/translate", json={"text": ["a" * 2000] * 10, "trace": True})
    assert "traces of 20000 characters" in answer.json()["error"]


def test_a_model_without_heads_says_so(client: httpx.Client) -> None:
    assert client.get("/models").json()["models"][0]["heads"] == []
    answer = client.post("/translate", json={"text": SENTENCE, "head": "layer 0, head 0"})
    assert answer.status_code == 422
    assert "head is 'layer 0, head 0', but model golden has none" in answer.json()["error"]


def test_samples_are_those_of_the_seed(client: httpx.Client, translator: Translator) -> None:
    options = {"search": "sample", "seed": 7, "temperature": 1.5, "top_k": 20, "top_p": 0.9, "n_best": 2}
    (found,) = _translate(client, text=SENTENCE, **options)
    (wanted,) = translator.translate([SENTENCE], **options)
    assert [each["text"] for each in found["n_best"]] == [each.text for each in wanted.n_best]


def test_confidence_comes_if_asked_for(client: httpx.Client, translator: Translator) -> None:
    asked, blank = _translate(client, text=[SENTENCE, " "], n_best=2, beam=3, confidence=True)
    (wanted,) = translator.translate([SENTENCE], n_best=2, beam=3, confidence=True)
    for got, hypothesis in zip(asked["n_best"], wanted.n_best, strict=True):
        assert hypothesis.confidence is not None
        expected = hypothesis.confidence.facts()
        assert got["confidence"].pop("agreement") is expected.pop("agreement") is None
        assert got["confidence"] == {name: pytest.approx(value, abs=1e-4) for name, value in expected.items()}
    (agreed,) = _translate(client, text=SENTENCE, agreement=3)
    (wanted,) = translator.translate([SENTENCE], agreement=3)
    assert wanted.confidence is not None
    assert agreed["n_best"][0]["confidence"]["agreement"] == pytest.approx(wanted.confidence.agreement, abs=1e-4)
    assert blank["n_best"][0]["confidence"] is None
    assert _translate(client, text=SENTENCE, confidence=False)[0]["n_best"][0]["confidence"] is None


def test_what_the_model_does_not_know_is_in_the_answer(client: httpx.Client) -> None:
    one, other = _translate(client, text=[SENTENCE, "one \u6f22 two \u6f22\u5b57"])
    assert (one["unknown"], other["unknown"]) == ([], ["\u6f22", "\u6f22", "\u5b57"])
    (*_, (event, result)) = _events(client, text="one \u6f22")
    assert (event, result["unknown"]) == ("done", ["\u6f22"])


def test_terms_and_text_to_keep_are_as_of_the_runtime(client: httpx.Client, translator: Translator) -> None:
    lines = ["four euro eighty-three cents", "ten \u6f22", "nine"]
    asked: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"glossary": {"euro": "dollar|dollars", "ten": "\u6f22"}},) * 2,
        ({"glossary": "money"}, {"glossary": {"euro": "dollar"}}),
        ({"glossary": "money", "glossary_bonus": 9.5}, {"glossary": {"euro": "dollar"}, "glossary_bonus": 9.5}),
        ({"keep": ["th.ee", "x{3}"], "keep_usual": True}, {"keep": ["th.ee"], "keep_usual": True}),
        ({"keep": ["three"]}, {"keep": ["(?i)TH.{2}E"]}),
    ]
    texts = []
    for body, options in asked:
        found, wanted = _translate(client, text=lines, **body), translator.translate(lines, **options)
        for got, each in zip(found, wanted, strict=True):
            assert (got["n_best"][0]["text"], got["n_best"][0]["missing_terms"]) == (each.text, [*each.missing_terms])
        texts.append(found[0]["n_best"][0]["text"])
        (*_, (event, result)) = _events(client, text=lines[0], **body)
        assert (event, result.pop("final"), result) == ("done", True, found[0])
    assert _translate(client, text=lines[1], **asked[0][0])[0]["n_best"][0]["missing_terms"] == ["ten"]
    assert "dollar" in texts[0]
    assert "three" in texts[3]
    assert "three" in texts[4]
    (split,) = _translate(client, text=f"{lines[0]}. {lines[2]}", paragraphs=True, glossary="money")
    assert "dollar" in split["n_best"][0]["text"]


def test_a_stream_grows_to_the_translation(client: httpx.Client) -> None:
    text = max(SOURCES, key=len)
    events = _events(client, text=text, n_best=2, alignments=True)
    assert [name for name, _ in events] == ["partial"] * (len(events) - 1) + ["done"]
    assert len(events) > 2
    lengths = [len(data["n_best"][0]["tgt_pieces"]) for _, data in events]
    assert lengths == sorted(lengths)
    assert lengths[0] == 4
    assert [data.pop("final") for _, data in events] == [False] * (len(events) - 1) + [True]
    assert events[-1][1] == _translate(client, text=text, n_best=2, alignments=True)[0]


@pytest.mark.parametrize(
    "options",
    [
        {"max_length": 2},
        {"max_length": 6},
        {"search": "greedy"},
        {"search": "sample"},
        {"min_length": 5, "text": "ten"},  # above the first limits, which are 4, 8 and 16
        {"min_length": 12, "text": "ten", "search": "greedy"},
        {"min_length": 20, "text": "ten", "n_best": 2},
        {"beam": 2, "exact_stop": True, "length_penalty": 2.0, "text": "ten"},
    ],
)
def test_a_stream_ends_with_the_translation_of_any_options(client: httpx.Client, options: dict[str, Any]) -> None:
    asked = {"text": SENTENCE} | options
    name, data = _events(client, **asked)[-1]
    assert (name, data.pop("final")) == ("done", True)
    assert data == _translate(client, **asked)[0]


def test_a_blank_sentence_is_done_at_once(client: httpx.Client) -> None:
    ((name, data),) = _events(client, text=" ")
    assert (name, data["n_best"][0]["text"]) == ("done", "")


def test_scores_are_those_of_the_runtime(client: httpx.Client, translator: Translator) -> None:
    src, tgt = ["four", "nine"], ["vier", "acht"]
    answer = client.post("/score", json={"src": src, "tgt": tgt}).json()
    for got, wanted in zip(answer["scores"], translator.score(src, tgt), strict=True):
        assert got["log_prob"] == pytest.approx(wanted.log_prob, abs=1e-5)
        assert got["token_log_probs"] == pytest.approx(wanted.token_log_probs, abs=1e-5)


def test_paragraphs_are_their_sentences(client: httpx.Client, translator: Translator) -> None:
    text = " Four cats. Nine dogs!\r\n\r\nten"
    (wanted,) = translator.translate([text], paragraphs=True, n_best=2)
    found = _translate(client, text=[text, "ten"], paragraphs=True, n_best=2)
    assert [each["text"] for each in found[0]["n_best"]] == [each.text for each in wanted.n_best]
    assert found[0]["n_best"][0]["log_prob"] == pytest.approx(wanted.log_prob, abs=1e-5)
    assert found[1]["n_best"][0]["text"] == wanted.text.rpartition("\n")[2]
    (blank,) = _translate(client, text=" \n", paragraphs=True)
    assert blank["n_best"][0]["text"] == " \n"
    asked = {"q": text, "source": "en", "target": "de"}
    assert client.post("/translate", json=asked).json() == {"translatedText": wanted.text}
    for beside in ({"prefix": "neun"}, {"alignments": True}):
        answer = client.post("/translate", json={"text": text, "paragraphs": True, **beside})
        assert (answer.status_code, "cannot be combined" in answer.json()["error"]) == (422, True)
    many = client.post("/translate", json={"text": "A man slept. " * 200, "paragraphs": True})
    assert (many.status_code, "200 sentences, expected at most 128" in many.json()["error"]) == (422, True)


def test_what_there_is(client: httpx.Client) -> None:
    (model,) = client.get("/models").json()["models"]
    assert model.items() >= {"name": "golden", "src_lang": "en", "tgt_lang": "de", "beam": 5}.items()
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_metrics_count_requests_lines_and_batches(client: httpx.Client) -> None:
    def read() -> dict[tuple[str, ...], float]:
        families = text_string_to_metric_families(client.get("/metrics").text)
        return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}

    before = read()
    _translate(client, text=["four", "nine"])
    client.post("/translate", json={"text": "x" * 3000})
    client.get("/nobody/is/here")
    after = read()

    def grown(*name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grown("softsearch_requests_total", "/translate", "200") == 1
    assert grown("softsearch_requests_total", "/translate", "422") == 1
    assert grown("softsearch_requests_total", "other", "404") == 1
    assert grown("softsearch_request_seconds_count", "/translate") == 2
    assert grown("softsearch_lines_total", "golden", "done") == 2
    assert grown("softsearch_characters_total", "golden") == 8  # of the requests within the limits
    assert grown("softsearch_batch_lines_sum", "golden") == 2
    assert grown("softsearch_waiting_seconds_count", "golden") == 2
    assert grown("softsearch_batch_seconds_count", "golden") >= 1
    assert after["softsearch_queue_lines",] == 0
    assert after["softsearch_workers",] == 1
    assert after["softsearch_worker_restarts_total",] == 0
