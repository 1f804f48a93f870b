"""Alignment error rate against alignments made by people (Och & Ney 2003, Computational Linguistics 29(1))."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from softsearch.errors import CorpusError
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.word_alignment import Link, Tokenizers, align, links, reference_sentences
from softsearch.search.interface import StepFunction
from softsearch.text.corpus import read_lines

_NAACL = re.compile(r"(\d+) (\d+) (\d+)(?: ([SP]))?(?: (?:0|1|0?\.\d+|1\.0+))?")
_PHARAOH = re.compile(r"(\d+)([-?])(\d+)")
_FORMATS = "a line of links as in '0-0 1?2' (Pharaoh), or 'sentence source target S|P' (NAACL)"


class Gold(NamedTuple):
    """The links of one sentence pair."""

    sure: frozenset[Link]
    possible: frozenset[Link]  # the sure ones too


def reference_error_rate(
    step_fn: StepFunction,
    tokenizers: Tokenizers,
    gold: Sequence[Gold],
    text: HeldOutText,
) -> float | None:
    """The alignment error rate of a model that is made to write the references; None without attention."""
    alignments = align(step_fn, tokenizers, *reference_sentences(tokenizers, text), units="words")
    return None if alignments is None else alignment_error_rate([links(a) for a in alignments], gold)


def alignment_error_rate(predicted: Sequence[Collection[Link]], gold: Sequence[Gold]) -> float:
    """``1 - (|A and S| + |A and P|) / (|A| + |S|)`` over all sentences together.

    Args:
        predicted: the links A of each sentence.
        gold: S and P of each, as many.

    Returns:
        0 (A holds all sure links, and otherwise possible ones alone) to 1.

    Raises:
        CorpusError: there is no link at all.
    """
    hits = size = 0
    for pairs, (sure, possible) in zip(predicted, gold, strict=True):
        distinct = set(pairs)
        hits += len(distinct & sure) + len(distinct & possible)
        size += len(distinct) + len(sure)
    if not size:
        raise CorpusError("neither the model nor the gold alignments have a link; look at the gold file")
    return 1 - hits / size


def read_gold(path: Path, lengths: Sequence[tuple[int, int]], *, first: int) -> list[Gold]:
    """Reads gold alignments in the format of the NAACL 2003 shared task (Mihalcea & Pedersen 2003) or of Pharaoh.

    NAACL: ``1 2 3 S``, the numbers of a sentence and of two words, from 1, then ``P`` (possible) or ``S``, the default,
    then perhaps a confidence. Links with word 0, which say that a word has no partner, are left out. A sentence
    without lines has no links. Pharaoh: a line for each sentence, ``-`` is sure and ``?`` possible.

    Args:
        path: the file.
        lengths: words of the source and of the target of each sentence.
        first: the number of the first word in Pharaoh's format, 0 or 1.

    Raises:
        CorpusError: the file cannot be read, or a line is not of the format, or of a word that is not there.
    """
    lines = list(read_lines(path))
    beginning = next((line.split() for line in lines if line.strip()), [])
    if beginning and all(map(_PHARAOH.fullmatch, beginning)):
        return _read_pharaoh(path, lines, lengths, first)
    if beginning and _NAACL.fullmatch(" ".join(beginning)):
        return _read_naacl(path, lines, lengths)
    raise CorpusError(f"{path} begins with {' '.join(beginning)[:60]!r}, expected {_FORMATS}")


def _read_pharaoh(path: Path, lines: list[str], lengths: Sequence[tuple[int, int]], first: int) -> list[Gold]:
    if len(lines) != len(lengths):
        raise CorpusError(f"{path} has {len(lines)} lines, the test set has {len(lengths)}; expected as many of each")
    gold = []
    for number, (line, words) in enumerate(zip(lines, lengths, strict=True), start=1):
        sure, possible = set(), set()
        for text in line.split():
            match = _PHARAOH.fullmatch(text)
            if match is None:
                raise CorpusError(f"{path}:{number} has {text[:60]!r}, expected {_FORMATS}")
            link = int(match[1]) - first, int(match[3]) - first
            advice = f"gold_first={1 - first} says that words are numbered from {1 - first}"
            _check(f"{path}:{number}", text, link, words, advice)
            possible.add(link)
            if match[2] == "-":
                sure.add(link)
        gold.append(Gold(frozenset(sure), frozenset(possible)))
    return gold


def _read_naacl(path: Path, lines: list[str], lengths: Sequence[tuple[int, int]]) -> list[Gold]:
    sure: list[set[Link]] = [set() for _ in lengths]
    possible: list[set[Link]] = [set() for _ in lengths]
    for number, line in enumerate(lines, start=1):
        text = " ".join(line.split())
        match = _NAACL.fullmatch(text)
        if match is None:
            if not text:
                continue
            raise CorpusError(f"{path}:{number} is {text[:60]!r}, expected 'sentence source target S|P'")
        sentence, src, tgt = (int(match[group]) for group in (1, 2, 3))
        if not 1 <= sentence <= len(lengths):
            raise CorpusError(
                f"{path}:{number} is of sentence {sentence}, expected 1 to {len(lengths)}; is it of this test set?"
            )
        if src and tgt:
            _check(f"{path}:{number}", text, (src - 1, tgt - 1), lengths[sentence - 1], "is it of this test set?")
            possible[sentence - 1].add((src - 1, tgt - 1))
            if match[4] != "P":
                sure[sentence - 1].add((src - 1, tgt - 1))
    return [Gold(frozenset(s), frozenset(p)) for s, p in zip(sure, possible, strict=True)]


def _check(where: str, text: str, link: Link, words: tuple[int, int], advice: str) -> None:
    if not all(0 <= index < count for index, count in zip(link, words, strict=True)):
        raise CorpusError(
            f"{where} has the link {text!r}, but the source has {words[0]} words and the target {words[1]}; {advice}"
        )
