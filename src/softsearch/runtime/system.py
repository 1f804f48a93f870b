"""Systems that translate: a bundle, a checkpoint opened by the lab, or an ensemble of either."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from softsearch.errors import ConfigError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.line_encoder import open_tokenizers
from softsearch.runtime.providers import Provider
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.ensemble import Ensemble, WithMappedIds
from softsearch.search.forced_decoding import PairScore, forced_alignments, score_pairs
from softsearch.search.interface import Hypothesis, SearchStrategy, Sentences, StepFunction
from softsearch.search.options import Average
from softsearch.search.rerank import RescoringModel
from softsearch.search.shortlist import Shortlist, ShortlistStep
from softsearch.text.id_mapping import check_writes_alike, id_mapping
from softsearch.text.joint_sources import JointSources
from softsearch.text.languages import languages_of
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.vocabulary import UNK, with_eos

if TYPE_CHECKING:
    from softsearch.search.terms import Terms

_TOLERANCE = 1e-4  # nats by which rounding may change the score of a target
BATCH_TOKENS = 1024  # maximum source tokens in a batch, padding included


@dataclass(frozen=True, kw_only=True)
class System:
    """A model, or several that translate together, with tokenizers."""

    name: str  # unique among systems opened together
    origin: str  # path of the checkpoint or bundle; an ensemble's are listed
    backend: str  # torch, onnx or mixed
    architecture: str  # the model config's name, such as rnnsearch; an ensemble's are listed
    step_fn: StepFunction
    tokenizers: Tokenizers
    parameters: int
    size_bytes: int  # size of the weights, or of all files of a bundle
    text_form: Literal["plain", "lc_tok"]
    src_lang: str
    tgt_lang: str
    source: Any = None  # the ParallelSource that a checkpoint was trained on; None for a bundle
    metrics: Mapping[str, Any] = field(default_factory=dict)  # a checkpoint's configured metrics, by name
    described: str = ""  # the origin of the weights, for people: the path and the step
    guided: bool = False  # whether its attention was trained on links; False for a bundle
    max_src_tokens: int | None = None  # per sentence, EOS included; None without a limit
    max_length_factor: float = 0.0  # of the search that a checkpoint was tested with, or that a bundle recommends

    def score(self, src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]) -> list[PairScore]:
        """The log probability of every translation, given as token ids without EOS.

        Tokens' log probabilities are in the order of the text, EOS last.

        Raises:
            InputError: the numbers of sources and translations differ, or the model returned NaN.
        """
        starts = [*map(languages_of(self.tokenizers[0]).start, src)]  # these tokens have probability 1
        begun = [[*start, *ids] for start, ids in zip(starts, tgt, strict=True)] if any(starts) else tgt
        scores = score_pairs(self.step_fn, src, begun, batch_tokens=BATCH_TOKENS)
        if any(starts):
            pairs = zip(scores, starts, strict=True)
            scores = [score._replace(token_log_probs=score.token_log_probs[len(start) :]) for score, start in pairs]
        if not self.tokenizers[1].reverse:
            return scores
        return [s._replace(token_log_probs=(*s.token_log_probs[-2::-1], s.token_log_probs[-1])) for s in scores]


def open_bundle(bundle: Bundle | Path | str, provider: Provider = "cpu") -> System:
    """Opens a bundle, given as a Bundle or its folder, as a system.

    Raises:
        BundleError: it is missing, altered or inconsistent, or has a newer format.
        ConfigError: ONNX Runtime does not use the provider.
    """
    if not isinstance(bundle, Bundle):
        bundle = Bundle.open(bundle)
    manifest = bundle.manifest
    trained = manifest.trained
    parameters = trained("parameters").replace(",", "")
    return System(
        name=bundle.path.resolve().name,
        origin=str(bundle.path),
        backend="onnx",
        architecture=trained("model") or "unknown",
        step_fn=OnnxStepFunction(bundle, provider),
        tokenizers=open_tokenizers(bundle),
        parameters=int(parameters) if re.fullmatch("[0-9]{1,15}", parameters) else 0,
        size_bytes=sum(entry.size for entry in manifest.files.values()),
        text_form=manifest.text_form,
        src_lang=trained("config.data.src_lang"),
        tgt_lang=trained("config.data.tgt_lang"),
        described=str(bundle.path),
        max_src_tokens=manifest.max_src_tokens,
        max_length_factor=manifest.search["max_length_factor"],
    )


def with_separate_inputs(systems: Sequence[System], inputs: int) -> list[System]:
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
    systems: Sequence[System],
    average: Average = "log_probs",
    weights: Sequence[float] | None = None,
    language_model: System | None = None,
    language_model_weight: float = 0.0,
    shortlist: Shortlist | None = None,
) -> System:
    """Combines systems into one system with an ``Ensemble``.

    The source is encoded with the first system's tokenizer. For a system with a different tokenizer, the ids are
    reversed, or decoded and encoded again. The lowest limit on the source length applies. A shortlist, in the first
    system's ids, restricts all members.

    Raises:
        ConfigError: the target vocabularies or their directions differ, a weight is wrong, or the language
            model translates.
    """
    first, *others = systems
    if language_model is not None:
        _check_reads_no_source(language_model)
        others.append(language_model)
    for other in others:
        check_writes_alike(first.tokenizers[1], other.tokenizers[1], (first.origin, other.origin))
    members: list[StepFunction] = []
    for system in systems:
        mapping = id_mapping(first.tokenizers[0], system.tokenizers[0])
        member = system.step_fn if mapping is None else WithMappedIds(system.step_fn, mapping)
        members.append(member if shortlist is None else shortlisted(member, shortlist))
    language_step_fn = None if language_model is None else without_alignments(language_model).step_fn
    everything = [first, *others]
    backends = {system.backend for system in everything}
    return replace(
        first,
        name=" + ".join(system.name for system in everything),
        origin=", ".join(system.origin for system in everything),
        backend=backends.pop() if len(backends) == 1 else "mixed",
        architecture=" + ".join(dict.fromkeys(system.architecture for system in everything)),
        step_fn=Ensemble(members, weights, average, language_step_fn, language_model_weight),
        parameters=sum(system.parameters for system in everything),
        size_bytes=sum(system.size_bytes for system in everything),
        source=next((system.source for system in everything if system.source is not None), None),
        described="; ".join(system.described for system in everything),
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
    if isinstance(step_fn, OnnxStepFunction):
        return step_fn.with_shortlist(shortlist)
    return ShortlistStep(step_fn, shortlist)


def without_alignments(system: System) -> System:
    """Returns the same system; a bundle's steps then do not fetch attention weights."""
    step_fn = system.step_fn
    return replace(system, step_fn=step_fn.without_alignments()) if isinstance(step_fn, OnnxStepFunction) else system


