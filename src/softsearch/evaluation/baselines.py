"""Baselines: the systems of an earlier report to compare with."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from softsearch.errors import ConfigError
from softsearch.evaluation.schema import SystemReport, read_report
from softsearch.evaluation.test_set import HeldOutText


def read_earlier(against: Path, text: HeldOutText, names: Collection[str]) -> list[SystemReport]:
    """The systems of the report in the folder ``against``, without their pictures.

    A system whose name is among ``names``, those of the new report, is prefixed with its folder's name.

    Raises:
        ConfigError: the report cannot be read, or is about another test set.
    """
    report = read_report(against)
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
        systems.append(replace(system, name=name, heatmaps=[]))
    return systems


def compare_signatures(new: SystemReport, earlier: Sequence[SystemReport]) -> list[str]:
    """Warnings about earlier scores of a metric with another signature: tokenisation, case, sacreBLEU's version."""
    warnings = []
    for system in earlier:
        for name in new.scores.keys() & {"bleu", "chrf", "ter"} & system.scores.keys():
            own, other = new.scores[name].signature, system.scores[name].signature
            if own != other:
                warnings.append(
                    f"{name} of {system.name} is {other}, that of {new.name} is {own}: the two scores must not be "
                    "compared; only the paired bootstrap is by one metric"
                )
    return sorted(warnings)
