"""Writes the folder of a single graph, if it translates as Python's search does."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.export.parity import TOLERANCE
from softsearch.export.single_graph import beam_search, describe_single, single_graph
from softsearch.report.model_card import model_card
from softsearch.runtime.bundle import MANIFEST, Bundle, write_bundle
from softsearch.runtime.manifest import SINGLE
from softsearch.runtime.options import STRATEGIES, Strategy
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Hypothesis, Sentences, StepFunction
from softsearch.text.vocabulary import PAD, SPECIALS, with_eos

_OF_BUNDLE = ("tokenizers", "reversed", "vocab_sizes", "limits", "search", "training")  # in the manifest
_INT8_TOLERANCE = 0.1  # two sessions fuse differently, and rounding to 8 bits makes a last bit into a step
LENGTHS = ((1,), (3, 20, 1, 12, 7, 5, 16))  # source tokens of each sentence of two batches, EOS excluded


def export_single(bundle: Bundle, path: Path) -> Bundle:
    """Writes a single graph with the tokenizers, the model card and the manifest of a bundle.

    Args:
        bundle: gives the graphs, in whatever precision, and the default search.
        path: the new folder; an older one is replaced.

    Raises:
        ConfigError: the graph cannot do that search.
        BundleError: it translates differently, or ``path`` holds something else; nothing was written.
    """
    manifest = bundle.manifest
    search = STRATEGIES[manifest.search_kind](**manifest.search)
    model = single_graph(bundle.files, search, manifest.tgt_vocab_size)
    described = describe_single(bundle.files)
    files = {SINGLE: model} | {
        name: content for name, content in bundle.files.items() if name.endswith((".model", "tokenizer.json"))
    }
    sizes = {name: len(content) for name, content in files.items()}
    files["README.md"] = model_card(path.name, manifest.training, sizes, described).encode()
    tree = json.loads((bundle.path / MANIFEST).read_bytes())
    whole = {name: tree[name] for name in _OF_BUNDLE} | {"graphs": {"model": described}}

    def check(written: Bundle) -> None:
        step_fn = OnnxStepFunction(bundle)
        check_translations(written.files[SINGLE], step_fn, search, manifest.src_vocab_size, manifest.max_src_tokens)

    return write_bundle(path, files, whole, check=check)


def check_translations(
    model: bytes, step_fn: StepFunction, search: Strategy, src_vocab_size: int, max_src_tokens: int
) -> None:
    """Translates random sentences with a single graph and with Python's search over ``step_fn``.

    Raises:
        BundleError: they differ.
    """
    rng = np.random.default_rng(0)
    options = beam_search(search)
    options = replace(options, n_best=options.beam, alignments=step_fn.has_attention)
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("session.x64quantprecision", "1")  # int8 is exact on any processor
    tolerance = _INT8_TOLERANCE if b"QuantizeLinear" in model else TOLERANCE
    session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
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
