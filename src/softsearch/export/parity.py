"""Parity check of two backends of one model, run side by side through the interface that search uses."""

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.runtime.manifest import DECODER_BLOCK, DECODER_STEP, Manifest
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Sentences, State, StepFunction, full_log_probs
from softsearch.text.features import FeatureSource
from softsearch.text.vocabulary import BOS, SPECIALS

LENGTHS = (1, 5, 60)
BATCHES = (1, 7)
BEAMS = 3
STEPS = 4
_BEST = 6  # candidates, which a graph may compute in another way than all log probabilities
TOLERANCE = 1e-4  # of log-probabilities and alignments; float32 sums in another order stay below a third
_FACTOR = 4  # of the reference's own rounding: two backends may be apart by more than one of them is from float64


class Parity(NamedTuple):
    """The largest absolute differences."""

    log_probs: float
    alignments: float


def compare(
    reference: StepFunction,
    other: StepFunction,
    src_vocab_size: int,
    max_src_tokens: int,
    feature_dim: int | None = None,
    *,
    exact: Callable[[], StepFunction] | None = None,
) -> Parity:
    """Steps two backends through the same random tokens, with beams, reordering and dropped sentences.

    Sentences are of the lengths in :data:`LENGTHS` (EOS excluded) or as long as the model may read, together with
    shorter ones, in batches of :data:`BATCHES`. With a ``feature_dim`` they have random features. A recurrent model can
    amplify the rounding of each step: ``exact`` makes the reference in float64, which shows by how much.

    Raises:
        BundleError: they differ by more than :data:`TOLERANCE` and by more than rounding can explain.
    """
    rng = np.random.default_rng(0)
    largest = Parity(0.0, 0.0)
    for length, batch in itertools.product(LENGTHS, BATCHES):
        length = min(length, max_src_tokens - 1)
        lengths = [length, *(1 + i % length for i in range(1, batch))]
        src = _random(rng, lengths, src_vocab_size, feature_dim)
        parity = _compare_batch(rng, reference, other, src)
        accepted = TOLERANCE
        if exact is not None and np.max(parity) > TOLERANCE:
            accepted = max(accepted, _FACTOR * max(_compare_batch(np.random.default_rng(0), reference, exact(), src)))
        if not np.max(parity) <= accepted:  # also when one is NaN
            raise BundleError(
                f"the exported graphs differ from the model for {batch} sentences of up to {length} tokens: "
                f"log-probabilities by {parity.log_probs:.2g}, alignments by {parity.alignments:.2g}, expected at "
                f"most {accepted:.2g}; nothing was written, please report this model"
            )
        largest = _larger(largest, parity)
    return largest


def compare_blocks(steps: StepFunction, blocks: StepFunction, manifest: Manifest, tolerance: float) -> None:
    """Translates random sentences in single steps and in blocks, with the same search.

    Raises:
        BundleError: the log probabilities of the best translations differ by more than ``tolerance``.
    """
    rng = np.random.default_rng(0)
    for lengths in ((1,), (12, 5)):
        sizes = [min(length, manifest.max_src_tokens - 1) for length in lengths]
        src = _random(rng, sizes, manifest.src_vocab_size, manifest.feature_dim)
        found = [BeamSearch(beam=min(BEAMS, steps.vocab_size - 1))(step_fn, src) for step_fn in (steps, blocks)]
        log_probs = np.array([[n_best[0].log_prob for n_best in lists] for lists in found])
        difference = float(np.abs(log_probs[0] - log_probs[1]).max())
        if not difference <= tolerance:
            raise BundleError(
                f"{DECODER_BLOCK} translates the lengths {sizes} with log probabilities that differ by "
                f"{difference:.2g} from those of {DECODER_STEP}, expected at most {tolerance}; nothing was written, "
                "please report this model"
            )


def _random(rng: np.random.Generator, lengths: Iterable[int], vocab_size: int, feature_dim: int | None) -> Sentences:
    src: Sentences = [rng.integers(len(SPECIALS), vocab_size, size).tolist() for size in lengths]
    if feature_dim is not None:
        src = [FeatureSource(ids, rng.standard_normal((len(ids), feature_dim), np.float32)) for ids in src]
    return src


def _compare_batch(rng: np.random.Generator, reference: StepFunction, other: StepFunction, src: Sentences) -> Parity:
    backends = (reference, other)
    beams, sentences = 1, len(src)
    states: tuple[State, ...] = tuple(backend.start(src) for backend in backends)
    tokens = np.full(sentences, BOS)
    largest = Parity(0.0, 0.0)
    for step in range(STEPS):
        outputs = [full_log_probs(b, tokens, s) for b, s in zip(backends, states, strict=True)]
        best, _ = other.step(tokens, states[1], min(_BEST, other.vocab_size - 1))
        log_probs, alignments, states = zip(*outputs, strict=True)
        largest = _larger(largest, Parity(_difference(*log_probs), _difference(*alignments)))
        expected = np.take_along_axis(log_probs[0], best.tokens, axis=1)
        largest = _larger(largest, Parity(_difference(expected, best.log_probs), 0.0))
        if step == 1 and sentences > 2:
            rest = np.arange(0, sentences, 2)
            states = tuple(b.keep(s, rest) for b, s in zip(backends, states, strict=True))
            sentences = len(rest)
        rows = np.arange(sentences)[:, None] * beams + rng.integers(0, beams, (sentences, BEAMS))
        states = tuple(b.select(s, rows.reshape(-1)) for b, s in zip(backends, states, strict=True))
        beams = BEAMS
        tokens = rng.integers(len(SPECIALS), reference.vocab_size, sentences * beams)
    return largest


def _difference(a: NDArray[np.float32] | None, b: NDArray[np.float32] | None) -> float:
    if a is None or b is None:
        return 0.0
    difference = np.subtract(a, b, where=a != b, out=np.zeros_like(a))  # both may be -inf
    return float(np.abs(difference).max())


def _larger(a: Parity, b: Parity) -> Parity:
    return Parity(*np.maximum(a, b).tolist())  # NaN if either is, unlike max
