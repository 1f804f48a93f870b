"""Several systems that translate together, or one with a shortlist, and systems that score for another."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from softsearch.errors import ConfigError
from softsearch.runtime.system import S, System, without_alignments
from softsearch.search.ensemble import Ensemble, WithMappedIds
from softsearch.search.interface import StepFunction
from softsearch.search.options import Average
from softsearch.search.rerank import RescoringModel
from softsearch.search.shortlist import Shortlist, ShortlistStep
from softsearch.text.id_mapping import check_writes_alike, id_mapping
from softsearch.text.joint_sources import JointSources
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.vocabulary import UNK

_TOLERANCE = 1e-4  # nats by which rounding may change the score of a target


def with_separate_inputs(systems: Sequence[S], inputs: int) -> list[S]:
    """Makes each system read its own source from lines with several sources, ``a man <and> un homme``.

    The sources are in the order of the systems. Models of ``data=multi_source`` read all of them, unchanged.

    Args:
        systems: the systems.
        inputs: the number of sources in a line.

    Raises:
        ConfigError: there are several sources, but not one for each system.
    """
    tokenizers = [system.tokenizers[0] for system in systems]
    several = [tokenizer.reads_several_sources for tokenizer in tokenizers]
    if inputs == 1 or all(several):
        return list(systems)
    if any(several) or inputs != len(systems):
        models = f"{len(systems)} models, {sum(several)} of them with several sources"
        raise ConfigError(f"{inputs} inputs for {models}; expected one for all, or one for each model with one source")
    joint = JointSources(tokenizers)
    return [
        replace(
            system,
            tokenizers=(joint, system.tokenizers[1]),
            step_fn=WithMappedIds(system.step_fn, partial(joint.ids_of_member, place=place)),
            src_lang="+".join(system.src_lang for system in systems),
        )
        for place, system in enumerate(systems)
    ]


def combine(
    systems: Sequence[S],
    average: Average = "log_probs",
    weights: Sequence[float] | None = None,
    language_model: System | None = None,
    language_model_weight: float = 0.0,
    shortlist: Shortlist | None = None,
) -> S:
    """Combines systems into one system with an ``Ensemble``.

    The source is encoded with the first system's tokenizer. For a system with a different tokenizer, the ids are
    reversed, or decoded and encoded again. The lowest limit on the source length applies. A shortlist, in the first
    system's ids, restricts all members.

    Raises:
        ConfigError: the target vocabularies or their directions differ, a weight is wrong, or the language
            model translates.
    """
    first, everything = systems[0], list[System](systems)
    if language_model is not None:
        _check_reads_no_source(language_model)
        everything.append(language_model)
    for other in everything[1:]:
        check_writes_alike(first.tokenizers[1], other.tokenizers[1], (first.origin, other.origin))
    members: list[StepFunction] = []
    for system in systems:
        mapping = id_mapping(first.tokenizers[0], system.tokenizers[0])
        member = system.step_fn if mapping is None else WithMappedIds(system.step_fn, mapping)
        members.append(member if shortlist is None else shortlisted(member, shortlist))
    language_step_fn = None if language_model is None else without_alignments(language_model).step_fn
    return replace(
        first,
        origin=", ".join(system.origin for system in everything),
        step_fn=Ensemble(members, weights, average, language_step_fn, language_model_weight),
        max_src_tokens=min((s.max_src_tokens for s in systems if s.max_src_tokens is not None), default=None),
    )


def _check_reads_no_source(language_model: System) -> None:
    """Checks that a language model gives a target the same score for two different sources."""
    token = language_model.tokenizers[0].vocab_size - 1
    one, other = language_model.score([[UNK], [token]], [[UNK], [UNK]])
    if abs(one.log_prob - other.log_prob) > _TOLERANCE:
        raise ConfigError(
            f"{language_model.origin} translates; expected a language model, which reads no source; "
            "name another one, or make it a member of the ensemble"
        )


def shortlisted(step_fn: StepFunction, shortlist: Shortlist) -> StepFunction:
    """A step function over the words of a shortlist; a bundle's graphs compute only these if they can."""
    from softsearch.runtime.session import OnnxStepFunction  # few systems have a shortlist

    if isinstance(step_fn, OnnxStepFunction):
        return step_fn.with_shortlist(shortlist)
    return ShortlistStep(step_fn, shortlist)


def rescoring_model(system: System, tokenizers: Tokenizers) -> RescoringModel:
    """A system wrapped as a model that scores or proposes translations for a searching model with ``tokenizers``.

    If the pieces are the same, so are the ids, reversed if the system writes in the other direction. Otherwise the text
    is decoded and encoded again with the system's own segmentation.
    """
    (src, tgt), (own_src, own_tgt) = tokenizers, system.tokenizers
    step_fn = without_alignments(system).step_fn
    return RescoringModel(step_fn, id_mapping(src, own_src), id_mapping(tgt, own_tgt), id_mapping(own_tgt, tgt))
