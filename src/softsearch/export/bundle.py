"""Export of a model as a bundle for the torch-free runtime."""

import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from softsearch.export.format import ExportFormat, ExportInputs, ExportSummary
from softsearch.export.graphs import export_graphs
from softsearch.export.parity import LOW_TOLERANCE, TOLERANCE, Parity, compare, largest, random_sentences, stepping
from softsearch.export.search_loop import with_block
from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.models.seq2seq import Seq2Seq
from softsearch.report.model_card import model_card
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import bundle_of, check_writable, write_bundle
from softsearch.runtime.ensembles import shortlisted
from softsearch.runtime.graph_session import describe_graphs
from softsearch.runtime.options import Strategy, search_facts
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.shortlist_files import has_shortlist, open_shortlist, shortlist_files
from softsearch.search.interface import StepFunction
from softsearch.text.tokenizer import Tokenizers

_LENGTHS = ((1,), (1,) * 7, (5,), (5, 2, 3, 4, 5, 1, 2), (60,), (60, 2, 3, 4, 5, 6, 7))  # sentences in tokens, by batch
_FREQUENT = 1000  # size of the shortlist with which the graphs are compared
Finish = Callable[[Bundle, float], tuple[dict[str, bytes], dict[str, Any]]]  # -> files, and the manifest's graphs


class BundleFormat(ExportFormat):
    """A folder that ``softsearch.Translator`` opens: graphs, tokenizers, manifest and model card."""

    name: ClassVar[str] = "bundle"
    takes: ClassVar[Collection[str]] = ("precision", "report", "shortlist")
    has_greedy: ClassVar[bool] = True  # whether ``finish`` needs ``GREEDY_STEP``

    def check(self, search: Strategy, out: Path) -> None:
        """Refuses a folder that is not a bundle."""
        check_writable(out)

    def write(self, inputs: ExportInputs, out: Path) -> ExportSummary:
        """Writes the folder."""
        bundle, parity = export_bundle(
            inputs.model,
            inputs.reference,
            inputs.tokenizers,
            out,
            search=inputs.search,
            max_src_tokens=inputs.max_src_tokens,
            facts=inputs.facts,
            shortlist=inputs.shortlist,
            lower=inputs.lower,
            finish=self.finish,
            greedy=self.has_greedy,
            exact=inputs.exact,
        )
        return ExportSummary(backend="ONNX", parity=parity, following=self.following(bundle))

    def finish(self, bundle: Bundle, tolerance: float) -> tuple[dict[str, bytes], dict[str, Any]]:
        """Returns the files of the bundle and the manifest's ``graphs``, from a bundle that equals the model."""
        whole = with_block(bundle, tolerance)
        return whole.files, whole.manifest.graphs

    def following(self, bundle: Bundle) -> str:
        """Returns the command to use the written bundle with."""
        source = "< in.txt" if bundle.manifest.feature_dim is None else "--features in.npy"
        return f"{shlex.join(['softsearch', 'translate', str(bundle.path)])} {source} > out.txt"


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
    finish: Finish | None = None,
    greedy: bool = True,
    exact: Callable[[], StepFunction] | None = None,
) -> tuple[Bundle, Parity]:
    """Writes the bundle of a model in evaluation mode if its graphs compute the same numbers as the model.

    Args:
        model: the trained model.
        reference: the step function of the same model.
        tokenizers: source and target.
        path: the bundle's folder.
        search: the default search of the runtime.
        max_src_tokens: longer sentences are translated in parts.
        facts: plain values about training, for the manifest and the model card.
        shortlist: target ids by frequency, and likely ones for each source id, for ``--shortlist``.
        lower: converts the float32 bundle to another precision; also returns facts about that.
        finish: makes the files of the bundle in its precision, given the tolerance of their numbers.
        greedy: whether ``finish`` needs the decoder's step for greedy search, which is traced apart.
        exact: makes ``reference`` in float64, which shows how much the model amplifies rounding errors.

    Raises:
        ConfigError: a bundle cannot recommend ``search``, or a single graph does not support it.
        BundleError: the graphs differ from the model, or ``path`` has other content; nothing was written.
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
    graphs = export_graphs(model, shortlist=shortlist is not None, greedy=greedy)
    described = describe_graphs(graphs)
    bundle = bundle_of(path, files | graphs, manifest | {"graphs": described, "training": facts})
    parity = _compare(bundle, reference, exact or (lambda: reference))
    bundle, more = (bundle, {}) if lower is None else lower(bundle)
    facts = facts | more
    files, described = (finish or BundleFormat().finish)(bundle, TOLERANCE if lower is None else LOW_TOLERANCE)
    card = model_card(path.name, facts, {name: len(content) for name, content in files.items()}, described.get("model"))
    whole = manifest | {"graphs": described, "training": facts}
    return write_bundle(path, files | {"README.md": card.encode()}, whole), parity


def _compare(bundle: Bundle, reference: StepFunction, exact: Callable[[], StepFunction]) -> Parity:
    """Compares the graphs of a bundle with the model, also with the shortlist if there is one."""
    manifest, step_fn = bundle.manifest, OnnxStepFunction(bundle)
    sizes = manifest.src_vocab_size, manifest.max_src_tokens, manifest.feature_dim
    parities = [compare_graphs(step_fn, reference, *sizes, exact=exact)]
    if has_shortlist(bundle):
        words = open_shortlist(bundle, _FREQUENT)
        fast, short = shortlisted(step_fn, words), shortlisted(reference, words)
        parities.append(compare_graphs(fast, short, *sizes, exact=lambda: shortlisted(exact(), words)))
    return largest(parities)


def compare_graphs(
    step_fn: StepFunction,
    reference: StepFunction,
    src_vocab_size: int,
    max_src_tokens: int,
    feature_dim: int | None = None,
    *,
    exact: Callable[[], StepFunction] | None = None,
) -> Parity:
    """Steps two backends in parallel, for short and long sentences, alone and in a batch.

    Raises:
        BundleError: they differ by more than rounding can explain.
    """
    return largest(
        compare(
            stepping(step_fn),
            stepping(reference),
            random_sentences(lengths, src_vocab_size, max_src_tokens, feature_dim),
            exact=None if exact is None else lambda: stepping(exact()),
        )
        for lengths in _LENGTHS
    )
