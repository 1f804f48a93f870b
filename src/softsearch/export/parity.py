"""Whether two backends of one model compute the same: run side by side through the interface that search uses."""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.search.interface import Candidates, StepFunction
from softsearch.text.vocabulary import BOS, SPECIALS

LENGTHS = (1, 5, 60)
BATCHES = (1, 7)
BEAMS = 3
STEPS = 4
TOLERANCE = 1e-4  # of log-probabilities and alignments; float32 sums in another order stay a hundred times below


class Parity(NamedTuple):
    """The largest absolute differences."""

    log_probs: float
    alignments: float


def compare(reference: StepFunction, other: StepFunction, src_vocab_size: int, max_src_tokens: int) -> Parity:
    """Steps two backends through the same random tokens, with beams, reordering and dropped sentences.

    Sentences are of the lengths in :data:`LENGTHS` (EOS excluded) or as long as the model may read, with shorter ones
    beside them, in batches of :data:`BATCHES`.

    Raises:
        BundleError: they differ by more than :data:`TOLERANCE`.
    """
    rng = np.random.default_rng(0)
    largest = Parity(0.0, 0.0)
    for length, batch in itertools.product(LENGTHS, BATCHES):
        length = min(length, max_src_tokens - 1)
        lengths = [length, *(1 + i % length for i in range(1, batch))]
        src = [rng.integers(len(SPECIALS), src_vocab_size, size).tolist() for size in lengths]
        parity = _compare_batch(rng, reference, other, src)
        if not max(parity) <= TOLERANCE:  # also when it is NaN
            raise BundleError(
                f"the exported graphs differ from the model for {batch} sentences of up to {length} tokens: "
                f"log-probabilities by {parity.log_probs:.2g}, alignments by {parity.alignments:.2g}, expected at "
                f"most {TOLERANCE}; nothing was written, please report this model"
            )
        largest = Parity(*map(max, largest, parity))
    return largest


def _compare_batch(
    rng: np.random.Generator, reference: StepFunction, other: StepFunction, src: list[list[int]]
) -> Parity:
    backends = (reference, other)
    beams, sentences = 1, len(src)
    states = [backend.start(src) for backend in backends]
    tokens = np.full(sentences, BOS)
    largest = Parity(0.0, 0.0)
    for step in range(STEPS):
        outputs = [b.step(tokens, s, reference.vocab_size) for b, s in zip(backends, states, strict=True)]
        largest = Parity(*map(max, largest, _differences(*(candidates for candidates, _ in outputs))))
        states = [state for _, state in outputs]
        if step == 1 and sentences > 2:
            rest = np.arange(0, sentences, 2)
            states = [b.keep(s, rest) for b, s in zip(backends, states, strict=True)]
            sentences = len(rest)
        rows = np.arange(sentences)[:, None] * beams + rng.integers(0, beams, (sentences, BEAMS))
        states = [b.select(s, rows.reshape(-1)) for b, s in zip(backends, states, strict=True)]
        beams = BEAMS
        tokens = rng.integers(len(SPECIALS), reference.vocab_size, sentences * beams)
    return largest


def _differences(a: Candidates, b: Candidates) -> Parity:
    alignments = 0.0
    if a.alignments is not None and b.alignments is not None:
        alignments = float(np.abs(a.alignments - b.alignments).max())
    return Parity(float(np.abs(_by_token(a) - _by_token(b)).max()), alignments)


def _by_token(candidates: Candidates) -> NDArray[np.float32]:
    """Log-probabilities in the order of the vocabulary: ties may come in any order of rank."""
    return np.take_along_axis(candidates.log_probs, np.argsort(candidates.tokens, axis=1), axis=1)
