"""Models as the main process knows them: they encode short lines and check options, but have no graphs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from softsearch.errors import BundleError, ConfigError, InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.glossary import Control, Glossary
from softsearch.runtime.heads import check_head, heads_of
from softsearch.runtime.line_encoder import LineEncoder, open_tokenizers
from softsearch.runtime.manifest import SINGLE
from softsearch.runtime.options import Strategy, check_options, default_batch_tokens, make_search, needs_alignments
from softsearch.runtime.translation import Part
from softsearch.text.languages import languages_of

GLOSSARIES: dict[str, Glossary] = {}  # of a worker process: those of the server, by name
MAX_FOUND = 20  # terms and parts to keep of a sentence
_FIND_SECONDS = 3.0  # to find them in all lines of a request
_SCORE_TOKENS = 1024  # of a batch of pairs, as System.score has


@dataclass(frozen=True, eq=False)
class ServedControl(Control):
    """What translations must contain.

    Args:
        served: the name of the glossary, if it is one of the server.
    """

    served: str | None = None


class EncodedLine(NamedTuple):
    """A line, or a pair to score, as worker processes take it."""

    source: Any  # the parts of a line, or the ids of a source
    target: Any  # the ids of a prefix, or of a translation
    tokens: int  # of the longer one, EOS included


class Model:
    """A bundle without its graphs, which the worker processes open.

    Raises:
        BundleError: it is not for this runtime, or a tokenizer is wrong.
    """

    def __init__(self, name: str, bundle: Bundle) -> None:
        manifest = bundle.manifest
        if manifest.is_single:
            raise BundleError(
                f"bundle {bundle.path}: {SINGLE} is for other programming languages, and softsearch does not run it; "
                "export the checkpoint with format=bundle"
            )
        if manifest.feature_dim is not None:
            raise BundleError(
                f"bundle {bundle.path} reads feature vectors, and the server takes text alone; use softsearch "
                "translate --features, or Translator.translate(features=...)"
            )
        self.facts, self._manifest = model_facts(name, bundle), manifest
        self.encoder = LineEncoder(
            open_tokenizers(bundle), manifest.max_src_tokens, manifest, is_plain=manifest.text_form == "lc_tok"
        )

    def translation_group(self, options: Mapping[str, Any], *, prefixes: bool) -> "Group":
        """The group of lines with these search options; those left out are as the bundle recommends.

        Raises:
            ConfigError: an option is unknown, wrong, or needs attention that the model lacks, or the search takes no
                terms or has no trace.
        """
        kind = options.get("search", self.facts.search)
        apart = ("search", "control", "confidence", "trace", "head")
        searched = {name: value for name, value in options.items() if name not in apart}
        check_options(kind, [*searched, *(["prefix"] if prefixes else [])])
        search = make_search(self._manifest.search, self.encoder.tokenizers[1], kind, searched)
        if needs_alignments(search) and not self.facts.has_attention:
            raise ConfigError(
                f"model {self.facts.name} has no attention, which alignments, markup and a coverage penalty need; "
                "leave them out"
            )
        control, confidence = options.get("control"), options.get("confidence", False)
        trace, head = options.get("trace", False), options.get("head")
        if head is not None:
            check_head(head, self.facts.heads, f"model {self.facts.name}")
        if control is not None and kind not in ("beam", "greedy"):
            raise ConfigError(f"glossary and keep need beam or greedy search, found {kind}; change search")
        if trace and kind not in ("beam", "greedy"):
            raise ConfigError(f"a trace shows beam or greedy search, found {kind}; change search")
        batch_tokens = default_batch_tokens(search) if control is None and not trace else 1
        more: dict[str, Any] = {"control": control, "trace": trace, "head": head}
        return Group(self, search, batch_tokens, prefixes, options, confidence, **more)

    def score_group(self) -> "Group":
        """The group of pairs to score."""
        return Group(self, None, _SCORE_TOKENS, True)

    def encode(self, group: "Group", text: str, other: str | None, number: int) -> EncodedLine:
        """A line, or a pair, as workers take it.

        Raises:
            InputError: the line with this number, or its prefix, cannot be encoded.
        """
        return _encode_line(self.encoder, text, other, number, is_pair=group.search is None)


def encode_lines(
    encoder: LineEncoder,
    texts: Sequence[str],
    others: Sequence[str | None],
    control: "ServedControl | None" = None,
    *,
    are_pairs: bool,
) -> list[EncodedLine]:
    """Lines with their prefixes, or pairs to score, as workers take them, with what translations must contain.

    Raises:
        InputError: one cannot be encoded, must contain too much, or patterns take too long.
    """
    pairs = enumerate(zip(texts, others, strict=True), 1)
    lines = [_encode_line(encoder, text, other, number, is_pair=are_pairs) for number, (text, other) in pairs]
    if control is None:
        return lines
    control = replace(control, glossary=GLOSSARIES[control.served]) if control.served else control
    deadline = monotonic() + _FIND_SECONDS
    return [
        line._replace(source=[_with_wanted(part, control, number, deadline) for part in line.source])
        for number, line in enumerate(lines, 1)
    ]


def _with_wanted(part: Part, control: Control, number: int, deadline: float) -> Part:
    if monotonic() > deadline:
        raise InputError(
            f"glossary and keep take more than {_FIND_SECONDS:g} s for all lines; send fewer or shorter ones"
        )
    terms, kept = wanted = control.find(part.text)
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
    """What lines have in common that may share a batch.

    Of a preparation, each line stands for the work on a whole request, whose arguments are its source.
    """

    model: Model
    search: Strategy | None  # None: pairs are scored
    batch_tokens: int  # the most of a batch, padding included
    pairs: bool  # each line has a prefix, or a translation to score
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)  # from which the search was made
    confidence: bool = False  # translations come with it
    prepare: Callable[..., Any] | None = None  # what a worker does with a `LineEncoder` and the arguments
    control: ServedControl | None = None  # of lines with terms, which take long: each has a batch of its own
    trace: bool = False  # what the search did is returned too; such a line has a batch of its own as well
    head: str | None = None  # of which the alignments are returned

    def for_line(self, line: EncodedLine) -> "Group":
        """The group of a line: that of lines without terms if it has none."""
        if self.control is None or any(part.wanted for part in line.source):
            return self
        return self.model.translation_group({**self.options, "control": None}, prefixes=self.pairs)

    def of(self, model: Model) -> "Group":
        """The same group of another model, by which a reload has replaced this one."""
        if self.prepare is not None:
            return replace(self, model=model)
        if self.search is None:
            return model.score_group()
        return model.translation_group(self.options, prefixes=self.pairs)


def open_models(bundles: Mapping[str, Path]) -> dict[str, Model]:
    """Opens and verifies the bundles on disk.

    Raises:
        BundleError: one is missing, altered, of a newer format or not for this runtime.
    """
    return {name: Model(name, Bundle.open(path)) for name, path in bundles.items()}


def hashes(models: Mapping[str, Model]) -> dict[str, str]:
    """The hashes that identify the models' bundles."""
    return {name: model.facts.sha256 for name, model in models.items()}


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """Facts of a model that a client needs before it asks for a translation."""

    name: str
    architecture: str  # the model config's name, as rnnsearch
    src_lang: str
    tgt_lang: str
    sources: list[str]  # of a model of many languages, those that a request may name; else empty
    targets: list[str]
    text_form: str  # plain, or lc_tok: lower-cased and tokenized
    has_attention: bool  # it can return alignments
    attention: str  # of which its alignments are, as layer 0, head 0 (guided); "" if it is not recorded
    heads: list[str]  # of a Transformer: what a request may name instead
    search: str  # if a client names none, as beam; never exact, which has no bound on its time
    beam: int  # hypotheses of a sentence in that search
    max_length_factor: float  # a translation has at most this times the source's tokens,
    max_length_offset: int  # and this many more
    max_src_tokens: int  # of a sentence, EOS included; longer lines are split
    parameters: str  # their number, as 811,408; "" if it is not recorded
    sha256: str  # of the manifest: identifies the bundle

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of languages that clients may name."""
        sources = self.sources or self.src_lang.split("+") * bool(self.src_lang)
        targets = self.targets or [self.tgt_lang] * bool(self.tgt_lang)
        return [(src, tgt) for src in sources for tgt in targets if src != tgt or not self.targets]


def model_facts(name: str, bundle: Bundle) -> ModelFacts:
    """The facts of a bundle of either format, under the name that clients use."""
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
