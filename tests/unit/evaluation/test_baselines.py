"""Systems of an earlier report beside new ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from softsearch.errors import ConfigError
from softsearch.evaluation.baselines import compare_signatures, read_earlier
from softsearch.evaluation.schema import Report, write_report
from softsearch.evaluation.test_set import HeldOutText
from tests.unit.report.page.pages import whole_report


@pytest.fixture
def report(tmp_path: Path) -> Report:
    report = whole_report()
    (tmp_path / "beam").mkdir()
    write_report(report, tmp_path / "beam")
    return report


def text_of(report: Report) -> HeldOutText:
    return HeldOutText("a.en, a.de", report.sources, report.references, "plain", "en", "de")


def test_its_systems_are_as_they_were_but_for_their_pictures(report: Report, tmp_path: Path) -> None:
    found = read_earlier(tmp_path / "beam", text_of(report), ["new"])
    assert found == [replace(system, heatmaps=[]) for system in report.systems]
    assert report.systems[0].heatmaps


def test_names_that_are_taken_get_the_folder_before_them(report: Report, tmp_path: Path) -> None:
    found = read_earlier(tmp_path / "beam", text_of(report), ["rnn", "beam: rnn", "other"])
    assert [system.name for system in found] == ["beam: beam: rnn", "tiny"]


def test_scores_by_another_metric_are_told(report: Report) -> None:
    new, other = report.systems
    scores = {name: replace(score, signature=f"{name}|tok:13a") for name, score in new.scores.items()}
    new, old = replace(new, scores=scores), replace(other, scores=dict(scores))
    assert compare_signatures(new, [old]) == []
    old.scores["bleu"] = replace(scores["bleu"], signature="bleu|tok:none")
    (warning,) = compare_signatures(new, [old, replace(new, name="third")])
    assert warning.startswith("bleu of tiny is bleu|tok:none, that of rnn is bleu|tok:13a: the two scores must not")


@pytest.mark.parametrize("side", ["sources", "references"])
def test_another_text_is_refused(report: Report, tmp_path: Path, side: str) -> None:
    text = replace(text_of(report), **{side: [*getattr(report, side)[:-1], "else"]})
    with pytest.raises(ConfigError, match=r"beam is about test <2016> \(45 sentences\), .* and differs; name a report"):
        read_earlier(tmp_path / "beam", text, [])
