"""Candidates of an ONNX step, from the whole vocabulary or from a shortlist."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.runtime.manifest import DECODER_STEP
from softsearch.search.interface import Candidates, whole_vocabulary
from softsearch.search.shortlist import AllowedTokens, spread

BLOCK = 64  # a graph searches the vocabulary, or a shortlist, by blocks of as many words


class Words(NamedTuple):
    """A batch's shortlist in the form that the graph reads."""

    tokens: NDArray[np.int64]  # [words] ids, with 0 behind them to the next multiple of 64
    used: int  # of the ids, without that padding
    bias: NDArray[np.float32]  # [sentences, 1, words] 0 where a sentence may use a word, else -inf


def read_words(allowed: AllowedTokens) -> Words:
    """Converts a batch's allowed words to the form that the graph reads."""
    sentences, count = allowed.mask.shape
    padding = -count % BLOCK
    bias = np.where(np.pad(allowed.mask, ((0, 0), (0, padding))), np.float32(0), np.float32(-np.inf))
    return Words(np.pad(allowed.tokens, (0, padding)), count, bias.reshape(sentences, 1, -1))


def read_candidates(outputs: dict[str, NDArray[Any]], words: Words | None, vocab_size: int) -> Candidates:
    """Reads the candidates of a step from its outputs ``[rows, ...]``; ``words`` is its shortlist, if it has one.

    Raises:
        BundleError: a candidate is not an id, or not one of the shortlist's places.
    """
    alignments = outputs.get("alignments")
    if "all_log_probs" in outputs:
        by_id = outputs["all_log_probs"]
        if words is not None:
            by_id = spread(by_id, words.tokens[: words.used], vocab_size)
        return whole_vocabulary(by_id, alignments)
    log_probs, tokens = outputs["log_probs"], outputs["candidates"]
    most = vocab_size if words is None else words.tokens.size
    if tokens.min() < 0 or tokens.max() >= most:
        raise BundleError(
            f"{DECODER_STEP}: candidates holds numbers from {tokens.min()} to {tokens.max()}, expected 0 to "
            f"{most - 1}; export the bundle again"
        )
    if words is not None:
        return Candidates(log_probs, words.tokens[tokens], alignments)
    if tokens.shape[1] < vocab_size:
        return Candidates(log_probs, tokens, alignments)
    by_id = np.full_like(log_probs, -np.inf)  # of a graph without all_log_probs
    np.put_along_axis(by_id, tokens, log_probs, axis=1)
    return whole_vocabulary(by_id, alignments)
