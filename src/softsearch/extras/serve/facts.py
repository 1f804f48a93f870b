"""Facts about a bundle's model, for clients that choose among several."""

from dataclasses import dataclass

from softsearch.runtime.bundle import Bundle


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """Facts of a model that a client needs before it asks for a translation."""

    name: str
    architecture: str  # the model config's name, as rnnsearch
    src_lang: str
    tgt_lang: str
    text_form: str  # plain, or lc_tok: lower-cased and tokenized
    has_attention: bool  # it can return alignments
    search: str  # if a client names none, as beam; never exact, which has no bound on its time
    beam: int  # hypotheses of a sentence in that search
    max_length_factor: float  # a translation has at most this times the source's tokens,
    max_length_offset: int  # and this many more
    max_src_tokens: int  # of a sentence, EOS included; longer lines are split
    parameters: str  # their number, as 811,408; "" if it is not recorded
    sha256: str  # of the manifest: identifies the bundle


def model_facts(name: str, bundle: Bundle) -> ModelFacts:
    """The facts of a bundle of either format, under the name that clients use."""
    manifest = bundle.manifest
    outputs = [port["name"] for graph in manifest.graphs.values() for port in graph.get("outputs", [])]
    return ModelFacts(
        name=name,
        architecture=manifest.trained("model") or "unknown",
        src_lang=manifest.trained("config.data.src_lang"),
        tgt_lang=manifest.trained("config.data.tgt_lang"),
        text_form=manifest.text_form,
        has_attention="alignments" in outputs,
        search="beam" if manifest.search_kind == "exact" else manifest.search_kind,
        beam=manifest.search.get("beam", 1),
        max_length_factor=manifest.search["max_length_factor"],
        max_length_offset=manifest.search["max_length_offset"],
        max_src_tokens=manifest.max_src_tokens,
        parameters=manifest.trained("parameters"),
        sha256=bundle.sha256,
    )
