"""Translating and scoring a test set with checkpoints, bundles and ensembles of them, into a report's folder."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

import softsearch
from softsearch.app.config.instantiate import build
from softsearch.app.config.machine import describe_machine
from softsearch.app.config.validation import check, plain
from softsearch.app.console import plain_console
from softsearch.app.evaluate.alignments import align_translations, check_alignment_options, error_rate, write_alignments
from softsearch.app.evaluate.baselines import read_earlier, scored_otherwise
from softsearch.app.evaluate.measure import curve_searches, measure, with_curve
from softsearch.app.evaluate.overlap import find_overlap
from softsearch.app.results import show_report
from softsearch.app.systems.open import open_any, open_systems
from softsearch.app.systems.reranking import build_search
from softsearch.app.systems.test_set import HeldOutText, read_test_set
from softsearch.app.systems.training_text import training_shortlist
from softsearch.app.systems.unknown_words import COPY, read_replace_unknown
from softsearch.app.systems.weights_file import typed_options, with_tuned
from softsearch.errors import ConfigError
from softsearch.evaluation.bootstrap import compare
from softsearch.evaluation.inference import score_lines
from softsearch.evaluation.metrics import corpus_metrics
from softsearch.evaluation.schema import Report, SystemReport, write_report
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.evaluation.word_alignment import Aligned
from softsearch.report.folder import all_or_nothing, file_name
from softsearch.report.page import write_page
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.shortlist_files import open_shortlist
from softsearch.runtime.system import System, combine
from softsearch.search.ensemble import AVERAGES, Ensemble
from softsearch.search.shortlist import Shortlist
from softsearch.search.shortlisted import Shortlisted
from softsearch.text.option_checks import require_bool, require_choice, require_int
from softsearch.training.cpu_memory import keep_freed_memory
from softsearch.training.run_folder import write_hypotheses, write_metrics


@dataclass(frozen=True)
class _Work:
    """All that was computed, to be written together."""

    report: Report
    text: HeldOutText
    aligned: list[list[Aligned] | None]  # of each system's translations


def evaluate(config: DictConfig) -> None:
    """Translates a split, or the two files of ``test``, with each system, and writes a report to the run's folder.

    Raises:
        SoftsearchError: a system or the text cannot be read, or an option is wrong.
    """
    keep_freed_memory()
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # else it tells each step of a test
    config = with_tuned(config, typed_options())
    options = plain(config)
    _check_options(options, config)
    opened = open_systems(options["ckpt"], options["bundle"], options["average"])
    text = read_test_set(config, options, opened)
    for system in opened:
        plain_console().print(
            f"translating {len(text.sources)} sentences with {system.described}", soft_wrap=True, highlight=False
        )
    opened = [_with_shortlist(system, options) for system in opened]
    work = _work(config, options, opened, _with_ensemble(opened, options), text)
    _write(work, options)


def _check_options(options: dict[str, Any], config: DictConfig) -> None:
    """Finds mistakes before hours of translating."""
    check(options["search"], "search")
    for key in ("overlap", "alignments", "members"):
        require_bool(key, options[key])
    if options["ensemble"] is not None:
        require_choice("ensemble", options["ensemble"], AVERAGES)
    for key in ("weights", "language_model"):
        if options[key] is not None and options["ensemble"] is None:
            raise ConfigError(f"{key} is set, but ensemble is null; set ensemble=log_probs or ensemble=probs")
    if options["curve"] is not None:
        if not isinstance(options["curve"], list):
            raise ConfigError(f"curve is {options['curve']!r}, expected a list, as in '[greedy,2,5,10,50,exact]'")
        for search in curve_searches(options["curve"], config.search).values():
            build(search)


def _with_ensemble(opened: list[System], options: dict[str, Any]) -> list[System]:
    if options["ensemble"] is None:
        return opened
    name = "ensemble" if all(system.name != "ensemble" for system in opened) else f"ensemble of {len(opened)}"
    path = options["language_model"]
    language_model = None if path is None else open_any([path])[0]
    together = combine(
        opened, options["ensemble"], options["weights"], language_model, options["language_model_weight"]
    )
    alone = len(opened) == 1 and language_model is None
    return [replace(together, name=name), *(opened if options["members"] and not alone else [])]


def _with_shortlist(system: System, options: dict[str, Any]) -> System:
    """The system with a shortlist, where one is asked for: a bundle's own, or one of a checkpoint's training text."""
    if (frequent := options["shortlist"]["frequent"]) is None:
        return system
    if system.source is None:
        require_int("shortlist.frequent", frequent, at_least=1)
        return replace(
            system, step_fn=Shortlisted(system.step_fn, open_shortlist(Bundle.open(system.origin), frequent))
        )
    tables = training_shortlist(system.source, system.tokenizers, Path(options["cache_dir"]), **options["shortlist"])
    assert isinstance(system.step_fn, TorchStepFunction)
    return replace(system, step_fn=TorchStepFunction(system.step_fn.model, Shortlist(*tables)))


def _work(
    config: DictConfig, options: dict[str, Any], opened: list[System], systems: list[System], text: HeldOutText
) -> _Work:
    gold = check_alignment_options(options, text)
    dictionary = read_replace_unknown(options["replace_unknown"])
    earlier = read_earlier(options["against"], text, {system.name for system in systems})
    reports: list[SystemReport] = []
    aligned: list[list[Aligned] | None] = []
    warnings = _form_warnings(opened, text)
    for system in systems:
        measured = measure(system, config.search, build_search(config.search, system.tokenizers), text, dictionary)
        report = replace(measured.report, search=", ".join([measured.report.search, *_also(system, options)]))
        warnings += measured.warnings
        if options["curve"] is not None:
            report, unproven = with_curve(report, system, options["curve"], config.search, text, dictionary)
            warnings += unproven
        if gold is not None:
            report = replace(report, aer=error_rate(system, gold, text))
        if cut := sum(hypothesis.truncated for hypothesis in measured.found):
            warnings.append(
                f"{system.name}: {cut:,} translations were cut at the length limit, before the model ended them"
            )
        found = (
            align_translations(system, measured, text, options["alignment_units"]) if options["alignments"] else None
        )
        if options["alignments"] and found is None:
            warnings.append(f"{system.name}: no alignments, for the model does not attend to the source")
        reports.append(report)
        aligned.append(found)
    warnings += scored_otherwise(reports[0], earlier)
    reports += earlier
    aligned += [None] * len(earlier)
    overlap: dict[str, int] = {}
    if options["overlap"]:
        overlap, found_there = find_overlap(opened, config.get("data"), text, Path(options["cache_dir"]))
        warnings += found_there
    metrics = corpus_metrics(text_form=text.text_form, tgt_lang=text.tgt_lang)
    report_of_all = Report(
        test_set=text.name,
        src_lang=text.src_lang,
        tgt_lang=text.tgt_lang,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        softsearch_version=softsearch.__version__,
        machine=describe_machine(),
        sources=text.sources,
        references=text.references,
        systems=reports,
        comparisons=compare({report.name: report.hypotheses for report in reports}, metrics, text.references),
        overlap=overlap,
        warnings=warnings,
    )
    return _Work(report_of_all, text, aligned)


def _also(system: System, options: dict[str, Any]) -> list[str]:
    """What else there is to a search, for people."""
    frequent, unknown = options["shortlist"]["frequent"], options["replace_unknown"]
    said = [f"ensemble by {options['ensemble']}"] if isinstance(system.step_fn, Ensemble) else []
    said += [] if frequent is None else [f"shortlist {frequent}"]
    if unknown is None:
        return said
    return [*said, "unknown words copied" if unknown == COPY else f"unknown words from {Path(unknown).name}"]


def _form_warnings(systems: Sequence[System], text: HeldOutText) -> list[str]:
    return [
        f"{system.name} was trained on {system.text_form} text, the test set is {text.text_form}; use text of its form"
        for system in systems
        if system.text_form != text.text_form
    ]


def _write(work: _Work, options: dict[str, Any]) -> None:
    folder, split = Path(options["run_dir"]), str(options["split"])
    with all_or_nothing(folder) as new:
        systems = [
            report if found is None else write_alignments(new, report, found, options)
            for report, found in zip(work.report.systems, work.aligned, strict=True)
        ]
        report = replace(work.report, systems=systems)
        for system in systems:
            name = split if len(systems) == 1 else f"{split}.{file_name(system.name)}"
            write_hypotheses(new, name, system.hypotheses)
        first, text = systems[0], work.text
        scores = score_lines(first.hypotheses, text.lines, text_form=text.text_form, tgt_lang=text.tgt_lang)
        figures = scores.values | ({} if first.nll is None else {"loss": first.nll})
        write_metrics(
            new,
            {f"{split}/{name}": value for name, value in figures.items()},
            {f"{split}/{name}": signature for name, signature in scores.signatures.items()},
        )
        write_report(report, new)
        write_page(report, new)
    show_report(report, folder)
