"""Whether two backends of one model compute the same: run side by side through the interface that search uses."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.search.interface import Candidates, StepFunction
from softsearch.text.vocabulary import BOS, EOS, SPECIALS

LENGTHS = (1, 5, 60)
BATCHES = (1, 7)
STEPS = 4
TOLERANCE = 1e-4  # of log-probabilities and alignments; float32 sums in another order stay a hundred times below


class Parity(NamedTuple):
    """The largest absolute differences found."""

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
    worst = Parity(0.0, 0.0)
    for length in (min(length, max_src_tokens - 1) for length in LENGTHS):
        for batch in BATCHES:
            src = [_sentence(rng, src_vocab_size, length if i == 0 else 1 + i % length) for i in range(batch)]
            found = _compare_batch(rng, reference, other, src)
            if not max(found) <= TOLERANCE:  # also when it is NaN
                raise BundleError(
                    f"the exported graphs differ from the model for {batch} sentences of up to {length} tokens: "
                    f"log-probabilities by {found.log_probs:.2g}, alignments by {found.alignments:.2g}, expected at "
                    f"most {TOLERANCE}; nothing was written, please report this model"
                )
            worst = Parity(*map(max, worst, found))
    return worst


def _compare_batch(
    rng: np.random.Generator, reference: StepFunction, other: StepFunction, src: list[list[int]]
) -> Parity:
    beams, sentences, k = 1, len(src), reference.vocab_size
    states = [backend.start(src) for backend in (reference, other)]
    tokens = np.full(sentences, BOS)
    worst = Parity(0.0, 0.0)
    for step in range(STEPS):
        stepped = [b.step(tokens, s, k) for b, s in zip((reference, other), states, strict=True)]
        worst = Parity(*map(max, worst, _differences(stepped[0][0], stepped[1][0])))
        states = [state for _, state in stepped]
        if step == 1 and sentences > 2:
            kept = np.arange(0, sentences, 2)
            states = [b.keep(s, kept) for b, s in zip((reference, other), states, strict=True)]
            sentences = len(kept)
        wider = 3
        rows = (np.arange(sentences)[:, None] * beams + rng.integers(0, beams, (sentences, wider))).reshape(-1)
        states = [b.select(s, rows) for b, s in zip((reference, other), states, strict=True)]
        beams = wider
        tokens = rng.integers(len(SPECIALS), reference.vocab_size, sentences * beams)
    return worst


def _differences(a: Candidates, b: Candidates) -> Parity:
    alignments = 0.0
    if a.alignments is not None and b.alignments is not None:
        alignments = float(np.abs(a.alignments - b.alignments).max())
    return Parity(float(np.abs(_by_token(a) - _by_token(b)).max()), alignments)


def _by_token(candidates: Candidates) -> NDArray[np.float32]:
    """Log-probabilities in the order of the vocabulary: ties may come in any order of rank."""
    return np.take_along_axis(candidates.log_probs, np.argsort(candidates.tokens, axis=1), axis=1)


def _sentence(rng: np.random.Generator, vocab_size: int, length: int) -> list[int]:
    return [*rng.integers(len(SPECIALS), vocab_size, length).tolist(), EOS]
