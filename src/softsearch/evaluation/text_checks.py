"""Warnings about test and validation sets for which scores would be misleading."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from softsearch.data.corpora.base import TextForm
from softsearch.evaluation.metrics import Metric
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.units import is_unspaced, tokenizer_for
from softsearch.text.form_check import SAMPLE, form_problems, reference_problems

if TYPE_CHECKING:  # only for type checking, because training does not use systems
    from softsearch.evaluation.systems import LabSystem

Languages = tuple[str, str]  # of source and target; "" if not given


def unsegmented(references: Sequence[str], *, text_form: TextForm, tgt_lang: str) -> str | None:
    """Describes the problem of text without spaces in another language: BLEU would count a sentence as one word."""
    text, words = "".join(references), sum(len(line.split()) for line in references)
    is_known = tokenizer_for(text_form, tgt_lang) != "13a"
    if is_known or len(text) < 5 * words or not is_unspaced(references):
        return None
    return f"the target language is {tgt_lang!r}, but its text has no spaces, so BLEU counts a sentence as one word"


def without_scores(metrics: Mapping[str, Metric], references: Sequence[str]) -> list[str]:
    """Returns warnings of metrics that are the same for any translations of these references."""
    unable = [metric.title for metric in metrics.values() if not metric.can_score(references)]
    return [f"no reference has four words, so {unable[0]} is 0 for any translation"] if unable else []


def language_problems(what: str, languages: Languages, others: Mapping[str, Languages]) -> list[str]:
    """Returns warnings of ``others``, by name, whose languages differ from those of ``what``: models and their text.

    Codes with three letters, regions or scripts are the same language (``deu``, ``de-AT``); if there are several
    (``de+fr``), one common language is enough. A language that is not given is not compared.
    """
    found = []
    for name, own in others.items():
        if all(map(_same, languages, own)):
            continue
        is_swapped = all((*languages, *own)) and all(map(_same, languages, own[::-1]))
        advice = "are the files swapped?" if is_swapped else "scores would be meaningless"
        found.append(f"{what} is {'-'.join(languages)}, but {name} is {'-'.join(own)}; {advice}")
    return found


def _same(one: str, other: str) -> bool:
    """Tells whether two languages, or lists of them, have one in common, or one is not given."""
    return not (one and other) or bool(_codes(one) & _codes(other))


def _codes(languages: str) -> set[str]:
    from babel.core import get_global  # takes a tenth of a second

    aliases = get_global("language_aliases")
    primaries = (re.split("[-_]", code)[0].lower() for code in languages.split("+"))
    return {aliases.get(code, code) for code in primaries}


def text_problems(text: HeldOutText, systems: Sequence["LabSystem"], metrics: Mapping[str, Metric]) -> list[str]:
    """Returns warnings of a test set that does not suit the systems or the metrics."""
    models = {f"the model {system.name}": (system.src_lang, system.tgt_lang) for system in systems}
    problems = language_problems(f"the test set {text.name}", (text.src_lang, text.tgt_lang), models)
    problems += [
        f"{system.name} was trained on {system.text_form} text, but the test set is {text.text_form}; use text in the "
        "same form"
        for system in systems
        if system.text_form != text.text_form
    ]
    joiner = systems[0].tokenizers[1].joiner if systems else ""
    references = text.split_references or text.references
    samples = {} if text.features is not None else {f"the sources of {text.name}": text.sources[:SAMPLE]}
    samples[f"the references of {text.name}"] = references[:SAMPLE]
    problems += form_problems(samples, text_form=text.text_form, joiner=joiner)
    if systems:
        problems += reference_problems(text.name, text.references, systems[0].tokenizers[1])
    problems += without_scores(metrics, text.references)
    if problem := unsegmented(text.references, text_form=text.text_form, tgt_lang=text.tgt_lang):
        problems.append(f"{problem}; name the files by language, for example test='[x.en,x.ja]'")
    if text.text_form == "lc_tok" and 2 * sum(line != line.lower() for line in text.sources) > len(text.sources):
        problems.append(
            f"{text.name} has capital letters, but the model reads lower-cased, tokenised text; use such text"
        )
    return problems
