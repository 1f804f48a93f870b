"""Models small enough to search by hand: a fixed random table over five tokens, and a brute-force search of it."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.search.interface import Candidates, whole_vocabulary
from softsearch.search.options import OutputOptions, SearchOptions
from softsearch.text.vocabulary import BOS, EOS, with_eos

VOCAB = 5


class Row(NamedTuple):
    """One hypothesis as the model sees it: the whole source and the whole prefix."""

    src: tuple[int, ...]
    prefix: tuple[int, ...]


def log_probs_of(row: Row, seed: int, eos_bias: float) -> NDArray[np.float32]:
    """The next token's distribution: a different one for every source and prefix."""
    return _log_probs(row, seed, eos_bias).copy()


@lru_cache(maxsize=1 << 16)
def _log_probs(row: Row, seed: int, eos_bias: float) -> NDArray[np.float32]:
    logits = np.random.default_rng([seed, *with_eos(row.src), 99, *row.prefix]).normal(scale=1.5, size=VOCAB)
    logits[EOS] += eos_bias
    return (logits - np.log(np.exp(logits).sum())).astype(np.float32)


def alignment_of(row: Row, width: int) -> NDArray[np.float32]:
    """Made-up attention that tells the prefixes apart; padding gets none."""
    padded = np.zeros(width, dtype=np.float32)
    padded[: len(row.src) + 1] = _weights(row)
    return padded


@lru_cache(maxsize=1 << 16)
def _weights(row: Row) -> NDArray[np.float64]:
    weights = np.random.default_rng([7, *with_eos(row.src), 99, *row.prefix]).random(len(row.src) + 1)
    return weights / weights.sum()


class TableModel:
    """A StepFunction whose state is the rows themselves, so that a wrong select or keep shows in every number."""

    vocab_size = VOCAB

    def __init__(self, seed: int = 0, eos_bias: float = 0.0, *, has_alignments: bool = True) -> None:
        self.seed = seed
        self.eos_bias = eos_bias
        self.has_attention = has_alignments
        self.stepped: list[int] = []

    def start(self, src: Sequence[Sequence[int]]) -> list[list[Row]]:
        return [[Row(tuple(ids), ())] for ids in src]

    def step(self, tokens: NDArray[np.int64], state: list[list[Row]], k: int) -> tuple[Candidates, list[list[Row]]]:
        beams = len(state[0])
        assert tokens.shape == (len(state) * beams,)
        assert k <= VOCAB
        self.stepped.append(len(tokens))
        grid = tokens.reshape(len(state), beams).tolist()
        after = [
            [Row(row.src, (*row.prefix, token)) for row, token in zip(rows, row_tokens, strict=True)]
            for rows, row_tokens in zip(state, grid, strict=True)
        ]
        flat = [row for rows in after for row in rows]
        table = np.stack([self.row_log_probs(row) for row in flat])
        width = max(len(row.src) for row in flat) + 1
        looks = np.stack([alignment_of(row, width) for row in flat]) if self.has_attention else None
        if k == VOCAB:
            return whole_vocabulary(table, looks), after
        best = np.argsort(-table, axis=1, kind="stable")[:, :k]
        return Candidates(np.take_along_axis(table, best, axis=1), best, looks), after

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        return log_probs_of(row, self.seed, self.eos_bias)

    def select(self, state: list[list[Row]], rows: NDArray[np.int64]) -> list[list[Row]]:
        flat = [row for sentence in state for row in sentence]
        picked = [flat[int(row)] for row in rows]
        beams = len(picked) // len(state)
        chosen = [picked[at : at + beams] for at in range(0, len(picked), beams)]
        for before, now in zip(state, chosen, strict=True):
            assert {row.src for row in now} == {before[0].src}
        return chosen

    def keep(self, state: list[list[Row]], sentences: NDArray[np.int64]) -> list[list[Row]]:
        return [state[int(sentence)] for sentence in sentences]


