"""Export of a model as a bundle for the torch-free runtime."""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.export.graphs import export_graphs
from softsearch.export.parity import Parity, compare
from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.models.interface import Seq2Seq
from softsearch.report.model_card import model_card
from softsearch.runtime.bundle import Bundle, open_shortlist, shortlist_files, write_bundle
from softsearch.runtime.options import Strategy, search_facts
from softsearch.runtime.session import OnnxStepFunction, describe_onnx
from softsearch.search.interface import StepFunction
from softsearch.search.shortlist import Shortlisted
from softsearch.text.tokenizer import Tokenizers

_FREQUENT = 1000  # words of the shortlist with which the graphs are compared


def export_bundle(
    model: Seq2Seq,
    reference: StepFunction,
    tokenizers: Tokenizers,
    path: Path,
    *,
    search: Strategy,
    max_src_tokens: int,
    facts: dict[str, Any],
    shortlist: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
    lower: Callable[[Bundle], tuple[dict[str, bytes], dict[str, Any]]] | None = None,
) -> tuple[Bundle, Parity]:
    """Writes the bundle of a model in evaluation mode, if its graphs compute what the model does.

    Args:
        model: the trained model.
        reference: the same model as search sees it.
        tokenizers: source and target.
        path: the bundle's folder.
        search: the default search of the runtime.
        max_src_tokens: longer sentences are translated in parts.
        facts: about the training, plain values for the manifest and the model card.
        shortlist: target ids by frequency, and likely ones for each source id, for ``--shortlist``.
        lower: turns the finished float32 bundle into graphs in another precision, and facts about them.

    Raises:
        ConfigError: a bundle cannot recommend ``search``.
        BundleError: the graphs differ from the model, or ``path`` holds something else; nothing was written.
    """
    src, tgt = tokenizers
    recommended = search_facts(search, tgt.vocab_size)
    names = ("joint.model", "joint.model") if src.model == tgt.model else ("src.model", "tgt.model")
    files = {names[0]: src.model, names[1]: tgt.model} | tokenizer_files(tokenizers)
    if shortlist is not None:
        files |= shortlist_files(*shortlist)
    manifest = {
        "tokenizers": dict(zip(("src", "tgt"), names, strict=True)),
        "reversed": {"src": src.reverse, "tgt": tgt.reverse},
        "vocab_sizes": {"src": src.vocab_size, "tgt": tgt.vocab_size},
        "limits": {"max_src_tokens": max_src_tokens},
        "search": recommended,
    }
    parities: list[Parity] = []

    def check(bundle: Bundle) -> None:
        step_fn = OnnxStepFunction(bundle)
        parities.append(compare(reference, step_fn, src.vocab_size, max_src_tokens, bundle.manifest.feature_dim))
        if shortlist is not None:
            words = open_shortlist(bundle, _FREQUENT)
            restricted = Shortlisted(reference, words), step_fn.with_shortlist(words)
            parities.append(compare(*restricted, src.vocab_size, max_src_tokens, bundle.manifest.feature_dim))

    graphs = export_graphs(model, shortlist=shortlist is not None)
    if lower is None:
        bundle = _write(path, graphs, files, manifest, facts, check)
    else:
        with TemporaryDirectory() as scratch:
            graphs, more = lower(_write(Path(scratch, path.name), graphs, files, manifest, facts, check))
        bundle = _write(path, graphs, files, manifest, facts | more, OnnxStepFunction)
    return bundle, Parity(*np.max(parities, axis=0).tolist())


def _write(
    folder: Path,
    graphs: Mapping[str, bytes],
    others: Mapping[str, bytes],
    manifest: Mapping[str, Any],
    facts: dict[str, Any],
    check: Callable[[Bundle], Any],
) -> Bundle:
    """Writes graphs and ``others`` with the model card, and a manifest that describes the graphs."""
    files = {**graphs, **others}
    card = model_card(folder.name, facts, {name: len(content) for name, content in files.items()})
    described = {name.removesuffix(".onnx"): describe_onnx(graph) for name, graph in graphs.items()}
    whole = {**manifest, "graphs": described, "training": facts}
    return write_bundle(folder, {**files, "README.md": card.encode()}, whole, check=check)
