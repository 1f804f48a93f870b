"""What computes: a bundle or an ensemble, with a language model or a shortlist, and what scores beside it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from softsearch.runtime.bundle import Bundle
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.shortlist_files import open_shortlist
from softsearch.runtime.tokenizers import open_tokenizers
from softsearch.search.ensemble import Average, Ensemble, WithMappedIds
from softsearch.search.interface import StepFunction
from softsearch.search.rerank import RescoringModel
from softsearch.search.shortlisted import Shortlisted
from softsearch.text.id_mapping import check_writes_alike, id_mapping
from softsearch.text.tokenizer import SentencePieceTokenizer

Tokenizers = tuple[SentencePieceTokenizer, SentencePieceTokenizer]


class EnsembleSpec(NamedTuple):
    """The models that write together."""

    bundles: Sequence[Bundle]  # the first one's tokenizers and limits hold
    weights: Sequence[float] | None = None  # by default all alike
    average: Average = "log_probs"
    language_model: Bundle | None = None
    language_model_weight: float = 0.0
    shortlist: int | None = None  # frequent words of the first bundle's shortlist; None: the whole vocabulary


def limited(bundles: Sequence[Bundle]) -> Bundle:
    """The first bundle, with the shortest limit of all on the source."""
    first = bundles[0]
    limit = min(bundle.manifest.max_src_tokens for bundle in bundles)
    return replace(first, manifest=replace(first.manifest, max_src_tokens=limit))


def open_step_function(members: EnsembleSpec, *, alignments: bool) -> StepFunction:
    """The step function of models that write together; of one bundle alone, the bundle's own.

    Raises:
        BundleError: a bundle's graphs or tokenizers are broken.
        ConfigError: the target vocabularies or their directions differ, a weight is wrong, or there is no shortlist.
    """
    first, *others = members.bundles
    tokenizers = open_tokenizers(first)
    for other in (*others, *([] if members.language_model is None else [members.language_model])):
        check_writes_alike(tokenizers[1], open_tokenizers(other)[1], (first.path, other.path))
    models = [_reading(bundle, tokenizers[0], alignments=alignments) for bundle in members.bundles]
    if members.shortlist is not None:
        shortlist = open_shortlist(first, members.shortlist)
        models = [Shortlisted(model, shortlist) for model in models]
    if not others and members.language_model is None and members.weights is None:
        return models[0]
    language_model = None if members.language_model is None else OnnxStepFunction(members.language_model)
    return Ensemble(models, members.weights, members.average, language_model, members.language_model_weight)


def companion(step_fn: StepFunction, own: Tokenizers, tokenizers: Tokenizers) -> RescoringModel:
    """A model with its ``own`` tokenizers, to score or propose beside one with ``tokenizers``.

    With the same pieces it gets the very ids, turned round if it writes in the other direction. With other pieces it
    gets the text: it is decoded and encoded again, by the segmentation that this model prefers.
    """
    return RescoringModel(
        step_fn, id_mapping(tokenizers[0], own[0]), id_mapping(tokenizers[1], own[1]), id_mapping(own[1], tokenizers[1])
    )


def _reading(bundle: Bundle, src_tokenizer: SentencePieceTokenizer, *, alignments: bool) -> StepFunction:
    step_fn = OnnxStepFunction(bundle, alignments=alignments)
    recode = id_mapping(src_tokenizer, open_tokenizers(bundle)[0])
    return step_fn if recode is None else WithMappedIds(step_fn, recode)
