"""Models in the main process: they encode short lines and check options, but have no graphs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, cast

from softsearch.errors import BundleError, ConfigError, InputError
from softsearch.extras.serve.settings import Settings
from softsearch.runtime import Bundle, Glossary
from softsearch.runtime.parts import (
    NO_STAGES,
    SINGLE,
    HeadStage,
    LineEncoder,
    Part,
    Stages,
    Strategy,
    TermStage,
    Wanted,
    check_head,
    check_options,
    default_batch_tokens,
    heads_of,
    make_search,
    needs_alignments,
    open_tokenizers,
)
from softsearch.text.parts import languages_of

GLOSSARIES: dict[str, Glossary] = {}  # in worker processes: the server's glossaries by name
ENCODERS: dict[str, LineEncoder] = {}  # in worker processes: those of the models by name
MAX_FOUND = 20  # largest number of terms and parts to keep in a sentence
_FIND_SECONDS = 3.0  # time to find them in all lines of a request
_SCORE_TOKENS = 1024  # in a batch of pairs, as in System.score


class ServedGlossary(Glossary):
    """A glossary of the server's by its name, which becomes the glossary in worker processes, where it is open."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_glossary, (self.name,)


def _open_glossary(name: str) -> Glossary:
    return GLOSSARIES[name]


def default_stages(settings: Settings) -> Stages:
    """Returns the stages of requests that name none: those of the server's options.

    Raises:
        ConfigError: an option is wrong.
    """
    options = dict(settings.defaults)
    if "" in (settings.glossary or {}):
        options["glossary"] = ServedGlossary("")
    stages, _ = Stages().changed(TermStage(served=settings.keep or {})).given(options)
    return stages


class EncodedLine(NamedTuple):
    """A line, or a pair to score, encoded for worker processes."""

    source: Any  # parts of a line, or ids of a source
    target: Any  # ids of a prefix or of a translation
    tokens: int  # of the longer one, EOS included


class Model:
    """A bundle without its graphs, which the worker processes open.

    Raises:
        BundleError: the runtime cannot use it, or a tokenizer is wrong.
    """

    def __init__(self, name: str, bundle: Bundle) -> None:
        manifest = bundle.manifest
        if manifest.is_single:
            raise BundleError(
                f"bundle {bundle.path}: {SINGLE} is for other programming languages, and softsearch cannot run it; "
                "export the checkpoint with format=bundle"
            )
        if manifest.feature_dim is not None:
            raise BundleError(
                f"bundle {bundle.path} reads feature vectors, but the server accepts only text; use softsearch "
                "translate --features, or Translator.translate(features=...)"
            )
        self.facts, self._manifest = model_facts(name, bundle), manifest
        self.encoder = LineEncoder(
            open_tokenizers(bundle), manifest.max_src_tokens, manifest, is_plain=manifest.text_form == "lc_tok"
        )

    def search(self, options: Mapping[str, Any], *, prefixes: bool = False) -> Strategy:
        """Returns the search with these options, with the bundle's recommendations for the others.

        Raises:
            ConfigError: an option is unknown or wrong.
        """
        kind = options.get("search", self.facts.search)
        given = {name: value for name, value in options.items() if name != "search"}
        check_options(kind, [*given, *(["prefix"] if prefixes else [])])
        return make_search(self._manifest.search, self.encoder.tokenizers[1], kind, given)

    def translation_group(
        self, options: Mapping[str, Any], stages: Stages = NO_STAGES, *, prefixes: bool = False
    ) -> "Group":
        """Returns the group of lines with these search options, with the bundle's recommendations for the others.

        Raises:
            ConfigError: an option is unknown or wrong, or needs attention that the model does not have, or the search
                does not fit a stage.
        """
        kind = options.get("search", self.facts.search)
        search = cast(Strategy, stages.search(self.search(options, prefixes=prefixes)))  # requests never rerank
        if needs_alignments(search) and not self.facts.has_attention:
            raise ConfigError(
                f"model {self.facts.name} has no attention, which alignments, markup and a coverage penalty need; "
                "remove them"
            )
        for head in (stage.head for stage in stages.chosen if isinstance(stage, HeadStage)):
            check_head(str(head), self.facts.heads, f"model {self.facts.name}")
        finders = stages if stages.finds else None
        if finders and kind not in ("beam", "greedy"):
            raise ConfigError(f"terms and text to copy need beam or greedy search, found {kind}; change search")
        is_slow = finders or any(stage.is_slow for stage in stages.chosen)
        batch_tokens = 1 if is_slow else default_batch_tokens(search)
        return Group(self, search, batch_tokens, prefixes, options, stages, stages.of_model, finders)

    def score_group(self) -> "Group":
        """Returns the group of pairs to score."""
        return Group(self, None, _SCORE_TOKENS, True)

    def encode(self, group: "Group", text: str, other: str | None, number: int) -> EncodedLine:
        """Encodes a line or a pair for workers.

        Raises:
            InputError: the line with this number, or its prefix, cannot be encoded.
        """
        return _encode_line(self.encoder, text, other, number, is_pair=group.search is None)


def encode_lines(
    encoder: LineEncoder,
    texts: Sequence[str],
    others: Sequence[str | None],
    finders: Stages | None = None,
    *,
    are_pairs: bool,
) -> list[EncodedLine]:
    """Encodes lines with prefixes, or pairs to score, with what translations must contain, for workers.

    Raises:
        InputError: a line cannot be encoded or must contain too much, or patterns take too long.
    """
    pairs = enumerate(zip(texts, others, strict=True), 1)
    lines = [_encode_line(encoder, text, other, number, is_pair=are_pairs) for number, (text, other) in pairs]
    if finders is None:
        return lines
    deadline = monotonic() + _FIND_SECONDS
    return [
        line._replace(source=[_with_wanted(part, finders, number, deadline) for part in line.source])
        for number, line in enumerate(lines, 1)
    ]


