"""The 300 pairs of Multi30k's validation set whose words were aligned by reading (benchmarks/alignments/README.md)."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from softsearch.errors import CorpusError
from softsearch.evaluation.alignment_error import Gold, read_gold
from softsearch.text.corpus import read_lines

LINKS = Path(__file__).with_name("multi30k_val.links")  # Pharaoh: sure 0-0, possible 0?0; English before German
PAIRS = Path(__file__).with_name("multi30k_val.pairs")  # for each line of LINKS: number of the pair, from 1, and hash
Lines = tuple[list[str], list[str]]  # sources and targets


def aligned_captions(val: Lines) -> tuple[Lines, list[Gold]]:
    """Returns the aligned pairs of a validation set, English and German, and their links.

    Raises:
        CorpusError: a sentence is another one than was aligned.
    """
    found: Lines = ([], [])
    for number, expected in (line.split() for line in read_lines(PAIRS)):
        pair = [side[int(number) - 1] if int(number) <= len(side) else "" for side in val]
        if fingerprint(pair) != expected:
            raise CorpusError(
                f"line {number} of the validation set is {' ||| '.join(pair)[:80]!r}, which is not the pair that was "
                "aligned; take the English-German captions of Multi30k, lower-cased and tokenised"
            )
        for side, line in zip(found, pair, strict=True):
            side.append(line)
    lengths = [(len(src.split()), len(tgt.split())) for src, tgt in zip(*found, strict=True)]
    return found, read_gold(LINKS, lengths, first=0)


def fingerprint(pair: Sequence[str]) -> str:
    """Returns what PAIRS has of a sentence pair."""
    return hashlib.sha256("\t".join(pair).encode()).hexdigest()[:16]
