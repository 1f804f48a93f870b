"""Alignment error rate against gold alignments (Och & Ney 2003, Computational Linguistics 29(1))."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from softsearch.errors import CorpusError
from softsearch.text.corpus import read_lines

_NAACL = re.compile(r"(\d{1,9}) (\d{1,9}) (\d{1,9})(?: ([SP]))?(?: (?:0|1|0?\.\d+|1\.0+))?")
_PHARAOH = re.compile(r"(\d{1,9})([-?])(\d{1,9})")
Link = tuple[int, int]  # indices of a source and of a target word, from 0
_GoldLink = tuple[int, str, int, Link, bool]  # line number from 1, text, sentence from 0, link, is sure
_FORMATS = "a line of links such as '0-0 1?2' (Pharaoh), or 'sentence source target S|P' (NAACL)"


class Gold(NamedTuple):
    """The links of a sentence pair."""

    sure: set[Link]
    possible: set[Link]  # including sure links


def alignment_error_rate(predicted: Sequence[Collection[Link]], gold: Sequence[Gold]) -> float:
    """``1 - (|A and S| + |A and P|) / (|A| + |S|)`` over all sentences together, 0 (best) to 1.

    A are the predicted links, S the sure and P the possible gold links.

    Raises:
        CorpusError: there are no links at all.
    """
    counts = alignment_counts(predicted, gold)
    size = sum(size for _, size in counts)
    if not size:
        raise CorpusError("neither the model nor the gold alignments have any links; check the gold file")
    return 1 - sum(hits for hits, _ in counts) / size


def alignment_counts(predicted: Sequence[Collection[Link]], gold: Sequence[Gold]) -> list[tuple[int, int]]:
    """Returns ``|A and S| + |A and P|`` and ``|A| + |S|`` of each sentence, of whose sums the error rate is."""
    counts = []
    for pairs, (sure, possible) in zip(predicted, gold, strict=True):
        distinct = set(pairs)
        counts.append((len(distinct & sure) + len(distinct & possible), len(distinct) + len(sure)))
    return counts


def read_gold(path: Path, lengths: Sequence[tuple[int, int]], *, first: int) -> list[Gold]:
    """Reads gold alignments in the format of the NAACL 2003 shared task (Mihalcea & Pedersen 2003) or Pharaoh.

    NAACL: ``1 2 3 S``, the numbers of a sentence and of two words, from 1, then optionally ``S`` (sure, the default) or
    ``P`` (possible), and a confidence. Links with word 0, which mean that a word has no partner, are ignored. A
    sentence without lines has no links. Pharaoh: one line per sentence, ``-`` is sure and ``?`` possible.

    ``lengths`` are the numbers of words of sources and targets; ``first`` is the number of the first word in Pharaoh
    format, 0 or 1.

    Raises:
        CorpusError: the file cannot be read, a line has another format, or a link names a word that does not exist.
    """
    lines = list(read_lines(path))
    beginning = next((line.split() for line in lines if line.strip()), [])
    if beginning and all(map(_PHARAOH.fullmatch, beginning)):
        gold_links = _pharaoh_links(path, lines, len(lengths), first)
        advice = f"gold_first={1 - first} says that words are numbered from {1 - first}"
    elif beginning and _NAACL.fullmatch(" ".join(beginning)):
        gold_links, advice = _naacl_links(path, lines, len(lengths)), "is it for this test set?"
    else:
        raise CorpusError(f"{path} begins with {' '.join(beginning)[:60]!r}, expected {_FORMATS}")
    gold = [Gold(set(), set()) for _ in lengths]
    for number, text, sentence, link, is_sure in gold_links:
        words = lengths[sentence]
        if not all(0 <= index < count for index, count in zip(link, words, strict=True)):
            raise CorpusError(
                f"{path}:{number} has the link {text!r}, but the source has {words[0]} words and the target "
                f"{words[1]}; {advice}"
            )
        gold[sentence].possible.add(link)
        if is_sure:
            gold[sentence].sure.add(link)
    return gold


def _pharaoh_links(path: Path, lines: list[str], sentences: int, first: int) -> Iterator[_GoldLink]:
    if len(lines) != sentences:
        raise CorpusError(f"{path} has {len(lines)} lines, but the test set has {sentences}; expected equal numbers")
    for number, line in enumerate(lines, start=1):
        for text in line.split():
            match = _PHARAOH.fullmatch(text)
            if match is None:
                raise CorpusError(f"{path}:{number} has {text[:60]!r}, expected {_FORMATS}")
            yield number, text, number - 1, (int(match[1]) - first, int(match[3]) - first), match[2] == "-"


def _naacl_links(path: Path, lines: list[str], sentences: int) -> Iterator[_GoldLink]:
    for number, line in enumerate(lines, start=1):
        text = " ".join(line.split())
        match = _NAACL.fullmatch(text)
        if match is None:
            if not text:
                continue
            raise CorpusError(f"{path}:{number} is {text[:60]!r}, expected 'sentence source target S|P'")
        sentence, src, tgt = map(int, match.group(1, 2, 3))
        if not 1 <= sentence <= sentences:
            raise CorpusError(
                f"{path}:{number} is about sentence {sentence}, expected 1 to {sentences}; is it for this test set?"
            )
        if src and tgt:
            yield number, text, sentence - 1, (src - 1, tgt - 1), match[4] != "P"
