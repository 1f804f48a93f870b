"""Copying of text that the vocabulary cannot write, in place of UNK in translations."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from softsearch.runtime.system import BATCH_TOKENS, System
from softsearch.runtime.translation import Candidate
from softsearch.search.forced_decoding import forced_alignments
from softsearch.search.terms import joins
from softsearch.text.keep import Kept
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import UNK


def fill_placeholders(system: System, candidates: Sequence[Candidate], kept: Sequence[Sequence[Kept]]) -> list[str]:
    """The texts of translations with what each of them is to copy.

    Several such texts in a sentence go where they get the most attention, or keep their order if the model has no
    attention.
    """
    filled, several = [each.text for each in candidates], [number for number, each in enumerate(kept) if len(each) > 1]
    matrices = None
    if several and system.step_fn.has_attention:
        src, tgt = zip(*((candidates[n].part.ids, candidates[n].hypothesis.tokens) for n in several), strict=True)
        matrices = forced_alignments(system.step_fn, src, tgt, batch_tokens=BATCH_TOKENS)
    attention = dict(zip(several, matrices or [], strict=False))
    for number, (candidate, each) in enumerate(zip(candidates, kept, strict=True)):
        source, found = candidate.part.text, candidate.hypothesis
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


def set_apart(text: str, source: str, kept: Sequence[Kept]) -> str:
    """Puts a space between a translation's copied text and an adjacent word that it does not touch in the source.

    A word inside a longer one is not the copied text, so only edges without letters are compared.
    """
    for each in dict.fromkeys(one.text for one in kept):
        places = [one for one in kept if one.text == each]
        before = not joins(each[0]) and not any(joins_at(source, one.begin - 1) for one in places)
        behind = not joins(each[-1]) and not any(joins_at(source, one.end) for one in places)
        parts = text.split(each)
        text = parts[0]
        for part in parts[1:]:
            text += (
                " " * (before and joins_at(text, len(text) - 1)) + each + " " * (behind and joins_at(part, 0)) + part
            )
    return text


def joins_at(text: str, at: int) -> bool:
    """Tells whether a text has a letter or digit at an index that joins its neighbours to words."""
    return 0 <= at < len(text) and joins(text[at])


def _filled(tokenizer: SentencePieceTokenizer, source: str, tokens: Sequence[int], fillings: dict[int, Kept]) -> str:
    """The text of tokens with the fillings, keyed by token index; they stand apart from words as in the source."""
    text, touches = "", True
    for place, run in groupby(tokenizer.text_order(tokens), lambda at: at if at in fillings else None):
        if place is not None:
            kept = fillings[place]
            stands_apart = joins_at(text, len(text) - 1) and not joins_at(source, kept.begin - 1)
            has_space = source[: kept.begin][-1:].isspace() and not text.endswith(" ")
            text += " " * (stands_apart or has_space) + kept.text + " " * source[kept.end :][:1].isspace()
            touches = joins_at(source, kept.end)
            continue
        ids = [tokens[at] for at in sorted(run)]  # in the model's order, as the tokenizer expects
        part = tokenizer.decode(ids)
        starts_word = tokenizer.pieces(ids)[0].startswith("\u2581")  # a space that decoding drops
        has_space = (starts_word or (not touches and joins_at(part, 0))) and not text.endswith(" ")
        text, touches = text + " " * has_space + part, True
    return text.strip(" ")
