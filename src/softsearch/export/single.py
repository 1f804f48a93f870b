"""A bundle as one graph for other programming languages, with the same translations as Python's search."""

import shlex
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from softsearch.export.bundle import BundleFormat
from softsearch.export.parity import TOLERANCE, Backend, Numbers, compare, random_sentences, searching, translations
from softsearch.export.single_graph import beam_search, describe_single, single_graph
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.manifest import SINGLE
from softsearch.runtime.options import Strategy
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Sentences, StepFunction
from softsearch.text.vocabulary import PAD, with_eos

LENGTHS = ((1,), (3, 20, 1, 12, 7, 5, 16))  # source tokens of each sentence of two batches, EOS excluded


class SingleFormat(BundleFormat):
    """One ONNX file, search included."""

    name: ClassVar[str] = "single"
    takes: ClassVar[Collection[str]] = ("precision", "report")
    has_greedy: ClassVar[bool] = False

    def check(self, search: Strategy, out: Path) -> None:
        """Also refuses a search that the graph does not support."""
        beam_search(search)
        super().check(search, out)

    def finish(self, bundle: Bundle, tolerance: float) -> tuple[dict[str, bytes], dict[str, Any]]:
        """Returns one graph instead of two, and files for tokenization.

        Raises:
            ConfigError: the graph does not support the bundle's search.
            BundleError: it translates differently.
        """
        manifest = bundle.manifest
        search = manifest.strategy
        model = single_graph(bundle.files, search, manifest.tgt_vocab_size, manifest.max_src_tokens)
        sizes = manifest.src_vocab_size, manifest.max_src_tokens
        check_translations(model, OnnxStepFunction(bundle), search, *sizes, tolerance)
        tokenizers = {name: file for name, file in bundle.files.items() if name.endswith((".model", "tokenizer.json"))}
        return {SINGLE: model} | tokenizers, {"model": describe_single(bundle.files)}

    def following(self, bundle: Bundle) -> str:
        """Returns the command that makes a page from it, and the file about other programming languages."""
        site = shlex.join(["softsearch", "web", str(bundle.path), "--out", f"{bundle.path.name}-site"])
        return f"{site}\nfor other programming languages: {bundle.path / 'README.md'}"


def check_translations(
    model: bytes, step_fn: StepFunction, search: Strategy, src_vocab_size: int, max_src_tokens: int, tolerance: float
) -> None:
    """Translates random sentences with a single graph and with Python's search over ``step_fn``.

    Raises:
        BundleError: token ids differ, or scores, log probabilities or alignments by more than ``tolerance``.
    """
    options = beam_search(search)
    beam = min(options.beam, step_fn.vocab_size - 1)  # the graph has no larger beam
    options = replace(options, beam=beam, n_best=beam, alignments=step_fn.has_attention)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for lengths in LENGTHS:
        src = random_sentences(lengths, src_vocab_size, max_src_tokens)
        compare_translations(session, step_fn, options, src, tolerance)


def compare_translations(
    session: Any, step_fn: StepFunction, search: BeamSearch, src: Sentences, tolerance: float = TOLERANCE
) -> None:
    """Translates a batch with a session of a single graph and with Python's search over ``step_fn``.

    Raises:
        BundleError: token ids differ, or scores, log probabilities or alignments by more than ``tolerance``.
    """
    names = "the single graph's translations", "those of Python's search"
    reference = searching(lambda src: search(step_fn, src))
    compare(_single(session, search), reference, src, names=names, tolerance=tolerance)


def _single(session: Any, search: BeamSearch) -> Backend:
    """Returns a backend of the translations of a single graph, without padding."""
    names = [output.name for output in session.get_outputs()]

    def run(src: Sentences) -> Iterator[Numbers]:
        found = dict(zip(names, session.run(names, _inputs(search, src)), strict=True))
        for index, ids in enumerate(src):
            lengths = [length for length in found["lengths"][index] if length]
            written = {name: values[index][: len(lengths)] for name, values in found.items()}
            yield translations(
                [tokens[:length].tolist() for tokens, length in zip(written["tokens"], lengths, strict=True)],
                written["scores"],
                written["log_probs"],
                [
                    matrix[:length, : len(ids) + 1]
                    for matrix, length in zip(written.get("alignments", ()), lengths, strict=False)
                ],
            )

    return run


def _inputs(search: BeamSearch, src: Sentences) -> dict[str, NDArray[Any]]:
    sentences = [with_eos(ids) for ids in src]
    longest = max(map(len, sentences))
    return {
        "src_tokens": np.array([ids + [PAD] * (longest - len(ids)) for ids in sentences]),
        "beam": np.array(search.beam),
        "n_best": np.array(search.n_best),
        "max_length": np.array([search.lengths(len(ids)).most for ids in src]),
        "length_penalty": np.array(search.length_penalty, dtype=np.float32),
    }
