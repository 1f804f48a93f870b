"""``report.json`` is read as it was written, and refused where its values are of other types."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError
from softsearch.evaluation.schema import read_report, three_digits, write_report
from tests.support.pages import whole_report


def test_what_was_written_is_read(tmp_path: Path) -> None:
    report = whole_report()
    path = write_report(report, tmp_path)
    assert read_report(tmp_path) == read_report(path) == report


@pytest.mark.parametrize("text", [None, "{", "[]", "null", "\xff", "[" * 100_000])
def test_a_file_that_is_not_a_report_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "report.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"report\.json cannot be read .*; name the folder of a report"):
        read_report(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda system: system["hypotheses"].pop(), "do not have one translation per reference"),
        (
            lambda system: system["scores"]["bleu"].update(more=1),
            "systems[1].scores.bleu.more is unknown; expected one of value, low, high, signature",
        ),
        (lambda system: system["scores"]["bleu"].pop("low"), "systems[1].scores.bleu.low is missing"),
        (lambda system: system["scores"]["bleu"].update(value="high"), "value is 'high', expected a number"),
        (
            lambda system: system["scores"]["bleu"].update(value=float("inf")),
            "value is 'inf', expected a finite number",
        ),
        (
            lambda system: system["scores"].update(bleu=38.2),
            "scores.bleu is '38.2', expected an object of value, low, high, signature",
        ),
        (lambda system: system.update(name=None), "name is 'None', expected text"),
        (lambda system: system.update(parameters=True), "parameters is 'True', expected a whole number"),
        (lambda system: system.update(parameters=10**400), "expected a finite number of at most 64 bits"),
        (lambda system: system.update(length_ratio=10**400), "expected a finite number of at most 64 bits"),
        (lambda system: system.update(aer="low"), "aer is 'low', expected a number or null"),
        (
            lambda system: system.update(by_length={}),
            "by_length is '{}', expected a list of objects of name, sentences",
        ),
        (lambda system: system["sentence_scores"].append(None), "] is 'None', expected a number"),
    ],
)
def test_values_of_other_types_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = write_report(whole_report(), tmp_path)
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values["systems"][1])
    path.write_text(json.dumps(values))
    with pytest.raises(ConfigError, match=r"report\.json cannot be read") as error:
        read_report(tmp_path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(12345.6, "12,300"), (999.9, "1,000"), (36.34, "36.3"), (9.999, "10.0"), (-0.03764, "-0.0376"), (0.0, "0")],
)
def test_three_digits(value: float, text: str) -> None:
    assert three_digits(value) == text
