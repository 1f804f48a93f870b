"""Compares word alignments by attention, by each head of a Transformer's decoder, and by IBM Model 1 with gold ones.

Also measures how long after a source word a model without attention generates its translation.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from softsearch.data import Joined, ParallelSource, train_lexicon
from softsearch.errors import CorpusError
from softsearch.evaluation import Gold, HeldOutText, TorchStepFunction, align, encode_sentences, links, read_gold
from softsearch.evaluation.parts import TorchState, alignment_counts, read_split
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resampled_ratio
from softsearch.extras.claims.verdict import Row
from softsearch.models import MultiHeadAttention, Seq2Seq
from softsearch.search import Candidates, StepFunction
from softsearch.text import read_lines, read_parallel

LINKS = Path(__file__).with_name("multi30k_val.links")  # Pharaoh: sure 0-0, possible 0?0; English before German
PAIRS = Path(__file__).with_name("multi30k_val.pairs")  # for each line of LINKS: number of the pair, from 1, and hash
Lines = tuple[list[str], list[str]]  # sources and targets
_FIRST = 3  # words


def alignment_errors(inspected: Inspected, text: HeldOutText, cache_dir: Path) -> Iterator[dict[str, Any]]:
    """Rows of alignment error rates on the references, by ``aligner``.

    Aligners are attention, single heads of a Transformer, and IBM Model 1 trained on the training text.

    Raises:
        CorpusError: there are no gold alignments.
    """
    text, gold = read_aligned(inspected, text, cache_dir)
    model = inspected.model
    step_fns: dict[str, StepFunction] = {"attention": inspected.step_fn}
    for number, layer in enumerate(model.decoder.source_attention(), 1):
        heads = range(layer.num_heads if isinstance(layer, MultiHeadAttention) else 0)
        step_fns |= {f"layer {number} head {head + 1}": HeadStepFunction(model, number - 1, head) for head in heads}
    src, tgt = (encode_sentences(t, side) for t, side in zip(inspected.tokenizers, text.lines, strict=True))
    for name, step_fn in step_fns.items():
        forced = align(step_fn, inspected.tokenizers, src, tgt, units="words") or []
        yield {"aligner": name, **_errors([links(each) for each in forced], gold)}
    train = tuple([*read_lines(path)] for path in inspected.source.files(cache_dir)["train"])
    yield {"aligner": "IBM 1", **_errors(model_1_links(cast(Lines, train), text.lines), gold)}


def _errors(predicted: Sequence[Collection[tuple[int, int]]], gold: Sequence[Gold]) -> Row:
    """Returns the alignment error rate, and that of resampled sentences."""
    hits, sizes = np.array(alignment_counts(predicted, gold)).T
    return resampled_ratio("aer", sizes - hits, sizes)


def read_aligned(inspected: Inspected, text: HeldOutText, cache_dir: Path) -> tuple[HeldOutText, list[Gold]]:
    """Reads sentence pairs and their gold links.

    They are the test set of a generated corpus, also if its sentences are joined, or ``aligned_captions``.

    Raises:
        CorpusError: there are none.
    """
    source: ParallelSource = inspected.source
    sizes: Sequence[int] = [1]
    if isinstance(source, Joined):
        sizes, source = source.held_out, source.source
    files = source.files(cache_dir)["test"]
    path = files[0].with_suffix(".links")
    if not path.is_file():
        val = read_split(source, "val", cache_dir, "use data=spellout or data=multi30k")
        (sources, references), gold = aligned_captions(val.lines)
        return replace(val, sources=sources, references=references), gold
    corpus = read_parallel(*files, keep_empty=True)
    lengths = [(len(x.split()), len(y.split())) for x, y in zip(corpus.src, corpus.tgt, strict=True)]
    return text, joined_links(read_gold(path, lengths, first=0), lengths, sizes)[: len(text.sources)]


def aligned_captions(val: Lines) -> tuple[Lines, list[Gold]]:
    """Returns 300 pairs of Multi30k's validation set, English and German, whose words were aligned by reading.

    How: benchmarks/alignments/README.md.

    Raises:
        CorpusError: ``val`` is another text.
    """
    found: Lines = ([], [])
    for number, expected in (line.split() for line in read_lines(PAIRS)):
        pair = [side[int(number) - 1] if int(number) <= len(side) else "" for side in val]
        if hashlib.sha256("\t".join(pair).encode()).hexdigest()[: len(expected)] != expected:
            raise CorpusError(
                f"line {number} of the validation set is {' ||| '.join(pair)[:80]!r}, which is not the pair that was "
                "aligned; alignments are known for data=spellout, and for data=multi30k from en to de, lower-cased"
            )
        for side, line in zip(found, pair, strict=True):
            side.append(line)
    lengths = [(len(src.split()), len(tgt.split())) for src, tgt in zip(*found, strict=True)]
    return found, read_gold(LINKS, lengths, first=0)


def joined_links(gold: Sequence[Gold], lengths: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[Gold]:
    """Returns the links of sentences joined like in ``softsearch.data.corpora.joined.join``.

    ``lengths`` are the numbers of words of sources and targets.
    """
    rest, joined = iter(zip(gold, lengths, strict=True)), list[Gold]()
    for size in cycle(sizes):
        taken = list(islice(rest, size))
        if len(taken) < size:
            break
        whole, i, j = Gold(set(), set()), 0, 0
        for links_of, (src_len, tgt_len) in taken:
            for together, own in zip(whole, links_of, strict=True):
                together |= {(src + i, tgt + j) for src, tgt in own}
            i, j = i + src_len, j + tgt_len
        joined.append(whole)
    return joined


class HeadStepFunction(TorchStepFunction):
    """A Transformer whose alignments are those of one head; layers and heads are numbered from 0."""

    def __init__(self, model: Seq2Seq, layer: int, head: int) -> None:
        super().__init__(model)
        self.attention = cast(MultiHeadAttention, model.decoder.source_attention()[layer])
        self.head = head

    def step(self, tokens: NDArray[np.int64], state: TorchState, k: int) -> tuple[Candidates, TorchState]:
        seen: list[Tensor] = []  # [sentences, heads, beams, src_len]

        def recording(*inputs: Tensor) -> tuple[Tensor, Tensor]:
            output, weights = MultiHeadAttention.with_weights(self.attention, *inputs)
            seen.append(weights)
            return output, weights

        self.attention.with_weights = recording  # type: ignore[method-assign, assignment]
        try:
            candidates, after = super().step(tokens, state, k)
        finally:
            del self.attention.with_weights
        return candidates._replace(alignments=seen[0][:, self.head].flatten(0, 1).cpu().numpy()), after


def model_1_links(train: Lines, test: Lines) -> list[list[tuple[int, int]]]:
    """Returns the links of IBM Model 1: from each seen target word to the source word with the largest t(y | x)."""
    ids: tuple[dict[str, int], dict[str, int]] = ({}, {})
    src, tgt = (
        [np.array([own.setdefault(word, len(own)) for word in line.split()], dtype=np.int64) for line in side]
        for own, side in zip(ids, train, strict=True)
    )
    x, y, t = train_lexicon(src, tgt)
    lexicon = dict(zip(zip(x.tolist(), y.tolist(), strict=True), t.tolist(), strict=True))
    found = []
    for pair in zip(*test, strict=True):
        read, written = ([own.get(word, -1) for word in side.split()] for own, side in zip(ids, pair, strict=True))
        table = np.array([[lexicon.get((word, new), 0.0) for word in read] for new in written])
        found.append([(int(row.argmax()), index) for index, row in enumerate(table) if row.any()])
    return found


def word_distances(inspected: Inspected, text: HeldOutText, cache_dir: Path) -> Iterator[dict[str, Any]]:
    """Yields a row of mean distances of gold links, in words that are read or generated in between.

    The means are over all links (``mean``), the shortest link of each sentence (``minimal``, the minimal time lag of
    Sutskever et al. 2014, section 3.3), and the links of the ``first`` three target words.
    """
    backwards = inspected.tokenizers[0].reverse
    everything, minimal, first = list[int](), list[int](), list[int]()
    text, alignments = read_aligned(inspected, text, cache_dir)
    for gold, source in zip(alignments, text.sources, strict=True):
        length = len(source.split())
        found = {(i, j): (i if backwards else length - 1 - i) + 1 + j for i, j in gold.possible}
        everything += found.values()
        minimal += [min(found.values())] if found else []
        first += [distance for (_, j), distance in found.items() if j < _FIRST]
    yield {name: float(np.mean(each)) for name, each in (("mean", everything), ("minimal", minimal), ("first", first))}
