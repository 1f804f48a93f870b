"""Systems of an earlier report beside new ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from softsearch.errors import ConfigError
from softsearch.evaluation.measure import Evaluator, read_earlier
from softsearch.evaluation.metrics import BLEU, ExactMatch, Metric
from softsearch.evaluation.schema import Report, write_report
from softsearch.evaluation.test_set import HeldOutText
from tests.support.pages import whole_report


@pytest.fixture
def report(tmp_path: Path) -> Report:
    report = whole_report()
    (tmp_path / "beam").mkdir()
    write_report(report, tmp_path / "beam")
    return report


def text_of(report: Report) -> HeldOutText:
    return HeldOutText("a.en, a.de", report.sources, report.references, "plain", "en", "de")


def evaluator(report: Report, **metrics: Metric) -> Evaluator:
    return Evaluator(
        text=text_of(report), metrics=metrics or {"bleu": BLEU(tokenize="intl"), "exact_match": ExactMatch()}
    )


def test_its_systems_are_as_they_were_but_for_their_pictures(report: Report, tmp_path: Path) -> None:
    found = [system for system, _ in read_earlier(tmp_path / "beam", evaluator(report), ["new"])]
    assert report.systems[0].heatmaps
    assert report.systems[0].search_curve
    for new, old in zip(found, report.systems, strict=True):
        measured = {k: getattr(new, k) for k in ("scores", "by_length", "length_ratio", "sentence_scores")}
        assert new == replace(old, heatmaps=[], traces=[], **measured)


def test_its_translations_are_scored_by_the_new_metrics(report: Report, tmp_path: Path) -> None:
    old = replace(
        report.systems[0], scores=report.systems[0].scores | {"bleu_no_unk": report.systems[0].scores["bleu"]}
    )
    write_report(replace(report, systems=[old]), tmp_path / "beam")
    ((system, resampled),) = read_earlier(tmp_path / "beam", evaluator(report), [])
    assert list(system.scores) == ["bleu", "exact_match", "bleu_no_unk"]
    assert system.scores["bleu_no_unk"] == old.scores["bleu"]  # which cannot be measured again
    assert "tok:intl" in system.scores["bleu"].signature
    assert resampled["bleu"].value == system.scores["bleu"].value < 10 < old.scores["bleu"].value
    ((system, _),) = read_earlier(tmp_path / "beam", evaluator(report, mine=ExactMatch()), [])
    assert (list(system.scores), system.search_curve) == (["mine"], [])  # its searches were ranked by BLEU


def test_names_that_are_taken_get_the_folder_before_them(report: Report, tmp_path: Path) -> None:
    found = read_earlier(tmp_path / "beam", evaluator(report), ["rnn", "beam: rnn", "other"])
    assert [system.name for system, _ in found] == ["beam: beam: rnn", "tiny"]


@pytest.mark.parametrize("side", ["sources", "references"])
def test_another_text_is_refused(report: Report, tmp_path: Path, side: str) -> None:
    text = replace(text_of(report), **{side: [*getattr(report, side)[:-1], "else"]})
    with pytest.raises(ConfigError, match=r"beam is about test <2016> \(45 sentences\), .* and differs; set against"):
        read_earlier(tmp_path / "beam", Evaluator(text=text, metrics={"bleu": BLEU()}), [])
