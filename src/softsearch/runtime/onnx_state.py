"""State of an ONNX step function, with the sentences still being searched, and the candidates of its steps."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.runtime.manifest import DECODER_STEP
from softsearch.search.interface import Candidates, whole_vocabulary

if TYPE_CHECKING:
    from softsearch.search.shortlist import AllowedTokens

BLOCK = 64  # a graph searches the vocabulary, or a shortlist, in blocks of this many words
_COMPACT_BELOW = 0.75  # live share of slots or sentences below which dropping the others is worth a copy


class Words(NamedTuple):
    """A batch's shortlist in the form that the graph reads."""

    tokens: NDArray[np.int64]  # [words] ids, padded with 0 to a multiple of 64
    used: int  # number of ids without padding
    bias: NDArray[np.float32]  # [sentences, 1, words] 0 where a sentence may use a word, else -inf


class OnnxState(NamedTuple):
    """State of a batch's hypotheses; never changed in place.

    Sentences that ended stay in the batch, and their results are ignored, until enough have ended to make a copy
    without them worthwhile.
    """

    src_mask: NDArray[np.bool_]  # [batch, src_len]
    memory: tuple[NDArray[Any], ...]  # axis 0 = batch
    cache: tuple[NDArray[Any], ...]  # [batch, previous beams, ...]; slots are [batch, ...]
    parents: NDArray[np.int64]  # [batch, beams] into the previous beams: how the next step reorders the caches
    position: int  # tokens read so far
    words: Words | None  # None: the whole vocabulary
    live: NDArray[np.int64]  # [sentences] batch indices of the sentences still being searched

    @property
    def _is_whole(self) -> bool:
        return len(self.live) == len(self.src_mask)

    def per_sentence(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Arranges values of rows, ``[sentences * beams]`` or ``[sentences * beams, 1]``, as ``[batch, beams]``."""
        values = values.reshape(len(self.live), -1)
        if self._is_whole:
            return values
        batch = np.zeros((len(self.src_mask), values.shape[1]), dtype=np.int64)
        batch[self.live] = values
        return batch

    def per_row(self, values: NDArray[Any]) -> NDArray[Any]:
        """Arranges values ``[batch, beams, ...]`` as ``[sentences * beams, -1]``."""
        own = values if self._is_whole else values[self.live]
        return own.reshape(own.shape[0] * own.shape[1], -1)

    def keep(self, sentences: NDArray[np.int64]) -> "OnnxState":
        """Keeps only these sentences, which may be repeated."""
        live = self.live[sentences]
        if len(live) > _COMPACT_BELOW * len(self.src_mask) and (np.diff(live) > 0).all():
            return self._replace(live=live)
        return OnnxState(
            src_mask=self.src_mask[live],
            memory=tuple(values[live] for values in self.memory),
            cache=tuple(values[live] for values in self.cache),
            parents=self.parents[live],
            position=self.position,
            words=self.words and self.words._replace(bias=self.words.bias[live]),
            live=np.arange(len(live)),
        )

    def without_dead_slots(self) -> "OnnxState":
        """Drops slots that no hypothesis sees; there are many, because a beam's hypotheses share most ancestors."""
        if self.parents.shape[1] == 1:
            return self
        bias, *slots = self.cache
        shapes = [values.shape for values in slots]
        if len({*shapes}) != 1 or (bias.ndim, len(shapes[0]), *shapes[0][2:3]) != (3, 4, bias.shape[-1]):
            raise BundleError(
                f"{DECODER_STEP}: next_slots has the axes {[*map(list, shapes)]}, expected 4, the same for all, "
                f"the third of {bias.shape[-1]}; export the bundle again"
            )
        sentences = np.arange(len(bias))[:, None]
        alive = (bias[sentences, self.parents] == 0).any(axis=1)  # [batch, slots]
        most = int(alive.sum(axis=1).max())
        if most > _COMPACT_BELOW * alive.shape[1]:
            return self
        # Sentences with fewer live slots keep dead ones, to which nothing attends.
        kept = np.argsort(~alive, axis=1, kind="stable")[:, :most]
        _, heads, before, width = shapes[0]
        rows = (sentences * heads + np.arange(heads))[:, :, None] * before + kept[:, None]  # [batch, heads, most]
        moved = (values.reshape(-1, width).take(rows, axis=0) for values in slots)
        return self._replace(cache=(np.take_along_axis(bias, kept[:, None], axis=2), *moved))


def read_words(allowed: "AllowedTokens") -> Words:
    """Converts a batch's allowed words to the form that the graph reads."""
    sentences, count = allowed.mask.shape
    padding = -count % BLOCK
    bias = np.where(np.pad(allowed.mask, ((0, 0), (0, padding))), np.float32(0), np.float32(-np.inf))
    return Words(np.pad(allowed.tokens, (0, padding)), count, bias.reshape(sentences, 1, -1))


def read_candidates(outputs: dict[str, NDArray[Any]], words: Words | None, vocab_size: int) -> Candidates:
    """Reads the candidates of a step from its outputs ``[rows, ...]``; ``words`` is its shortlist, if any.

    Raises:
        BundleError: a candidate is not an id, or not an index into the shortlist.
    """
    alignments = outputs.get("alignments")
    if "all_log_probs" in outputs:
        by_id = outputs["all_log_probs"]
        if words is not None:
            from softsearch.search.shortlist import spread

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
    by_id = np.full_like(log_probs, -np.inf)  # for a graph without all_log_probs
    np.put_along_axis(by_id, tokens, log_probs, axis=1)
    return whole_vocabulary(by_id, alignments)