NAMES = ("<pad>", "<unk>", "<s>", "</s>", "a", "b", "c")
A, B, C = 4, 5, 6
# What may follow what, in per cent; the rest of the vocabulary has nothing.
TREE = {
    (): {A: 50, B: 30, C: 20},
    (A,): {A: 40, B: 30, EOS: 30},
    (B,): {EOS: 90, C: 10},
    (C,): {EOS: 100},
    (A, A): {EOS: 60, B: 40},
}


class SmallTree(TableModel):
    """A model whose probabilities are those of the tree."""

    vocab_size = len(NAMES)

    def __init__(self) -> None:
        super().__init__(has_alignments=False)

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        found = np.full(self.vocab_size, -np.inf, dtype=np.float32)
        for token, percent in TREE.get(row.prefix[1:], {EOS: 100}).items():
            found[token] = math.log(percent / 100)
        return found

    def step(self, tokens: NDArray[np.int64], state: Any, k: int) -> Any:
        candidates, after = super().step(tokens, state, 5)  # of so many the table knows the whole vocabulary
        rows = [row for each in after for row in each]
        table = np.stack([self.row_log_probs(row) for row in rows])
        if k == self.vocab_size:
            return whole_vocabulary(table, None), after
        best = np.argsort(-table, axis=1, kind="stable")[:, :k]
        return candidates._replace(log_probs=np.take_along_axis(table, best, axis=1), tokens=best), after


class Found(NamedTuple):
    """One translation found by brute force."""

    tokens: tuple[int, ...]
    log_prob: float
    truncated: bool


def everything(model: TableModel, src: tuple[int, ...], limit: int) -> Iterator[Found]:
    """Every translation of up to ``limit`` tokens, EOS included; those without EOS are truncated."""
    level: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for length in range(1, limit + 1):
        longer = []
        for tokens, so_far in level:
            log_probs = model.row_log_probs(Row(src, (BOS, *tokens)))
            for token in range(VOCAB):
                log_prob = so_far + float(log_probs[token])
                if token == EOS:
                    yield Found(tokens, log_prob, truncated=False)
                else:
                    longer.append(((*tokens, token), log_prob))
                    if length == limit:
                        yield Found((*tokens, token), log_prob, truncated=True)
        level = longer


def keeps(found: Found, src: tuple[int, ...], options: OutputOptions, prefix: tuple[int, ...] = ()) -> bool:
    """Whether a translation begins with the prefix and, from there on, breaks none of the constraints."""
    written = found.tokens if found.truncated else (*found.tokens, EOS)
    if written[: len(prefix)] != prefix:
        return False
    if not found.truncated and len(written) < options.lengths(len(src)).least:
        return False
    n = options.no_repeat_ngram
    for end in range(len(prefix) + 1, len(found.tokens) + 1):
        if found.tokens[end - 1] in options.banned:
            return False
        if n and end > n and found.tokens[end - n : end] in [found.tokens[at : at + n] for at in range(end - n)]:
            return False
    return True


def score_of(found: Found, src: tuple[int, ...], options: SearchOptions) -> float:
    """The score by its definition, with the attention of every step."""
    written = found.tokens if found.truncated else (*found.tokens, EOS)
    norm = len(written) if options.length_norm == "power" else (5 + len(written)) / 6
    score = found.log_prob / norm**options.length_penalty
    looks = [alignment_of(Row(src, (BOS, *written[:at])), len(src) + 1) for at in range(len(written))]
    for share in np.sum(looks, axis=0, dtype=np.float64):
        score += options.coverage_penalty * np.log(min(share, 1.0))
    return score


def brute_force(
    model: TableModel, src: tuple[int, ...], options: SearchOptions, prefix: tuple[int, ...] = ()
) -> list[Found]:
    """The n best translations: finished ones by score, then truncated ones."""

    def rank(found: Found) -> tuple[bool, float]:
        return found.truncated, -score_of(found, src, options)

    limit = max(options.lengths(len(src)).most, len(prefix) + 1)
    allowed = [found for found in everything(model, src, limit) if keeps(found, src, options, prefix)]
    return sorted(allowed, key=rank)[: options.n_best]
