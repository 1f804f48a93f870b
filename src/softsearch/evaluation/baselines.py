"""Baselines: the systems of an earlier report to compare with."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from softsearch.errors import ConfigError
from softsearch.evaluation.bootstrap import Resamples
from softsearch.evaluation.measure import Evaluator
from softsearch.evaluation.schema import SystemReport, read_report


def read_earlier(
    against: Path, evaluator: Evaluator, names: Collection[str]
) -> list[tuple[SystemReport, dict[str, Resamples]]]:
    """The systems of the report in the folder ``against``, without their pictures, and their scores for paired tests.

    Their translations are scored again, so that all scores of a metric have one signature.

    A system whose name is among ``names``, those of the new report, is prefixed with its folder's name.

    Raises:
        ConfigError: the report cannot be read, or is about another test set.
    """
    report, text, facts = read_report(against), evaluator.text, evaluator.facts()
    same_curve = [*report.metrics][:1] == [*facts][:1]
    if report.sources != text.sources or report.references != text.references:
        raise ConfigError(
            f"against={against} is about {report.test_set} ({len(report.sources):,} sentences), this test set is "
            f"{text.name} ({len(text.sources):,}) and differs; name a report on the same text"
        )
    taken, systems = set(names), []
    for system in report.systems:
        name = system.name
        while name in taken:
            name = f"{against.resolve().name}: {name}"
        taken.add(name)
        scored = evaluator.score(system.hypotheses)
        kept = {key: score for key, score in system.scores.items() if key in facts}  # of translations without UNK
        values = scored.values | {"scores": kept | scored.values["scores"]}
        curve = system.search_curve if same_curve else []
        systems.append((replace(system, **values, name=name, heatmaps=[], search_curve=curve), scored.resampled))
    return systems
