"""State of an ONNX step function: the batch in the graph, and the sentences in it that are still searched."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import BundleError
from softsearch.runtime.candidates import Words
from softsearch.runtime.manifest import DECODER_STEP

_COMPACT_BELOW = 0.75  # of the slots or of the sentences: dropping the others is worth a copy


class OnnxState(NamedTuple):
    """State of a batch's hypotheses; never changed in place.

    Sentences that ended stay in the batch, and what the graph computes for them is ignored, until enough have ended
    for a copy without them.
    """

    src_mask: NDArray[np.bool_]  # [batch, src_len]
    memory: tuple[NDArray[Any], ...]  # axis 0 = batch
    cache: tuple[NDArray[Any], ...]  # [batch, previous beams, ...], and [batch, ...] of the slots
    parents: NDArray[np.int64]  # [batch, beams] into the previous beams: how the next step reorders the caches
    position: int  # tokens read so far
    words: Words | None  # None: the whole vocabulary
    live: NDArray[np.int64]  # [sentences] the places in the batch of those that are searched

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
        """Keeps, or repeats, only these sentences."""
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
        """Drops the slots that no hypothesis sees; there are many, because a beam's hypotheses share most ancestors."""
        if self.parents.shape[1] == 1:
            return self
        bias, *slots = self.cache
        shapes = [values.shape for values in slots]
        if len({*shapes}) != 1 or (bias.ndim, len(shapes[0]), *shapes[0][2:3]) != (3, 4, bias.shape[-1]):
            raise BundleError(
                f"{DECODER_STEP}: next_slots came with the axes {[*map(list, shapes)]}, expected 4, the same for all, "
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
