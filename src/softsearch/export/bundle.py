"""Export of a model as a bundle for the torch-free runtime, or as one graph for other programming languages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.export.graphs import export_graphs
from softsearch.export.parity import TOLERANCE, Parity, compare
from softsearch.export.search_loop import with_block
from softsearch.export.single import LOW_TOLERANCE, single_form
from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.models.interface import Seq2Seq
from softsearch.report.model_card import model_card
from softsearch.runtime.bundle import Bundle, bundle_of, has_shortlist, open_shortlist, shortlist_files, write_bundle
from softsearch.runtime.options import Strategy, search_facts
from softsearch.runtime.session import OnnxStepFunction, describe_onnx
from softsearch.search.interface import StepFunction
from softsearch.search.shortlist import ShortlistStep
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
    lower: Callable[[Bundle], tuple[Bundle, dict[str, Any]]] | None = None,
    single: bool = False,
    exact: Callable[[], StepFunction] | None = None,
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
        lower: turns the float32 bundle into one in another precision, and facts about it.
        single: writes one graph that searches, instead of two for the runtime.
        exact: makes ``reference`` in float64, which shows how much the model amplifies rounding.

    Raises:
        ConfigError: a bundle cannot recommend ``search``, or a single graph cannot do it.
        BundleError: the graphs differ from the model, or ``path`` holds something else; nothing was written.
    """
    src, tgt = tokenizers
    names = ("joint.model", "joint.model") if src.model == tgt.model else ("src.model", "tgt.model")
    files = {names[0]: src.model, names[1]: tgt.model} | tokenizer_files(tokenizers)
    if shortlist is not None:
        files |= shortlist_files(*shortlist)
    manifest: dict[str, Any] = {
        "tokenizers": dict(zip(("src", "tgt"), names, strict=True)),
        "reversed": {"src": src.reverse, "tgt": tgt.reverse},
        "vocab_sizes": {"src": src.vocab_size, "tgt": tgt.vocab_size},
        "limits": {"max_src_tokens": max_src_tokens},
        "search": search_facts(search, tgt.vocab_size),
    }
    graphs = export_graphs(model, shortlist=shortlist is not None)
    described = {name.removesuffix(".onnx"): describe_onnx(graph) for name, graph in graphs.items()}
    bundle = bundle_of(path, files | graphs, manifest | {"graphs": described, "training": facts})
    parity = _compare(bundle, reference, exact or (lambda: reference))
    bundle, more = (bundle, {}) if lower is None else lower(bundle)
    facts = facts | more
    tolerance = TOLERANCE if lower is None else LOW_TOLERANCE
    if single:
        files, described = single_form(bundle, tolerance)
    else:
        bundle = with_block(bundle, tolerance)
        files, described = bundle.files, bundle.manifest.graphs
    card = model_card(path.name, facts, {name: len(content) for name, content in files.items()}, described.get("model"))
    whole = manifest | {"graphs": described, "training": facts}
    return write_bundle(path, files | {"README.md": card.encode()}, whole), parity


def _compare(bundle: Bundle, reference: StepFunction, exact: Callable[[], StepFunction]) -> Parity:
    """The largest differences between the graphs of a bundle and the model, with the shortlist too if there is one."""
    manifest, step_fn = bundle.manifest, OnnxStepFunction(bundle)
    sizes = manifest.src_vocab_size, manifest.max_src_tokens, manifest.feature_dim
    parities = [compare(reference, step_fn, *sizes, exact=exact)]
    if has_shortlist(bundle):
        words = open_shortlist(bundle, _FREQUENT)
        fast = step_fn.with_shortlist(words)
        parities.append(
            compare(ShortlistStep(reference, words), fast, *sizes, exact=lambda: ShortlistStep(exact(), words))
        )
    return Parity(*np.max(parities, axis=0).tolist())
