"""The checker of the course: every solution passes, and a wrong answer is told what differs."""

import runpy
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.errors import InputError
from softsearch.extras.course import check, models, scores, words
from softsearch.extras.course.verdict import verdict

EXERCISES = {**words.EXERCISES, **models.EXERCISES, **scores.EXERCISES}
SOLUTIONS = sorted((Path(__file__).parents[3] / "notebooks" / "solutions").glob("*.py"))


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


# A typical mistake for each exercise, and what the reader is told.
MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "nearest_words": (
        lambda v, word, n: np.argsort(-(v @ v[word]))[:n].tolist(),
        "at [0] is 4, expected 1",
    ),  # not by cosine
    "continuation_probability": (
        lambda bigrams: {w: n / len(bigrams) for w, n in Counter(w for _, w in bigrams).items()},
        "is 0.125, expected 0.0769231",
    ),
    "perplexity": (lambda p: np.exp(-np.mean([np.mean(s) for s in p if s])), "the result is 7.38906, expected 12.1825"),
    "most_frequent_pair": (lambda w: max(Counter(p for s in w for p in pairwise(s)).items())[0], "is '"),
    "merge_pair": (
        lambda s, pair: tuple("".join(pair) if p == pair else p[0] for p in pairwise(s)),
        "the result[4] is 's', expected 't'",
    ),
    "best_segmentation": (lambda word, p: list(word), "has length 9, expected"),
    "gru_step": (lambda x, h, *_: h, "at [0] is 0.1049, expected 0.365146"),
    "gradient_bound": (
        lambda U, gamma, k: (gamma * max(abs(np.linalg.eigvals(U)))) ** k,
        "is 0.03125, expected 42.625",
    ),
    "clip_by_norm": (lambda g, c: [x / np.linalg.norm(x) * c for x in g], "the result[0] at [0, 0]"),
    "last_states": (lambda states, lengths: states[:, -1], "lengths = array of shape (3,) [1, 5, 3]"),
    "maxout": (lambda x: x.reshape(*x.shape[:-1], 2, -1).max(-2), "at [1] is -0.132105, expected 0.640423"),
    "sentence_log_prob": (lambda x, t: np.log(np.take_along_axis(softmax(x), t[..., None], -1)).sum((1, 2)), "at [1]"),
    "additive_energies": (lambda s, h, W, U, v: np.tanh(W @ s + h @ U.T) @ v.sum(), "the function raised ValueError"),
    "masked_softmax": (lambda e, mask: softmax(e) * mask, "at [0, 0]"),
    "alignment_error_rate": (
        lambda a, s, p: 1 - sum(len(x & y) for x, y in zip(a, p, strict=True)) / sum(map(len, a)),
        "the result is 0.666667, expected 0.833333",
    ),
    "luong_general": (lambda h_t, h_s, W: h_s @ W.T @ h_t, "the result at [0] is"),
    "local_weights": (lambda scores, p_t, D: softmax(scores), "the result at [0] is 0.0"),
    "attentional_state": (lambda c, h, W: np.tanh(W @ np.concatenate([h, c])), "3 of 3 numbers differ"),
    "scaled_dot_product": (lambda Q, K, V, mask: softmax(np.where(mask, Q @ K.T, -np.inf)) @ V, "12 of 12 numbers"),
    "position_encoding": (lambda pos, d: [np.sin(pos / 10000 ** (i / d)) for i in range(d)], "at [1] is 0, expected 1"),
    "smoothed_loss": (lambda x, t, e: -np.log(softmax(x))[np.arange(len(t)), t].mean(), "smoothing = 0.1"),
    "beam_step": (lambda totals, p, k: ([0] * k, np.argsort(p[0])[:k], np.sort(p[0])[:k]), "the result[1] at [0]"),
    "length_norm": (lambda length, alpha: length**alpha, "length = 25"),
    "nucleus": (lambda p, top_p: np.where(p >= top_p, p, 0), "at [1] is 0.4, expected 1"),
    "bleu_precision": (lambda h, r, n: (sum(w in r for w in h), len(h)), "the result at [0] is 4, expected 2"),
    "brevity_penalty": (lambda c, r: np.exp(1 - r / c), "hypothesis_length = 12"),
    "p_value": (lambda s, b, x, y: (np.abs(x - y) > abs(s - b)).mean(), "is 0.62, expected 0.189055"),
    "quantize_rows": (lambda m: (np.rint(m / abs(m).max() * 64), abs(m).max() / 64), "the result[0] at [0, 0]"),
    "plan_batches": (lambda lengths, n: [[i] for i in range(len(lengths))], "has length 5, expected"),
    "pareto_front": (lambda q, s: [int(np.argmax(q)), int(np.argmin(s))], "the result at [0]"),
}


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solution_is_right(path: Path) -> None:
    solved = {name: value for name, value in runpy.run_path(str(path)).items() if name in EXERCISES}
    assert len(solved) == 3
    wrong = [outcome for name, function in solved.items() if not (outcome := verdict(name, function)).right]
    assert not wrong


