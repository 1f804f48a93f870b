"""A bundle as one graph for other programming languages, which translates as Python's search does."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.export.parity import TOLERANCE
from softsearch.export.single_graph import beam_search, describe_single, single_graph
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.manifest import SINGLE
from softsearch.runtime.options import STRATEGIES, Strategy
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Hypothesis, Sentences, StepFunction
from softsearch.text.vocabulary import PAD, SPECIALS, with_eos

LOW_TOLERANCE = 0.1  # two sessions fuse differently, and rounding to 8 or 16 bits makes a last bit into a step
LENGTHS = ((1,), (3, 20, 1, 12, 7, 5, 16))  # source tokens of each sentence of two batches, EOS excluded


def single_form(bundle: Bundle, tolerance: float) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of a bundle, in whatever precision, with one graph instead of two, and the manifest's ``graphs``.

    Scores, log probabilities and alignments of the one graph may differ by ``tolerance``.

    Raises:
        ConfigError: the graph cannot do the bundle's search.
        BundleError: it translates differently.
    """
    manifest = bundle.manifest
    search = STRATEGIES[manifest.search_kind](**manifest.search)
    model = single_graph(bundle.files, search, manifest.tgt_vocab_size)
    sizes = manifest.src_vocab_size, manifest.max_src_tokens
    check_translations(model, OnnxStepFunction(bundle), search, *sizes, tolerance)
    tokenizers = {name: file for name, file in bundle.files.items() if name.endswith((".model", "tokenizer.json"))}
    return {SINGLE: model} | tokenizers, {"model": describe_single(bundle.files)}


def check_translations(
    model: bytes, step_fn: StepFunction, search: Strategy, src_vocab_size: int, max_src_tokens: int, tolerance: float
) -> None:
    """Translates random sentences with a single graph and with Python's search over ``step_fn``.

    Raises:
        BundleError: they differ.
    """
    rng = np.random.default_rng(0)
    options = beam_search(search)
    beam = min(options.beam, step_fn.vocab_size - 1)  # of which the graph has no more
    options = replace(options, beam=beam, n_best=beam, alignments=step_fn.has_attention)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for lengths in LENGTHS:
        sizes = [min(length, max_src_tokens - 1) for length in lengths]
        src = [rng.integers(len(SPECIALS), src_vocab_size, size).tolist() for size in sizes]
        compare_translations(session, step_fn, options, src, tolerance)


def compare_translations(
    session: Any, step_fn: StepFunction, search: BeamSearch, src: Sentences, tolerance: float = TOLERANCE
) -> None:
    """Translates a batch with a session of a single graph and with Python's search over ``step_fn``.

    Raises:
        BundleError: token ids differ, or scores, log probabilities or alignments by more than ``tolerance``.
    """
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, _inputs(search, src)), strict=True))
    for sentence, expected in enumerate(search(step_fn, src)):
        single = {name: values[sentence] for name, values in found.items()}
        differences = [_difference(hypothesis, single, rank) for rank, hypothesis in enumerate(expected)]
        if np.count_nonzero(single["lengths"]) != len(expected) or not max(differences) <= tolerance:  # also NaN
            raise BundleError(
                f"the single graph translates the token ids {list(src[sentence])} as {single['tokens'].tolist()}, "
                f"scores {single['scores']}, and Python's search as {[list(h.written) for h in expected]}, scores "
                f"{[h.score for h in expected]}; expected the same ids, and a difference of at most {tolerance}; "
                "nothing was written, please report this model"
            )


def _inputs(search: BeamSearch, src: Sentences) -> dict[str, NDArray[Any]]:
    sentences = [with_eos(ids) for ids in src]
    longest = max(map(len, sentences))
    return {
        "src_tokens": np.array([ids + [PAD] * (longest - len(ids)) for ids in sentences]),
        "beam": np.array(search.beam),
        "n_best": np.array(search.n_best),
        "max_length": np.array([search.max_length(len(ids)) for ids in src]),
        "length_penalty": np.array(search.length_penalty, dtype=np.float32),
    }


def _difference(hypothesis: Hypothesis, single: dict[str, NDArray[Any]], rank: int) -> float:
    """The largest difference of a translation's numbers; infinite if the tokens differ."""
    length = single["lengths"][rank]
    if single["tokens"][rank, :length].tolist() != list(hypothesis.written):
        return np.inf
    differences = [single["scores"][rank] - hypothesis.score, single["log_probs"][rank] - hypothesis.log_prob]
    if hypothesis.alignments is not None:
        alignments = single["alignments"][rank, :length, : hypothesis.alignments.shape[1]]
        differences.append(np.abs(alignments - hypothesis.alignments).max())
    return float(np.abs(differences).max())
