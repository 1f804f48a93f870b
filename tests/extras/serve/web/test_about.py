"""The file of ``softsearch web --about``: every wrong value is named with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError
from softsearch.extras.serve.web.about import About, Example, Flow, PageAbout, read_about

FLOW = {"encoder": "forward", "bridge": "last", "decoder": "recurrent"}


def write(folder: Path, tree: Any) -> Path:
    path = folder / "about.json"
    path.write_text(tree if isinstance(tree, str) else json.dumps(tree), encoding="utf-8")
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    tree = {
        "title": "<b>",
        "examples": [{"text": "one", "note": "short"}, {"text": "two"}],
        "models": {"b": {"year": 2014, "flow": FLOW, "bleu": 3}, "c": {"year": None}, "a": {"year": 2013}},
    }
    found = read_about(write(tmp_path, tree), ["a", "b", "c", "d"])
    flow = Flow(encoder="forward", bridge="last", decoder="recurrent")
    models = {"b": About(year=2014, flow=flow, bleu=3), "c": About(), "a": About(year=2013)}
    examples = (Example(text="one", note="short"), Example(text="two"))
    assert found == PageAbout(title="<b>", examples=examples, models=models)
    assert found.in_order(["d", "b", "c", "a"]) == ["a", "b", "d", "c"]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("[", "is not JSON that describes models"),
        ("[]", "the file is '[]', expected an object of title, text"),
        ({"titles": ""}, "titles is unknown; did you mean 'title'?"),
        ({"models": {"x": {}}}, "models.x: there is no such export, expected some of a"),
        ({"examples": {"text": "x"}}, "examples is \"{'text': 'x'}\", expected a list of objects of text, note"),
        ({"models": []}, "models is '[]', expected an object of"),
        ({"models": {"a": 1}}, "models.a is '1', expected"),
        ({"models": {"a": {"years": 1}}}, "models.a.years is unknown; did you mean 'year'?"),
        ({"models": {"a": {"year": 1899}}}, "models.a.year is '1899', expected a whole number of at least 1900"),
        ({"models": {"a": {"year": "1990"}}}, "models.a.year is '1990', expected a whole number"),
        ({"models": {"a": {"bleu": 100.1}}}, "models.a.bleu is '100.1', expected a number of at least 0"),
        ({"models": {"a": {"title": 1}}}, "models.a.title is '1', expected text"),
        ({"models": {"a": {"idea": "x" * 2001}}}, "models.a.idea has 2,001 characters"),
        ({"models": {"a": {"idea": "x\ny"}}}, "models.a.idea has 3 characters or several lines"),
        ({"models": {"a": {"link": "javascript:run()"}}}, "models.a.link is 'javascript:run()', expected https://..."),
        ({"models": {"a": {"flow": FLOW | {"bridge": "none"}}}}, "models.a.flow.bridge is 'none', expected one of"),
        ({"models": {"a": {"flow": {"encoder": "none"}}}}, "models.a.flow.bridge is missing"),
        ({"models": {"a": {"flow": "x"}}}, "models.a.flow is 'x', expected"),
        ({"examples": [{"note": "x"}]}, "examples[0].text is missing"),
        ({"examples": ["x"]}, "examples[0] is 'x', expected"),
        (" " * (1 << 20) + "{}", "it has more than 1,048,576 bytes"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(tmp_path: Path, tree: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_about(write(tmp_path, tree), ["a"])
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)
