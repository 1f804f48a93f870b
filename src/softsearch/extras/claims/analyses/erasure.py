"""Erasure: what a decoder loses if it cannot attend to a source word, or if its encoder did not read the word."""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsearch.data import pad
from softsearch.evaluation import HeldOutText
from softsearch.extras.claims.analyses.aligners import read_aligned
from softsearch.extras.claims.inspected import Inspected
from softsearch.models import Seq2Seq
from softsearch.text import UNK
from softsearch.text.parts import with_eos, word_starts


def erasures(inspected: Inspected, text: HeldOutText, cache_dir: Path, *, sentences: int) -> Iterator[dict[str, Any]]:
    """Yields rows of the loss of log p, in nats per target word, when one source word is erased.

    If its ``annotation`` is erased, the decoder cannot attend to it, but other annotations are unchanged; if the
    ``word`` is erased, the encoder reads an unknown word, so no annotation contains it. ``target`` distinguishes words
    ``linked`` to it by the gold alignments from all others.
    """
    model, found = inspected.model, dict[tuple[str, str], list[float]]()
    text, gold = read_aligned(inspected, text, cache_dir)
    pairs = zip(*text.encode(inspected.tokenizers), strict=True)
    for links, pair in islice(zip(gold, pairs, strict=True), sentences):
        src, tgt = (np.asarray(ids) for ids in pair)
        src_starts, tgt_starts = (
            word_starts(tokenizer.pieces(with_eos(ids)), whole_words=tokenizer.has_words)
            for tokenizer, ids in zip(inspected.tokenizers, pair, strict=True)
        )
        words = [range(*ends) for ends in pairwise(src_starts)]  # except EOS
        for erased, drops in erased_log_probs(model, pad([src]), pad([tgt], bos=True), words).items():
            by_word = np.add.reduceat(drops.numpy(), tgt_starts, axis=1)[:, :-1]  # [src words, tgt words]
            for link, drop in np.ndenumerate(by_word):
                found.setdefault((erased, "linked" if link in links.possible else "other"), []).append(float(drop))
    for (erased, target), values in found.items():
        yield {"erased": erased, "target": target, "drop": float(np.mean(values))}


@torch.no_grad()
def erased_log_probs(model: Seq2Seq, src: Tensor, tgt: Tensor, words: Sequence[range]) -> dict[str, Tensor]:
    """Returns each target token's loss of log p ``[words, tgt_len]``, by what is erased: ``annotation`` or ``word``.

    ``src`` is ``[1, src_len]`` with EOS, ``tgt`` ``[1, tgt_len + 1]`` with BOS and EOS; ``words`` are the positions of
    source tokens to erase together.
    """
    erased = torch.zeros(1 + len(words), src.shape[1], dtype=torch.bool)  # the first row erases nothing
    for row, word in enumerate(words, 1):
        erased[row, word] = True
    encoded = model.read_source(src.expand(erased.shape))
    states = {
        "annotation": model.decoder.init_state(encoded._replace(mask=encoded.mask & ~erased)),
        "word": model.encode(torch.where(erased, UNK, src)),
    }
    read, targets = tgt[:, :-1].expand(len(erased), -1), tgt[:, 1:].expand(len(erased), -1)
    drops = {}
    for name, state in states.items():
        log_probs = model.decoder(read, state).log_softmax(-1).gather(-1, targets[..., None])[..., 0]
        drops[name] = log_probs[0] - log_probs[1:]
    return drops
