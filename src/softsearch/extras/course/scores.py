"""Exercises on alignments, search, evaluation and deployment: notebooks 04 and 08 to 10."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.extras.course.exercise import Arguments, Exercise, rng
from softsearch.search import Sampling

Array = NDArray[np.float64]
Links = set[tuple[int, int]]


def alignment_error_rate(predicted: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]) -> float:
    """Returns the alignment error rate of predicted links; ``possible`` includes ``sure``."""
    from softsearch.evaluation import Gold, alignment_error_rate

    return alignment_error_rate(predicted, [Gold(*links) for links in zip(sure, possible, strict=True)])


def beam_step(totals: Array, log_probs: Array, beam: int) -> tuple[list[int], list[int], list[float]]:
    """Returns the ``beam`` best continuations of all hypotheses, best first: parents, tokens, log probabilities.

    ``totals`` are the log probabilities of the hypotheses, ``log_probs`` ``[hypotheses, vocab]`` those of next tokens.
    """
    every = (totals[:, None] + log_probs).reshape(1, -1)
    best = np.argsort(-every[0], kind="stable")[:beam]
    vocab = log_probs.shape[1]
    return (best // vocab).tolist(), (best % vocab).tolist(), every[0, best].tolist()


def length_norm(length: int, alpha: float) -> float:
    """Returns lp(Y) of Wu et al. 2016, equation 14 (``softsearch.search.length_norm``)."""
    from softsearch.search import length_norm

    return float(length_norm(length, alpha, "gnmt"))


def nucleus(probs: Array, top_p: float) -> Array:
    """Returns the distribution over the fewest tokens with a total of ``top_p`` (Holtzman et al. 2020, section 3.1)."""
    with np.errstate(divide="ignore"):
        weights = Sampling(top_p=top_p).weights(np.log(probs)[None])[0]
    return np.asarray(weights / weights.sum())


def bleu_precision(hypothesis: Sequence[str], reference: Sequence[str], n: int) -> tuple[int, int]:
    """Returns the clipped matches and the number of n-grams of a hypothesis, as counted by sacreBLEU."""
    from softsearch.evaluation import BLEU

    counts = BLEU(tokenize="none").table([" ".join(hypothesis)], [" ".join(reference)])[0]
    return int(counts[1 + n]), int(counts[5 + n])


def brevity_penalty(hypothesis_length: int, reference_length: int) -> float:
    """Returns BP of Papineni et al. 2002, section 2.3, as computed by sacreBLEU."""
    from sacrebleu.metrics import BLEU

    ones = [1] * 4
    return float(BLEU.compute_bleu(ones, ones, hypothesis_length, reference_length).bp)


def p_value(system: float, baseline: float, system_resamples: Array, baseline_resamples: Array) -> float:
    """Returns the p-value of a paired bootstrap (``softsearch.evaluation.paired_bootstrap``)."""
    from softsearch.evaluation import Resamples, paired_bootstrap

    pairs = {"baseline": (baseline, baseline_resamples), "system": (system, system_resamples)}
    return paired_bootstrap({name: {"bleu": Resamples(*own)} for name, own in pairs.items()})[0].p_value


def plan_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Divides sentences into batches like ``softsearch.search.plan_batches``."""
    from softsearch.search import plan_batches

    return plan_batches(lengths, batch_tokens)


def quantize_rows(matrix: Array) -> tuple[NDArray[np.int8], Array]:
    """Returns int8 weights and the scale of each row, as in the export."""
    from softsearch.export import quantize_weight

    integers, scales = quantize_weight(matrix, 0)
    return integers, scales.astype(np.float64)


def pareto_front(quality: Sequence[float], seconds: Sequence[float]) -> list[int]:
    """Returns the systems, in order, that no other one dominates: is at least as good and fast, and better in one.

    As ``softsearch compare`` finds them.
    """
    from softsearch.extras.shared.pareto import pareto_front

    systems = zip(quality, seconds, strict=True)
    return sorted(pareto_front({index: (good, -slow) for index, (good, slow) in enumerate(systems)}))