def rescoring_model(system: System, tokenizers: Tokenizers) -> RescoringModel:
    """A system wrapped as a model that scores or proposes translations for a searching model with ``tokenizers``.

    If the pieces are the same, so are the ids, reversed if the system writes in the other direction. Otherwise the text
    is decoded and encoded again with the system's own segmentation.
    """
    (src, tgt), (own_src, own_tgt) = tokenizers, system.tokenizers
    step_fn = without_alignments(system).step_fn
    return RescoringModel(step_fn, id_mapping(src, own_src), id_mapping(tgt, own_tgt), id_mapping(own_tgt, tgt))


def translation_texts(
    system: System,
    sources: Sequence[str],
    src: Sentences,
    hypotheses: Sequence[Hypothesis],
    dictionary: Mapping[str, str] | None,
) -> list[str]:
    """The texts of a system's translations, one for each source, given as text and as token ids.

    With a ``dictionary``, unknown words are replaced, see ``UnknownWords``. The attention for this is computed
    again by forced decoding, so it works after any search.

    Raises:
        ConfigError: the system does not use words, or has no attention.
    """
    texts = [system.tokenizers[1].decode(hypothesis.tokens) for hypothesis in hypotheses]
    if dictionary is None:
        return texts
    from softsearch.text.unknown_words import UnknownWords

    replace_unknown = UnknownWords(*system.tokenizers, dictionary)
    if not system.step_fn.has_attention:
        raise ConfigError(
            f"{system.origin} has no attention, which is needed to replace unknown words; leave the option out"
        )
    indices = [index for index, hypothesis in enumerate(hypotheses) if UNK in hypothesis.tokens]
    tgt = [hypotheses[index].tokens for index in indices]
    matrices = forced_alignments(system.step_fn, [src[index] for index in indices], tgt, batch_tokens=BATCH_TOKENS)
    for index, tokens, matrix in zip(indices, tgt, matrices or [], strict=True):
        texts[index] = replace_unknown(sources[index], tokens, matrix)
    return texts


def with_head(
    system: System, name: str, src: Sentences, n_best_lists: Sequence[Sequence[Hypothesis]]
) -> list[list[Hypothesis]]:
    """Translations with the attention of a head, or the mean of all, which writing them once more shows.

    Raises:
        ConfigError: the system is an ensemble, or its model has no such head.
    """
    from softsearch.runtime.heads import check_head

    step_fn = system.step_fn
    check_head(name, step_fn.heads if isinstance(step_fn, OnnxStepFunction) else (), system.origin)
    every = [(ids, hypothesis) for ids, n_best in zip(src, n_best_lists, strict=True) for hypothesis in n_best]
    sources, tgt = [ids for ids, _ in every], [hypothesis.tokens for _, hypothesis in every]
    of_head = cast(OnnxStepFunction, step_fn).with_head(name)
    weights = forced_alignments(of_head, sources, tgt, batch_tokens=BATCH_TOKENS) or []
    each = (replace(h, alignments=matrix[: h.length]) for (_, h), matrix in zip(every, weights, strict=True))
    return [list(islice(each, len(n_best))) for n_best in n_best_lists]


def trace_parts(
    system: System,
    search: SearchStrategy,
    parts: Sequence[tuple[str, Sequence[int]]],
    prefixes: Sequence[Sequence[int]] | None = None,
    terms: "Sequence[Terms | None] | None" = None,
) -> Iterator[dict[str, Any]]:
    """Lazily yields traces of a system's search for sources, given as text and token ids.

    Raises:
        ConfigError: the search is neither greedy nor a beam search.
    """
    from softsearch.search.trace import trace_search, traceable

    beam, (src_tokenizer, tgt_tokenizer) = traceable(search), system.tokenizers
    names = tgt_tokenizer.names()

    def trace(part: tuple[str, Sequence[int]], prefix: Sequence[int], needed: "Terms | None") -> dict[str, Any]:
        text, ids = part
        source = {"source": text, "src_pieces": src_tokenizer.read_pieces(text, with_eos(ids))}
        return source | trace_search(system.step_fn, beam, ids, names, prefix=prefix, terms=needed)

    return map(trace, parts, prefixes or repeat(()), terms or repeat(None))
