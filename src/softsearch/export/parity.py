"""Parity of two backends of one model: compares their numbers, by name, for the same sentences."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.search.interface import Hypothesis, Sentences, StepFunction, full_log_probs
from softsearch.text.features import FeatureSource
from softsearch.text.vocabulary import BOS, PAD, SPECIALS

LOG_PROBS, ALIGNMENTS = "log-probabilities", "alignments"
Numbers = Mapping[str, NDArray[Any]]  # by name
Backend = Callable[[Sentences], Iterable[Numbers]]  # in parts, for example per step or per sentence
Parity = Mapping[str, float]  # largest absolute differences, by name
TOLERANCE = 1e-4  # for log probabilities and alignments; float32 sums in another order differ by a third of it
LOW_TOLERANCE = 0.1  # sessions fuse differently, and rounding to 8 or 16 bits turns a last bit into a step
_FACTOR = 4  # times the reference's rounding error: two backends may differ more than one of them differs from float64
_BEAMS, _STEPS = 3, 4
_BEST = 6  # candidates, which a graph may compute differently from all log probabilities


def compare(
    backend: Backend,
    reference: Backend,
    sentences: Sentences,
    *,
    names: tuple[str, str] = ("the exported graphs", "the model"),
    tolerance: float = TOLERANCE,
    exact: Callable[[], Backend] | None = None,
) -> Parity:
    """Compares the numbers of two backends for the same sentences.

    Args:
        backend: the exported model.
        reference: the model that it must equal.
        sentences: token ids without EOS.
        names: names of the two for the message.
        tolerance: the largest accepted difference.
        exact: makes the reference in float64, which shows how much a recurrent model amplifies the rounding errors of
            each step.

    Raises:
        BundleError: they differ by more than ``tolerance`` and by more than rounding can explain.
    """
    found = _differences(backend, reference, sentences)
    accepted = tolerance
    if exact is not None and max(found.values()) > tolerance:
        accepted = max(tolerance, _FACTOR * max(_differences(exact(), reference, sentences).values()))
    if not np.max([*found.values()]) <= accepted:  # true also if one is NaN
        differences = ", ".join(f"{name} by {difference:.2g}" for name, difference in found.items())
        raise BundleError(
            f"{names[0]} differ from {names[1]} for {len(sentences)} sentences of up to {max(map(len, sentences))} "
            f"tokens: {differences}, expected at most {accepted:.2g}; nothing was written; please report this model"
        )
    return found


def largest(parities: Iterable[Parity]) -> Parity:
    """Returns the largest difference by name in several comparisons; NaN if one is NaN, unlike max."""
    found: dict[str, float] = {}
    for parity in parities:
        found |= {name: float(np.maximum(found.get(name, 0.0), value)) for name, value in parity.items()}
    return found


def random_sentences(
    lengths: Sequence[int], vocab_size: int, max_src_tokens: int, feature_dim: int | None = None, *, seed: int = 0
) -> Sentences:
    """Returns random sources of these lengths, or the longest for the model; feature vectors if ``feature_dim``."""
    rng = np.random.default_rng(seed)
    sizes = [min(length, max_src_tokens - 1) for length in lengths]
    src: Sentences = [rng.integers(len(SPECIALS), vocab_size, size).tolist() for size in sizes]
    if feature_dim is not None:
        src = [FeatureSource(ids, rng.standard_normal((len(ids), feature_dim), np.float32)) for ids in src]
    return src


def stepping(step_fn: StepFunction) -> Backend:
    """Returns a backend that steps through random tokens, with beams, reordering and dropped sentences."""

    def run(src: Sentences) -> Iterator[Numbers]:
        rng = np.random.default_rng(0)
        beams, sentences, state = 1, len(src), step_fn.start(src)
        tokens = np.full(sentences, BOS)
        for step in range(_STEPS):
            best, _ = step_fn.step(tokens, state, min(_BEST, step_fn.vocab_size - 1))
            log_probs, alignments, state = full_log_probs(step_fn, tokens, state)
            yield {LOG_PROBS: log_probs} | ({} if alignments is None else {ALIGNMENTS: alignments})
            candidates = log_probs.copy()
            np.put_along_axis(candidates, best.tokens, best.log_probs, axis=1)
            yield {LOG_PROBS: candidates}
            if step == 1 and sentences > 2:
                rest = np.arange(0, sentences, 2)
                state, sentences = step_fn.keep(state, rest), len(rest)
            rows = np.arange(sentences)[:, None] * beams + rng.integers(0, beams, (sentences, _BEAMS))
            state, beams = step_fn.select(state, rows.reshape(-1)), _BEAMS
            tokens = rng.integers(len(SPECIALS), step_fn.vocab_size, sentences * beams)

    return run


def searching(search: Callable[[Sentences], list[list[Hypothesis]]]) -> Backend:
    """Returns a backend that translates; differences of token ids are never accepted."""

    def run(src: Sentences) -> Iterator[Numbers]:
        for n_best in search(src):
            yield translations(
                [h.written for h in n_best],
                [h.score for h in n_best],
                [h.log_prob for h in n_best],
                [h.alignments for h in n_best if h.alignments is not None],
            )

    return run


def translations(
    tokens: Sequence[Sequence[int]],
    scores: Sequence[float],
    log_probs: Sequence[float],
    alignments: Sequence[NDArray[np.floating]],
) -> Numbers:
    """Returns the numbers of a sentence's translations, best first."""
    longest = max(map(len, tokens), default=0)
    ids = np.array([[*each, *[PAD] * (longest - len(each))] for each in tokens])
    numbers = {"token ids": ids, "scores": np.array(scores), LOG_PROBS: np.array(log_probs)}
    return numbers | ({ALIGNMENTS: np.concatenate(alignments)} if alignments else {})


def _differences(one: Backend, other: Backend, sentences: Sentences) -> Parity:
    pairs = zip(one(sentences), other(sentences), strict=True)
    return largest({name: _difference(a[name], b[name]) for name in a if name in b} for a, b in pairs)


def _difference(a: NDArray[Any], b: NDArray[Any]) -> float:
    if a.shape != b.shape:
        return np.inf
    difference = np.subtract(a, b, where=a != b, out=np.zeros(a.shape))  # both may be -inf
    return float(np.abs(difference).max(initial=0.0))