def _alignments() -> list[Arguments]:
    sure: list[Links] = [{(0, 0), (1, 1)}, {(0, 1)}]
    possible: list[Links] = [{(0, 0), (1, 1), (2, 1)}, {(0, 1), (1, 0)}]
    answers: list[list[Links]] = [sure, [{(2, 1), (0, 1)}, {(1, 1)}], [set(), {(0, 1), (1, 0)}]]
    return [{"predicted": own, "sure": sure, "possible": possible} for own in answers]


def _steps() -> list[Arguments]:
    cases: list[tuple[list[float], int]] = [([0.0], 3), ([-1.0, -1.5], 2), ([-0.2, -9.0, -0.1], 4)]
    return [
        {"totals": np.array(totals), "log_probs": np.log(rng(beam).dirichlet(np.ones(6), len(totals))), "beam": beam}
        for totals, beam in cases
    ]


def _distributions() -> list[Arguments]:
    probs = np.array([0.1, 0.4, 0.05, 0.25, 0.2])
    return [{"probs": probs, "top_p": top_p} for top_p in (0.3, 0.6, 0.8, 1.0)]


def _sentences() -> list[Arguments]:
    pairs = (
        ("the the the the", "the cat is on the mat"),
        ("on the mat sat the cat", "the cat sat on the mat"),
        ("one", "one two"),
    )
    return [{"hypothesis": h.split(), "reference": r.split(), "n": n} for h, r in pairs for n in (1, 2)]


def _resamples() -> list[Arguments]:
    generator = rng()
    cases: list[Arguments] = []
    for difference in (0.0, 0.3, 2.0):
        baseline = generator.normal(30, 1, 200)
        system = baseline + generator.normal(difference, 0.5, 200)
        values = {"system": 30.0 + difference, "baseline": 30.0}
        cases.append({**values, "system_resamples": system, "baseline_resamples": baseline})
    return cases


def _weights() -> list[Arguments]:
    matrix = rng().standard_normal((3, 5))
    return [{"matrix": own} for own in (matrix, matrix * np.array([[1.0], [100.0], [0.01]]))]


def _systems() -> list[Arguments]:
    cases: tuple[tuple[list[float], list[float]], ...] = (
        ([30.0, 35.0, 33.0], [1.0, 4.0, 5.0]),
        ([30.0, 30.0, 29.0, 30.0], [2.0, 2.0, 1.0, 3.0]),
    )
    return [{"quality": quality, "seconds": seconds} for quality, seconds in cases]


def _calls(names: str, *values: tuple[Any, ...]) -> list[Arguments]:
    return [dict(zip(names.split(), each, strict=True)) for each in values]


EXERCISES = {
    "alignment_error_rate": Exercise(alignment_error_rate, _alignments),
    "beam_step": Exercise(beam_step, _steps),
    "length_norm": Exercise(length_norm, lambda: _calls("length alpha", (1, 0.6), (25, 0.6), (25, 0.0), (7, 1.0))),
    "nucleus": Exercise(nucleus, _distributions),
    "bleu_precision": Exercise(bleu_precision, _sentences, 0),
    "brevity_penalty": Exercise(
        brevity_penalty, lambda: _calls("hypothesis_length reference_length", (10, 10), (8, 10), (12, 10), (0, 5))
    ),
    "p_value": Exercise(p_value, _resamples),
    "plan_batches": Exercise(
        plan_batches, lambda: _calls("lengths batch_tokens", ([5, 2, 9, 9, 1], 18), ([3, 3, 3], 6), ([40, 2], 10)), 0
    ),
    "quantize_rows": Exercise(quantize_rows, _weights),
    "pareto_front": Exercise(pareto_front, _systems, 0),
}
