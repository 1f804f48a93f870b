"""Erasure: what a decoder loses if it cannot attend to a source word, or if its encoder read another word."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsearch.data import pad
from softsearch.evaluation import HeldOutText
from softsearch.extras.claims.analyses.aligners import read_aligned
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resampled_ratio
from softsearch.models import Seq2Seq
from softsearch.text import UNK
from softsearch.text.parts import with_eos, word_starts

_SEED = 1
Word = tuple[int, ...]  # token ids


def erasures(inspected: Inspected, text: HeldOutText, cache_dir: Path, *, sentences: int) -> Iterator[dict[str, Any]]:
    """Yields rows of the loss of log p, in nats per target word, when one source word is erased.

    If its ``annotation`` is erased, the decoder cannot attend to it, but other annotations are unchanged; if the
    ``word`` is erased, the encoder reads another word of the text, so no annotation contains it; with ``both``, the
    decoder cannot attend to that other word either, and what this costs more than the ``annotation`` alone is what the
    other annotations say of the erased word. Words that no other can replace are left out. ``target`` distinguishes
    words ``linked`` to it by the gold alignments from all others.
    """
    text, gold = read_aligned(inspected, text, cache_dir)
    sides = [side[:sentences] for side in text.encode(inspected.tokenizers)]
    starts = [
        [word_starts(tokenizer.pieces(with_eos(ids)), whole_words=tokenizer.has_words) for ids in side]
        for tokenizer, side in zip(inspected.tokenizers, sides, strict=True)
    ]
    words = [  # of the sources, except EOS
        [tuple(ids[a:b]) for a, b in pairwise(own)] for ids, own in zip(sides[0], starts[0], strict=True)
    ]
    sums: dict[tuple[str, str], NDArray[np.float64]] = defaultdict(lambda: np.zeros((2, len(words))))  # drops, pairs
    for index, others in enumerate(drawn_words(words)):
        src, tgt = (np.asarray(side[index]) for side in sides)
        read = {number: other for number, other in enumerate(others) if other is not None}
        changes = {starts[0][index][number]: other for number, other in read.items()}
        for erased, drops in erased_log_probs(inspected.model, pad([src]), pad([tgt], bos=True), changes).items():
            by_word = np.add.reduceat(drops.numpy(), starts[1][index], axis=1)[:, :-1]  # [changes, tgt words]
            links = product(read, range(by_word.shape[1]))
            for link, drop in zip(links, by_word.flat, strict=True):
                target = "linked" if link in gold[index].possible else "other"
                sums[erased, target][:, index] += drop, 1
    for (erased, target), values in sums.items():
        yield {"erased": erased, "target": target, **resampled_ratio("drop", *values)}


def drawn_words(sources: Sequence[Sequence[Word]]) -> list[list[Word | None]]:
    """Returns another word for each word of the sources: one of them with as many pieces, or None if there is none.

    Frequent words are drawn more often, unknown ones never. The seed is fixed: all models read the same words.
    """
    by_length, rng = defaultdict[int, list[Word]](list), np.random.default_rng(_SEED)
    for word in chain.from_iterable(sources):
        if UNK not in word:
            by_length[len(word)].append(word)

    def drawn(word: Word) -> Word | None:
        others = [other for other in by_length[len(word)] if other != word]
        return others[rng.integers(len(others))] if others else None

    return [[drawn(word) for word in source] for source in sources]


@torch.no_grad()
def erased_log_probs(model: Seq2Seq, src: Tensor, tgt: Tensor, changes: Mapping[int, Word]) -> dict[str, Tensor]:
    """Returns each target token's loss of log p ``[changes, tgt_len]``, by what is erased as in ``erasures``.

    ``src`` is ``[1, src_len]`` with EOS, ``tgt`` ``[1, tgt_len + 1]`` with BOS and EOS; ``changes`` are the words
    that the encoder reads instead, by the position of their first token.
    """
    shape = (1 + len(changes), src.shape[1])  # the first row erases nothing
    erased, changed = torch.zeros(shape, dtype=torch.bool), src.repeat(shape[0], 1)
    for row, (start, word) in enumerate(changes.items(), 1):
        part = slice(start, start + len(word))
        erased[row, part], changed[row, part] = True, torch.tensor(word)
    encoded, other = model.read_source(src.expand(shape)), model.read_source(changed)
    states = {
        "annotation": model.decoder.init_state(encoded._replace(mask=encoded.mask & ~erased)),
        "word": model.decoder.init_state(other),
        "both": model.decoder.init_state(other._replace(mask=other.mask & ~erased)),
    }
    read, targets = tgt[:, :-1].expand(len(erased), -1), tgt[:, 1:].expand(len(erased), -1)
    drops = {}
    for name, state in states.items():
        log_probs = model.decoder(read, state).log_softmax(-1).gather(-1, targets[..., None])[..., 0]
        drops[name] = log_probs[0] - log_probs[1:]
    return drops