def test_every_exercise_has_a_solution_and_a_mistake() -> None:
    solved = [name for path in SOLUTIONS for name in runpy.run_path(str(path)) if name in EXERCISES]
    assert sorted(solved) == sorted(EXERCISES) == sorted(MISTAKES)


@pytest.mark.parametrize("name", EXERCISES)
def test_typical_mistake_is_told(name: str) -> None:
    function, told = MISTAKES[name]
    outcome = verdict(name, function)
    assert not outcome.right
    assert told in outcome.message


def changed(x: Any) -> Any:
    x.sort()
    return x[..., ::2]


def calls_what_it_lacks(x: Any) -> Any:
    return x.maximum()


ANSWERS = [
    (lambda x: ..., "not done yet: the function still has a ..."),
    (lambda x: (1, ...), "not done yet: the function still has a ..."),
    (lambda x: x + ..., "not done yet: the function still has a ..."),
    (lambda x: None, "not done yet: the function returned None"),
    (changed, "the function changed its argument x"),
    (calls_what_it_lacks, "raised AttributeError: 'numpy.ndarray' object has no attribute 'maximum'\nin line "),
    (calls_what_it_lacks, "return x.maximum()\nfor\n  x = array of shape (6,) [ 0.126"),
    (lambda: 1, "raised TypeError: <lambda>() takes 0 positional arguments but 1 was given"),
    (lambda x: x, "is numbers of shape (6,), expected numbers of shape (3,)"),
    (lambda x: 3.5, "is one number, expected numbers of shape (3,)"),
    (lambda x: "three", "is 'three' of type <U5, expected numbers of shape (3,)"),
    (lambda x: [[1], [2, 3], [4]], "is [[1], [2, 3], [4]], expected numbers of shape (3,)"),
    (lambda x: 1j * np.ones(3), "of type complex128, expected numbers of shape (3,)"),
    (lambda x: np.array([0.1, np.nan, 1]) + x[:1], "is NaN at [1], expected 0.6404"),
    (lambda x: np.ones(3, dtype=np.int64), "(its dtype int64 holds no fractions)"),
    (lambda x: np.array([x[0], x[2] + 1, x[5]]), "at [1] is 1.64042, expected 0.640423; 1 of 3 numbers differ"),
]


@pytest.mark.parametrize(("answer", "told"), ANSWERS)
def test_answer_of_any_kind_is_told_what_is_wrong(answer: Callable[..., Any], told: str) -> None:
    outcome = verdict("maxout", answer)
    assert not outcome.right
    assert outcome.message.startswith("maxout: ")
    assert told in outcome.message


@pytest.mark.parametrize(
    ("name", "answer", "told"),
    [
        ("continuation_probability", lambda bigrams: [0.5], "is of type list, expected a dict"),
        ("continuation_probability", lambda bigrams: {}, "has the keys [], expected ['b']"),
        ("most_frequent_pair", lambda words: "lo", "is of type str, expected 2 values"),
        ("merge_pair", lambda symbols, pair: ("n", "e", "w", 5, "t"), "the result[3] is 5, expected 'es'"),
    ],
)
def test_results_that_are_no_numbers_are_compared(name: str, answer: Callable[..., Any], told: str) -> None:
    assert told in verdict(name, answer).message


def test_check_prints_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    check("maxout", lambda x: x.reshape(*x.shape[:-1], -1, 2).max(-1))
    assert capsys.readouterr().out == "maxout: correct for all 2 inputs\n"


@pytest.mark.parametrize(
    ("name", "function", "told"),
    [
        ("maxuot", len, "no exercise 'maxuot'; did you mean 'maxout'?"),
        ("zzz", len, "there are nearest_words, "),
        ("maxout", 3, "got 3, expected a function"),
    ],
)
def test_check_of_something_else_is_refused(name: str, function: Any, told: str) -> None:
    with pytest.raises(InputError, match=r".") as caught:
        check(name, function)
    assert told in str(caught.value)
