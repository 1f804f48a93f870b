"""Noise on stored pairs, whose ids are decoded, changed as text and encoded again."""

from collections.abc import Sequence

import numpy as np

from softsearch.data.dataset import MAX_GROWTH, Ids, Redraw
from softsearch.text.noise import Noise
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.vocabulary import UNK


class NoisyText:
    """Adds noise to the pairs of a batch, as a pure function of the seed and the draws.

    A pair stays as it is stored where its text has parts that the vocabulary lacks, before or after, or where it would
    take its batch beyond ``MAX_GROWTH`` times the budget of ``tokens``.

    Args:
        noise: what is done to text.
        tokenizers: of the source and the target.
        tokens: budget of a batch.
        seed: of the run.
        then: applied to the noisy pairs, for example to draw their segmentation.
    """

    def __init__(
        self, noise: Noise, tokenizers: Tokenizers, *, tokens: int, seed: int, then: Redraw | None = None
    ) -> None:
        self.noise, self.tokenizers, self.tokens, self.seed, self.then = noise, tokenizers, tokens, seed, then

    def __call__(self, draws: Sequence[int], pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[Ids, Ids]]:
        """Returns the pairs of a batch with the noise of their draws."""
        noisy = list(pairs)
        if places := [place for place, pair in enumerate(pairs) if not any((ids == UNK).any() for ids in pair)]:
            src, tgt = self.tokenizers
            sides = ((pairs[i][0].tolist(), pairs[i][1].tolist()) for i in places)
            texts = [(src.decode(one, joined=False), tgt.decode(other, joined=False)) for one, other in sides]
            changed = self.noise(texts, [draws[i] for i in places], self.seed)
            most = MAX_GROWTH * self.tokens // len(draws) - 1  # the rest is EOS
            for place, before, after in zip(places, texts, changed, strict=True):
                if before != after:
                    noisy[place] = self._encoded(pairs[place], before, after, most)
        return noisy if self.then is None else self.then(draws, noisy)

    def _encoded(
        self, pair: tuple[Ids, Ids], before: tuple[str, str], after: tuple[str, str], most: int
    ) -> tuple[Ids, Ids]:
        sides = []
        for tokenizer, ids, old, new in zip(self.tokenizers, pair, before, after, strict=True):
            encoded = ids if new == old else np.asarray(tokenizer.encode(new), dtype=ids.dtype)
            if len(encoded) > most or (encoded == UNK).any():
                return pair
            sides.append(encoded)
        return sides[0], sides[1]