def _with_wanted(part: Part, finders: Stages, number: int, deadline: float) -> Part:
    if monotonic() > deadline:
        raise InputError(
            f"glossary and keep take more than {_FIND_SECONDS:g} s for all lines; send fewer or shorter ones"
        )
    terms, kept = wanted = finders.wanted(part.text) or Wanted()
    count = sum(term.times for term in terms) + len(kept)
    characters = sum(len(text) for term in terms for text in term.alternatives)
    if count > MAX_FOUND or characters > MAX_FOUND * 100:
        raise InputError(
            f"line {number} has {count} terms and parts to keep, with translations of {characters} characters; "
            f"expected at most {MAX_FOUND}, of {MAX_FOUND * 100} characters; send shorter sentences, or fewer terms"
        )
    return part._replace(wanted=wanted if count else None)


def _encode_line(encoder: LineEncoder, text: str, other: str | None, number: int, *, is_pair: bool) -> EncodedLine:
    if is_pair:
        (src,), (tgt,) = encoder.pairs(([text], [other or ""]), ("source", "target"), number)
        return EncodedLine(src, tgt, max(len(src), len(tgt)) + 1)
    parts = encoder.parts(text, number)
    prefix = None if other is None else encoder.prefix(other, number)
    return EncodedLine(parts, prefix, sum(len(part.ids) for part in parts) + 1)


@dataclass(frozen=True)
class Group:
    """What lines must have in common to share a batch.

    In a preparation, each line is the work on a whole request, whose arguments are its source.
    """

    model: Model
    search: Strategy | None  # None: score pairs
    batch_tokens: int  # largest batch, padding included
    pairs: bool  # each line has a prefix, or a translation to score
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)  # used to make the search
    asked: Stages = field(default=NO_STAGES, compare=False)  # all stages of the request
    stages: Stages = NO_STAGES  # those that change translations where the model is
    finders: Stages | None = None  # those that require something: lines with terms are slow, so one is a batch
    prepare: Callable[..., Any] | None = None  # a function of a `LineEncoder` and the arguments

    def for_line(self, line: EncodedLine) -> "Group":
        """Returns the group of a line: that of lines without terms if it has none."""
        if self.finders is None or any(part.wanted for part in line.source):
            return self
        return self.model.translation_group(self.options, self.asked.without_finders, prefixes=self.pairs)

    def of(self, model: Model) -> "Group":
        """Returns the same group for the model that replaced this one at a reload."""
        if self.prepare is not None:
            return replace(self, model=model)
        if self.search is None:
            return model.score_group()
        return model.translation_group(self.options, self.asked, prefixes=self.pairs)


def open_models(bundles: Mapping[str, Path]) -> dict[str, Model]:
    """Opens and verifies the bundles on disk.

    Raises:
        BundleError: a bundle is missing, altered, in a newer format or not for this runtime.
    """
    return {name: Model(name, Bundle.open(path)) for name, path in bundles.items()}


def hashes(models: Mapping[str, Model]) -> dict[str, str]:
    """Returns hashes that identify the models' bundles."""
    return {name: model.facts.sha256 for name, model in models.items()}


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """Facts about a model that a client needs before it requests a translation."""

    name: str
    architecture: str  # name of the model config, such as rnnsearch
    src_lang: str
    tgt_lang: str
    sources: list[str]  # source languages of a multilingual model that a request may name; otherwise empty
    targets: list[str]
    text_form: str  # plain, or lc_tok: lower-cased and tokenized
    has_attention: bool  # whether it can return alignments
    attention: str  # the source of its alignments, such as layer 0, head 0 (guided); "" if not recorded
    heads: list[str]  # heads of a Transformer that a request may name instead
    search: str  # the default, such as beam; never exact, whose time is unbounded
    beam: int  # hypotheses per sentence in that search
    max_length_factor: float  # a translation has at most this multiple of the source's tokens,
    max_length_offset: int  # plus this number
    max_src_tokens: int  # per sentence, EOS included; longer lines are split
    parameters: str  # number of parameters, such as 811,408; "" if not recorded
    sha256: str  # hash of the manifest, which identifies the bundle

    @property
    def src_codes(self) -> list[str]:
        """Returns the source languages that clients may name."""
        return self.sources or self.src_lang.split("+") * bool(self.src_lang)

    @property
    def tgt_codes(self) -> list[str]:
        """Returns the target languages that clients may name, for any source but the same language."""
        return self.targets or [self.tgt_lang] * bool(self.tgt_lang)


def model_facts(name: str, bundle: Bundle) -> ModelFacts:
    """Returns facts about a bundle of either format, under the name that clients use."""
    manifest = bundle.manifest
    languages = languages_of(open_tokenizers(bundle)[0])
    outputs = [port["name"] for graph in manifest.graphs.values() for port in graph.get("outputs", [])]
    return ModelFacts(
        name=name,
        architecture=manifest.trained("model") or "unknown",
        src_lang=manifest.trained("config.data.src_lang"),
        tgt_lang=manifest.trained("config.data.tgt_lang"),
        sources=list(languages.sources),
        targets=list(languages.targets),
        text_form=manifest.text_form,
        has_attention="alignments" in outputs,
        attention=manifest.trained("attention"),
        heads=list(heads_of(bundle)),
        search="beam" if manifest.search_kind == "exact" else manifest.search_kind,
        beam=manifest.search.get("beam", 1),
        max_length_factor=manifest.search["max_length_factor"],
        max_length_offset=manifest.search["max_length_offset"],
        max_src_tokens=manifest.max_src_tokens,
        parameters=manifest.trained("parameters"),
        sha256=bundle.sha256,
    )
