"""``evaluate``: checkpoints, bundles and ensembles of them on a test set, with a report."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

import softsearch
from softsearch.app.config.build import search_maker
from softsearch.app.config.composition import composed, option_key, typed_options
from softsearch.app.config.options import Evaluate
from softsearch.app.config.validation import build, check, read_options
from softsearch.app.console import echo, progress
from softsearch.app.environment import describe_machine
from softsearch.app.evaluate.alignments import measure_alignments, read_alignment_options, write_alignments
from softsearch.app.evaluate.guard import ABOVE, WITHIN, guard, read_guarded
from softsearch.app.evaluate.searches import curve_options, curve_searches, describe_search
from softsearch.app.results import build_metrics, show_report, write_hypotheses, write_metrics
from softsearch.app.systems.open import open_any, open_systems, trained_metrics
from softsearch.app.systems.texts import read_test_set, training_shortlist
from softsearch.app.systems.weights_file import with_tuned
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.evaluation.bootstrap import Resamples, paired_bootstrap
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.evaluation.measure import Evaluator, read_earlier
from softsearch.evaluation.metrics import for_text, report_metrics
from softsearch.evaluation.schema import Report, SystemReport, all_or_nothing, file_name, write_report
from softsearch.evaluation.search_curve import search_curve
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.text_checks import text_problems
from softsearch.evaluation.train_test_overlap import find_overlap
from softsearch.evaluation.word_alignment import Alignment
from softsearch.report.curves import Points, read_points
from softsearch.report.page import write_page
from softsearch.runtime.bundle import Bundle, open_shortlist
from softsearch.runtime.system import System, combine, shortlisted, with_separate_inputs
from softsearch.search.ensemble import Ensemble
from softsearch.search.shortlist import Shortlist
from softsearch.text.word_dictionary import read_dictionary

_COPY = "copy"  # of replace_unknown; ./copy is a file


def evaluate(config: DictConfig) -> None:
    """Translates a split, or the two files of ``test``, with all systems, and writes a report to the run's folder.

    Raises:
        SoftsearchError: a system or the text cannot be read, or an option is wrong.
    """
    options = read_options(with_tuned(config, typed_options()), Evaluate)
    curve, metrics = _check_options(options), build_metrics(options.metric)
    members = open_systems(options.ckpt, options.bundle, options.average)
    warnings: list[str] = []
    if not _names_metrics(config):
        own, warnings = trained_metrics(members)
        metrics = own | {name: metric for name, metric in metrics.items() if name not in own}
    text = read_test_set(options, options.test, members)
    text = text.select(range(len(text.sources))[: options.sentences])
    for system in members:
        echo(f"translating {len(text.sources):,} sentences with {system.described}")
    inputs = 1 if options.test is None else len(options.test) - 1
    members = with_separate_inputs([_with_shortlist(system, options) for system in members], inputs)
    systems = _with_ensemble(members, options)
    gold, guarded = read_alignment_options(options, text), read_guarded(options, systems)
    bound, dictionary = for_text(metrics, text.text_form, text.tgt_lang), _dictionary(options.replace_unknown)
    evaluator = Evaluator(text=text, metrics=bound, dictionary=dictionary, progress=progress)
    names = [system.name for system in systems]
    earlier = [] if options.against is None else read_earlier(options.against, evaluator, names)
    warnings += text_problems(text, members, bound)
    measured, alignments = [], {}
    for system in systems:
        strategy = search_maker(options.search)(system.tokenizers)
        report, hypotheses, problems, resampled = evaluator.measure(system, strategy, _describe(system, options))
        if curve:
            searches = {name: search_maker(node)(system.tokenizers) for name, node in curve.items()}
            first = resampled[next(iter(bound))]
            points, unproven = search_curve(evaluator, system, searches, curve_options(options.search), first)
            report = replace(report, search_curve=points)
            problems += unproven
        aer, alignments[system.name] = measure_alignments(system, text, hypotheses, gold, options)
        if options.alignments and alignments[system.name] is None:
            problems.append(f"{system.name}: no alignments, because the model has no attention")
        measured.append((replace(report, aer=aer), resampled))
        warnings += problems
    overlap: dict[str, int] = {}
    if options.overlap and text.features is None:  # captions of different pictures may be equal
        sources = {system.name: system.source for system in members}
        overlap, matches = find_overlap(sources, build(options.data), text, options.cache_dir)
        warnings += matches
    outcome = None if guarded is None else guard(options, systems, guarded, metrics)
    warnings += [outcome.described] if outcome is not None and outcome.verdict != WITHIN else []
    whole = _report(evaluator, [*measured, *earlier], overlap, warnings)
    with all_or_nothing(options.run_dir) as new:
        whole = _write(whole, alignments, text, options, new)
        scores = report_metrics(whole.systems[0], text, metrics).prefixed(options.split)
        write_metrics(new, scores, {}, model=whole.systems[0].architecture, text=text)
    show_report(whole, options.run_dir)
    if outcome is not None and outcome.verdict == WITHIN:
        echo(outcome.described)
    if outcome is not None and outcome.verdict == ABOVE:
        raise SoftsearchError(f"guard.max_loss={options.guard.max_loss:g} is exceeded")


def _check_options(options: Evaluate) -> dict[str, DictConfig]:
    """Finds mistakes before hours of translating; returns the searches of the curve."""
    check(OmegaConf.to_container(options.search, resolve=True), "search")
    for key in ("weights", "language_model"):
        if getattr(options, key) is not None and options.ensemble is None:
            raise ConfigError(f"{key} is set, but ensemble is null; set ensemble=log_probs or ensemble=probs")
    if options.gold is not None and options.test is not None and len(options.test) > 2:
        raise ConfigError("gold aligns one source, and test names several; set gold=null, or name one in test")
    return curve_searches(options.curve or [], options.search)


def _names_metrics(config: DictConfig) -> bool:
    """Whether the user chose the metrics, by an option or in a config of their own."""
    typed = any(option_key(option).partition(".")[0] == "metric" for option in typed_options())
    return typed or bool(config.metric != composed("evaluate").metric)


def _with_ensemble(members: list[System], options: Evaluate) -> list[System]:
    if options.ensemble is None:
        return members
    assert not isinstance(options.weights, Path)  # with_tuned has read it
    name = "ensemble" if all(system.name != "ensemble" for system in members) else f"ensemble of {len(members)}"
    language_model = None if options.language_model is None else open_any([str(options.language_model)])[0]
    ensemble = combine(members, options.ensemble, options.weights, language_model, options.language_model_weight)
    alone = len(members) == 1 and language_model is None
    return [replace(ensemble, name=name), *(members if options.members and not alone else [])]


def _with_shortlist(system: System, options: Evaluate) -> System:
    """The system with a shortlist, if one is asked for: a bundle's own, or one of a checkpoint's training text."""
    frequent = options.shortlist.frequent
    if frequent is None:
        return system
    if system.source is None:
        shortlist = open_shortlist(Bundle.open(system.origin), frequent)
        return replace(system, step_fn=shortlisted(system.step_fn, shortlist))
    tables = training_shortlist(
        system.source, system.tokenizers, options.cache_dir, frequent, options.shortlist.translations
    )
    assert isinstance(system.step_fn, TorchStepFunction)
    return replace(system, step_fn=TorchStepFunction(system.step_fn.model, Shortlist(*tables)))


def _dictionary(replace_unknown: str | None) -> dict[str, str] | None:
    if replace_unknown is None:
        return None
    return {} if replace_unknown == _COPY else read_dictionary(Path(replace_unknown))


def _describe(system: System, options: Evaluate) -> str:
    """A description of the search and its additions."""
    frequent, unknown = options.shortlist.frequent, options.replace_unknown
    words = [describe_search(options.search)]
    words += [f"ensemble by {options.ensemble}"] if isinstance(system.step_fn, Ensemble) else []
    words += [] if frequent is None else [f"shortlist {frequent}"]
    if unknown is not None:
        words.append("unknown words copied" if unknown == _COPY else f"unknown words from {Path(unknown).name}")
    return ", ".join(words)


def _report(
    evaluator: Evaluator,
    systems: list[tuple[SystemReport, dict[str, Resamples]]],
    overlap: dict[str, int],
    warnings: list[str],
) -> Report:
    text = evaluator.text
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


def _write(
    report: Report, alignments: dict[str, list[Alignment] | None], text: HeldOutText, options: Evaluate, folder: Path
) -> Report:
    """Writes the translations, alignments by system, and the report, which it returns with its heatmaps."""
    systems = [
        write_alignments(folder, system, alignments.get(system.name), text, options) for system in report.systems
    ]
    report = replace(report, systems=systems)
    for system in systems:
        name = options.split if len(systems) == 1 else f"{options.split}.{file_name(system.name)}"
        write_hypotheses(folder, name, system.hypotheses)
    write_report(report, folder)
    write_page(report, folder, _curves(report))
    return report


def _curves(report: Report) -> dict[str, Points]:
    """The learning curves of the checkpoints that are in the folders of their runs, by system."""
    curves = {}
    for system in report.systems:
        with suppress(OSError, LookupError, ValueError):  # a bundle, or another file of the name
            curves[system.name] = read_points(Path(system.origin).parents[1] / "metrics.csv")
    return curves
