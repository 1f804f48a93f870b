"""Plan of an evaluation: systems, text, searches and metrics, all checked before translating for hours."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig

from softsearch.app.config.build import SearchMaker, search_maker
from softsearch.app.config.composition import composed, option_key, typed_options
from softsearch.app.config.options import Evaluate
from softsearch.app.config.validation import read_options
from softsearch.app.console import echo, progress
from softsearch.app.evaluate.alignments import read_alignment_options
from softsearch.app.evaluate.guard import read_guarded
from softsearch.app.evaluate.searches import curve_searches, describe_search, has_beam, without_glossary
from softsearch.app.results import build_metrics
from softsearch.app.systems.open import open_systems, path_list, trained_metrics, with_ensemble, with_shortlist
from softsearch.app.systems.texts import read_test_set
from softsearch.app.systems.weights_file import with_tuned
from softsearch.errors import ConfigError
from softsearch.evaluation.alignment_error import Gold
from softsearch.evaluation.measure import Evaluator, ScoredSystem, read_earlier, read_translations
from softsearch.evaluation.metrics import Metric, for_text
from softsearch.evaluation.systems import LabSystem
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.text_checks import text_problems
from softsearch.overwriting import refuse_overwriting
from softsearch.report.tables import check_table_name
from softsearch.runtime.ensembles import with_separate_inputs
from softsearch.runtime.stages.terms import TermStage
from softsearch.search.ensemble import Ensemble
from softsearch.text.form_check import SAMPLE, form_problems
from softsearch.text.word_dictionary import read_dictionary

_COPY = "copy"  # value of replace_unknown; a file is ./copy


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an evaluation does."""

    options: Evaluate
    glossary: Path | None
    members: list[LabSystem]  # the systems named by the options
    systems: list[LabSystem]  # the systems to measure: the members, their ensemble, or both
    metrics: Mapping[str, Metric]  # as configured
    evaluator: Evaluator  # with the text and its metrics
    make_search: SearchMaker
    curve: Mapping[str, SearchMaker]
    gold: list[Gold] | None
    guarded: HeldOutText | None
    others: list[ScoredSystem]  # systems that translated earlier: files of translations, and another report's
    warnings: list[str]

    def describe(self, system: LabSystem) -> str:
        """Describes the search and its additions."""
        options = self.options

        frequent, unknown = options.shortlist.frequent, options.replace_unknown
        words = [describe_search(options.search)]
        words += [f"ensemble by {options.ensemble}"] if isinstance(system.step_fn, Ensemble) else []
        words += [] if self.glossary is None else [f"glossary {self.glossary.name}"]
        words += [] if frequent is None else [f"shortlist {frequent}"]
        if unknown is not None:
            words.append("unknown words copied" if unknown == _COPY else f"unknown words from {Path(unknown).name}")
        return ", ".join(words)


def make_plan(config: DictConfig) -> Plan:
    """Reads the options, and opens everything that they name.

    Raises:
        SoftsearchError: a system or the text cannot be read, or an option is wrong.
    """
    options = read_options(with_tuned(config, typed_options()), Evaluate)
    options, glossary, bonus = without_glossary(options)
    _check_options(options)
    make_search = search_maker(options.search)
    curve = {name: search_maker(node) for name, node in curve_searches(options.curve or [], options.search).items()}
    metrics, warnings = build_metrics(options.metric), list[str]()
    hyp, is_alone = path_list(options.hyp), options.ckpt is None and options.bundle is None
    members = [] if hyp and is_alone else open_systems(options.ckpt, options.bundle, options.average)
    if not members:
        _check_without_model(options)
    refuse_overwriting({"data": [member.source for member in members], "table": options.table}, ("table",))
    if not _names_metrics(config):
        own, warnings = trained_metrics(members)
        metrics = own | {name: metric for name, metric in metrics.items() if name not in own}
    whole = read_test_set(options, options.test, members)
    text = whole.select(range(len(whole.sources))[: options.sentences])
    described = [system.described for system in members]
    inputs = 1 if options.test is None else len(options.test) - 1
    members = with_separate_inputs([with_shortlist(system, options) for system in members], inputs)
    systems = with_ensemble(members, options)
    gold, guarded = read_alignment_options(options, text), read_guarded(options, systems)
    bound, dictionary = for_text(metrics, text.text_form, text.tgt_lang), _dictionary(options.replace_unknown)
    terms = None if glossary is None else TermStage(glossary=glossary, glossary_bonus=bonus)
    evaluator = Evaluator(text=text, metrics=bound, dictionary=dictionary, terms=terms, progress=progress)
    names = [system.name for system in systems]
    others = read_translations(hyp, evaluator, len(whole.sources), names)
    names += [system.name for system, _ in others]
    written = {f"the translations {system.origin}": system.hypotheses[:SAMPLE] for system, _ in others}
    warnings += text_problems(text, members, bound) + form_problems(written, text_form=text.text_form, joiner="")
    others += [] if options.against is None else read_earlier(options.against, evaluator, names)
    for system in described:
        echo(f"translating {len(text.sources):,} sentences with {system}")
    return Plan(
        options=options,
        glossary=glossary,
        members=members,
        systems=systems,
        metrics=metrics,
        evaluator=evaluator,
        make_search=make_search,
        curve=curve,
        gold=gold,
        guarded=guarded,
        others=others,
        warnings=warnings,
    )


def _check_options(options: Evaluate) -> None:
    """Refuses options that contradict each other, and unknown formats of tables."""
    check_table_name(options.table)
    if options.against is not None and not options.against.exists():
        raise ConfigError(f"against={options.against} does not exist; name the folder of a report")
    for key in ("weights", "language_model"):
        if getattr(options, key) is not None and options.ensemble is None:
            raise ConfigError(f"{key} is set, but ensemble is null; set ensemble=log_probs or ensemble=probs")
    if options.traces and not has_beam(options.search):
        raise ConfigError(f"traces is {options.traces}, which needs search=beam or search=greedy; set one of them")
    if options.gold is not None and options.test is not None and len(options.test) > 2:
        raise ConfigError("gold aligns one source, but test names several; set gold=null, or name one in test")


def _check_without_model(options: Evaluate) -> None:
    """Refuses options that need a model where only files of translations are named."""
    for key in ("alignments", "curve", "ensemble", "gold", "replace_unknown", "traces"):
        if value := getattr(options, key):
            raise ConfigError(
                f"{key} is {value}, which needs a model, but only hyp is named; add ckpt=RUN, or remove {key}"
            )


def _names_metrics(config: DictConfig) -> bool:
    """Tells whether the user chose the metrics, by an option or in their own config."""
    typed = any(option_key(option).partition(".")[0] == "metric" for option in typed_options())
    return typed or bool(config.metric != composed("evaluate").metric)


def _dictionary(replace_unknown: str | None) -> dict[str, str] | None:
    if replace_unknown is None:
        return None
    return {} if replace_unknown == _COPY else read_dictionary(Path(replace_unknown))
