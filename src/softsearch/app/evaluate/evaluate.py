"""``evaluate``: a report on checkpoints, bundles and ensembles of them on a test set."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from omegaconf import DictConfig

import softsearch
from softsearch.app.config.validation import build
from softsearch.app.console import echo, progress
from softsearch.app.environment import describe_machine
from softsearch.app.evaluate.alignments import choose_sentences, measure_alignments, write_alignments
from softsearch.app.evaluate.guard import ABOVE, WITHIN, guard
from softsearch.app.evaluate.plan import Plan, make_plan
from softsearch.app.evaluate.searches import curve_options
from softsearch.app.results import all_or_nothing, file_name, show_report, write_hypotheses, write_metrics
from softsearch.errors import SoftsearchError
from softsearch.evaluation.bootstrap import Resamples, paired_bootstrap
from softsearch.evaluation.metrics import report_metrics
from softsearch.evaluation.schema import Report, SystemReport, write_report
from softsearch.evaluation.search_curve import search_curve
from softsearch.evaluation.systems import LabSystem
from softsearch.evaluation.train_test_overlap import find_overlap
from softsearch.evaluation.word_alignment import Alignment
from softsearch.report.curves import Points, read_points
from softsearch.report.page import write_page


class Measurement(NamedTuple):
    """Results of measuring a system."""

    report: SystemReport
    resampled: dict[str, Resamples]
    alignments: list[Alignment] | None
    warnings: list[str]


def evaluate(config: DictConfig) -> None:
    """Translates a split, or the files of ``test``, with all systems, and writes a report to the run's folder.

    Raises:
        SoftsearchError: a system or the text cannot be read, or an option is wrong.
    """
    plan = make_plan(config)
    measured = [_measure(plan, system) for system in plan.systems]
    overlap, matches = _overlap(plan)
    outcome = None if plan.guarded is None else guard(plan.options, plan.systems, plan.guarded, plan.metrics)
    warnings = [*plan.warnings, *(warning for one in measured for warning in one.warnings), *matches]
    if outcome is not None and outcome.verdict != WITHIN:
        warnings.append(outcome.described)
    report = _report(plan, measured, overlap, warnings)
    _write(report, measured, plan)
    show_report(report, plan.options.run_dir, plan.options.table)
    if outcome is not None and outcome.verdict == WITHIN:
        echo(outcome.described)
    if outcome is not None and outcome.verdict == ABOVE:
        raise SoftsearchError(f"guard.max_loss={plan.options.guard.max_loss:g} is exceeded")


def _measure(plan: Plan, system: LabSystem) -> Measurement:
    """Translates the text with a system, and takes the measurements that the options ask for."""
    options, evaluator = plan.options, plan.evaluator
    strategy = plan.make_search(system.tokenizers, system.max_length_factor)
    report, hypotheses, warnings, resampled = evaluator.measure(system, strategy, plan.describe(system))
    if plan.curve:
        searches = {name: make(system.tokenizers, system.max_length_factor) for name, make in plan.curve.items()}
        first = resampled[next(iter(evaluator.metrics))]
        points, unproven = search_curve(evaluator, system, searches, curve_options(options.search), first)
        report = replace(report, search_curve=points)
        warnings += unproven
    report, alignments = measure_alignments(system, evaluator.text, report, hypotheses, plan.gold, options)
    if options.alignments and alignments is None:
        warnings.append(f"{system.name}: no alignments, because the model has no attention")
    sentences = choose_sentences(options.traces, range(len(hypotheses)))
    report = replace(report, traces=evaluator.trace(system, strategy, sentences))
    return Measurement(report, resampled, alignments, warnings)


def _overlap(plan: Plan) -> tuple[dict[str, int], list[str]]:
    """Counts the sentences of the text in the training data of each system; also returns warnings."""
    options, text = plan.options, plan.evaluator.text
    if not options.overlap or text.features is not None:  # different pictures may have equal captions
        return {}, []
    sources = {system.name: system.source for system in plan.members}
    near = options.overlap == "near"
    return find_overlap(sources, build(options.data), text, options.cache_dir, near=near, progress=progress)


def _report(plan: Plan, measured: Sequence[Measurement], overlap: dict[str, int], warnings: list[str]) -> Report:
    evaluator, text = plan.evaluator, plan.evaluator.text
    systems = [*((one.report, one.resampled) for one in measured), *plan.others]
    return Report(
        test_set=text.name,
        src_lang=text.src_lang,
        tgt_lang=text.tgt_lang,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        softsearch_version=softsearch.__version__,
        machine=describe_machine(),
        sources=text.sources,
        references=text.references,
        systems=[system for system, _ in systems],
        metrics=evaluator.facts(),
        sentence_metric=evaluator.sentence_metric,
        comparisons=paired_bootstrap({system.name: resampled for system, resampled in systems}),
        overlap=overlap,
        warnings=warnings,
    )


def _write(report: Report, measured: Sequence[Measurement], plan: Plan) -> None:
    """Writes the translations, alignments, metrics and the report."""
    options, text, systems = plan.options, plan.evaluator.text, report.systems
    with all_or_nothing(options.run_dir) as folder:
        for one in measured:
            if one.alignments is not None:
                write_alignments(folder, one.report.name, one.alignments, options.alignment_units)
        for system in systems:
            name = options.split if len(systems) == 1 else f"{options.split}.{file_name(system.name)}"
            write_hypotheses(folder, name, system.hypotheses)
        write_report(report, folder)
        write_page(report, folder, _curves(report))
        scores = report_metrics(systems[0], text, plan.metrics).prefixed(options.split)
        write_metrics(folder, scores, {}, model=systems[0].architecture, text=text)


def _curves(report: Report) -> dict[str, Points]:
    """Returns the learning curves, by system, of checkpoints in the folders of their runs."""
    curves = {}
    for system in report.systems:
        with suppress(OSError, LookupError, ValueError):  # a bundle, or another file with that name
            curves[system.name] = read_points(Path(system.origin).parents[1] / "metrics.csv")
    return curves
