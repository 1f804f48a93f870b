"""Copying of text that the vocabulary cannot write, in place of UNK in translations."""

import re
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from softsearch.runtime.system import BATCH_TOKENS, System
from softsearch.search.forced_decoding import forced_alignments
from softsearch.search.interface import Hypothesis
from softsearch.text.keep import Kept
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import UNK


def fill_placeholders(
    system: System,
    sources: Sequence[str],
    src: Sequence[Sequence[int]],
    kept: Sequence[Sequence[Kept]],
    hypotheses: Sequence[Hypothesis],
    texts: Sequence[str],
) -> list[str]:
    """Puts the text to copy into the ``texts`` of translations, whose sources are given as text and as token ids.

    Several such texts in a sentence go where they get the most attention, or keep their order if the model has no
    attention.
    """
    filled, several = list(texts), [number for number, each in enumerate(kept) if len(each) > 1]
    matrices = None
    if several and system.step_fn.has_attention:
        tgt = [hypotheses[number].tokens for number in several]
        matrices = forced_alignments(system.step_fn, [src[n] for n in several], tgt, batch_tokens=BATCH_TOKENS)
    attention = dict(zip(several, matrices or [], strict=False))
    for number, (source, each, found) in enumerate(zip(sources, kept, hypotheses, strict=True)):
        if not each:
            continue
        rows = [place for place, token in enumerate(found.tokens) if token == UNK]
        fillings = dict(zip(rows, each, strict=False))
        if number in attention:
            chosen = _by_attention(system.tokenizers[0], source, each, attention[number][rows])
            fillings = {rows[index]: one for index, one in chosen.items()}
        filled[number] = _filled(system.tokenizers[1], source, found.tokens, fillings)
    return filled


def _by_attention(
    tokenizer: SentencePieceTokenizer, source: str, kept: Sequence[Kept], attention: NDArray[np.floating]
) -> dict[int, Kept]:
    """The text to copy for each UNK, by the UNK's number, from ``attention [UNKs, src_len]``."""
    spans = [(len(tokenizer.encode(source[: k.begin])), len(tokenizer.encode(source[: k.end]))) for k in kept]
    shares = np.stack([attention[:, begin : max(end, begin + 1)].sum(axis=1) for begin, end in spans], axis=1)
    chosen: dict[int, Kept] = {}
    for _ in range(min(shares.shape)):
        row, column = divmod(int(shares.argmax()), len(kept))
        chosen[row] = kept[column]
        shares[row], shares[:, column] = -1.0, -1.0
    return chosen


def _filled(tokenizer: SentencePieceTokenizer, source: str, tokens: Sequence[int], fillings: dict[int, Kept]) -> str:
    """The text of tokens with the fillings, keyed by token index; spaces around them are as in the source."""
    parts = []
    for place, run in groupby(tokenizer.text_order(tokens), lambda at: at if at in fillings else None):
        if place is not None:
            kept = fillings[place]
            before, after = source[: kept.begin][-1:], source[kept.end :][:1]
            parts.append(" " * before.isspace() + kept.text + " " * after.isspace())
            continue
        ids = [tokens[at] for at in sorted(run)]  # in the model's order, as the tokenizer expects
        space = " " * tokenizer.pieces(ids)[0].startswith("\u2581")  # dropped by decoding
        parts.append(space + tokenizer.decode(ids))
    return re.sub(" {2,}", " ", "".join(parts)).strip(" ")
