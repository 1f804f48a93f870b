"""Sentence pairs as token ids: memory-mapped from disk, resampled in every epoch on request, padded in batches."""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsearch.data.preparation.encode import read_array
from softsearch.data.preparation.store import Shards, Tokens
from softsearch.data.sampler import ShardRows
from softsearch.text.features import padded_features, read_features, with_features
from softsearch.text.noise import Noise
from softsearch.text.subword_sampling import SubwordSampler
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK
from softsearch.text.word_links import WordNumbers, link_weights

# A batch of sampled segmentations may exceed the budget by this factor. On Multi30k sentences grow by a fifth with
# BPE-dropout of 0.1 and by a third with unigram and 0.2, and the longest in a batch nearly doubles: nearly all fit.
MAX_GROWTH = 2
_CHUNK = 1 << 20  # lengths that are looked up together

Ids = NDArray[np.integer]
Redraw = Callable[[Sequence[int], Sequence[tuple[Ids, Ids]]], list[tuple[Ids, Ids]]]  # draws, a batch's pairs


class Batch(NamedTuple):
    """Padded sentence pairs."""

    src_tokens: Tensor  # [batch, src_len] int64, EOS at the end
    tgt_tokens: Tensor  # [batch, tgt_len + 1] int64, BOS at the start, EOS at the end
    src_features: Tensor | None = None  # [batch, src_len, dim] float32, 0 without a vector, if the data has any
    places: Tensor | None = None  # see target_places
    links: Tensor | None = None  # [batch, tgt_len, src_len] float32, for each token after BOS; rows sum to 1, or to 0

    def target_places(self) -> Tensor:
        """The indices of the real tokens in ``tgt_tokens[:, 1:]``, flattened: ``[tokens]`` int64.

        A dataset's batch includes them, because finding them on a GPU means waiting for it.
        """
        return find_real(self.tgt_tokens[:, 1:]) if self.places is None else self.places


def find_real(tokens: Tensor) -> Tensor:
    """Finds the tokens that are not PAD: their indices in the flattened ``[batch, len]``, ``[tokens]`` int64."""
    return (tokens != PAD).flatten().nonzero()[:, 0]


def pad(sentences: Sequence[Ids], *, bos: bool = False) -> Tensor:
    """Returns token ids without special tokens as ``[batch, len]`` int64 with EOS (and BOS), padded on the right."""
    first = int(bos)
    width = max(map(len, sentences)) + 1 + first
    padded = np.full((len(sentences), width), PAD, dtype=np.int64)
    if bos:
        padded[:, 0] = BOS
    for row, sentence in zip(padded, sentences, strict=True):
        row[first : first + len(sentence)] = sentence
        row[first + len(sentence)] = EOS
    return torch.from_numpy(padded)


class MixedRows:
    """The rows that an epoch's pairs have in files of several corpora, each seen more or less often.

    Pair k of a corpus in an epoch is its row k / repeat, so that dropped or repeated pairs are evenly spaced. Rows are
    computed when they are asked for.

    Args:
        sizes: number of pairs of each corpus.
        repeats: how often each corpus's pairs are seen.
        kept: the rows of these pairs in the files, if the files have other pairs, too.
    """

    def __init__(self, sizes: Sequence[int], repeats: Sequence[float], kept: NDArray[np.int64] | None = None) -> None:
        self._kept = kept
        seen = [max(1, int(size * repeat)) for size, repeat in zip(sizes, repeats, strict=True)]
        self._ends, self._begins = np.cumsum(seen), np.cumsum([0, *seen])
        self._first, self._last, self._repeats = np.cumsum([0, *sizes]), np.array(sizes) - 1, np.array(repeats)

    def __len__(self) -> int:
        """Number of pairs in an epoch."""
        return int(self._ends[-1])

    def __getitem__(self, pairs: int | Ids) -> NDArray[np.int64]:
        """Returns the rows of one or several pairs."""
        corpus = np.searchsorted(self._ends, pairs, side="right")
        own = np.minimum((pairs - self._begins[corpus]) / self._repeats[corpus], self._last[corpus])
        pairs_of_files = self._first[corpus] + own.astype(np.int64)
        return np.asarray(pairs_of_files if self._kept is None else self._kept[pairs_of_files])


Rows = MixedRows | ShardRows | NDArray[np.int64]


class TokenStore:
    """The token ids of many sentences.

    Args:
        parts: the offsets and ids of one or several parts.
        sizes: number of sentences of each part.
        dtype: type of the ids.
        rows: the sentences in the parts, in any order and with repetitions; by default all of them once.
    """

    def __init__(
        self, parts: Sequence[Tokens], sizes: Sequence[int], dtype: np.dtype[np.integer], rows: Rows | None = None
    ) -> None:
        self._parts, self._ends, self.dtype, self.rows = parts, [*accumulate(sizes)], dtype, rows

    @classmethod
    def of_files(cls, paths: Sequence[Path], dtype: type[np.integer], rows: Rows | None = None) -> "TokenStore":
        """Opens the files of parts, given their paths as for ``softsearch.data.preparation.encode.TokenWriter``."""
        parts = [(read_array(Path(f"{p}.offsets"), np.int64), read_array(Path(f"{p}.ids"), dtype)) for p in paths]
        return cls(parts, [len(offsets) - 1 for offsets, _ in parts], np.dtype(dtype), rows)

    def __len__(self) -> int:
        """Number of sentences."""
        return self._ends[-1] if self.rows is None else len(self.rows)

    def __getitem__(self, index: int) -> Ids:
        """Ids of a sentence, without special tokens."""
        row = index if self.rows is None else int(self.rows[index])
        number = bisect_right(self._ends, row)
        offsets, ids = self._parts[number]
        row -= self._ends[number - 1] if number else 0
        return ids[offsets[row] : offsets[row + 1]]

    def lengths(self, some: Ids | None = None) -> NDArray[np.int32]:
        """Returns the number of tokens in each sentence, or in some, EOS included; fastest for ascending ones."""
        if some is None and self.rows is None:
            # In 32 bits, without a 64-bit copy: offsets may exceed 32 bits, but not the difference of two.
            lengths = np.empty(len(self), np.int32)
            for (offsets, _), end in zip(self._parts, self._ends, strict=True):
                own = lengths[end - len(offsets) + 1 : end]
                np.subtract(offsets[1:], offsets[:-1], dtype=np.int32, casting="unsafe", out=own)
            lengths += 1
            return lengths
        some = np.arange(len(self)) if some is None else some
        lengths = np.empty(len(some), np.int32)
        for begin in range(0, len(some), _CHUNK):
            chosen = some[begin : begin + _CHUNK]
            lengths[begin : begin + _CHUNK] = self._lengths(chosen if self.rows is None else self.rows[chosen])
        return lengths

    def gather(self, some: Ids) -> Ids:
        """Returns the ids of some sentences, one after another, without special tokens."""
        found = []
        for (offsets, ids), own in self._runs(some if self.rows is None else self.rows[some]):
            begins, ends = offsets[own], offsets[own + 1]
            lengths = ends - begins
            before = np.cumsum(lengths) - lengths
            found.append(ids[np.repeat(begins - before, lengths) + np.arange(lengths.sum())])
        return np.concatenate(found) if found else np.empty(0, self.dtype)

    def _lengths(self, rows: Ids) -> NDArray[np.int32]:
        """Returns the lengths of some rows."""
        found = [offsets[own + 1] - offsets[own] for (offsets, _), own in self._runs(rows)]
        return np.concatenate(found, dtype=np.int32, casting="unsafe") + 1 if found else np.empty(0, np.int32)

    def _runs(self, rows: Ids) -> Iterator[tuple[Tokens, Ids]]:
        """Yields each run of rows in the same part: the part, and the rows in it."""
        numbers = np.searchsorted(self._ends, rows, side="right")
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(rows)]
        for begin, end in pairwise(bounds):
            if begin < end:
                number = int(numbers[begin])
                yield self._parts[number], rows[begin:end] - (self._ends[number - 1] if number else 0)


class FeatureStore:
    """The feature vectors of many sources, from a file.

    Args:
        path: see ``softsearch.text.features.read_features``.
        examples: for each source, the number of its example in the file, from 0.
    """

    def __init__(self, path: Path, examples: Ids) -> None:
        self.features, self.examples = read_features(path), examples

    def __call__(self, src: Sequence[Ids], indices: Sequence[int]) -> Tensor:
        """Returns the vectors of some sources, padded like their tokens."""
        sources = with_features([ids.tolist() for ids in src], self.features[self.examples[indices]])
        padded = padded_features(sources, self.features.shape[2], "the model")
        assert padded is not None
        return torch.from_numpy(padded)


class LinkStore:
    """The word links of many pairs, as weights of their tokens.

    Args:
        numbers: of a source and a target word, alternating.
        src_tokenizer: tokenizer of the sources.
        tgt_tokenizer: tokenizer of the targets.
    """

    def __init__(
        self, numbers: TokenStore, src_tokenizer: SentencePieceTokenizer, tgt_tokenizer: SentencePieceTokenizer
    ) -> None:
        self.numbers, self.sides = numbers, (WordNumbers(src_tokenizer), WordNumbers(tgt_tokenizer))

    def __call__(
        self, indices: Sequence[int], stored: Sequence[tuple[Ids, Ids]], drawn: Sequence[tuple[Ids, Ids]]
    ) -> Tensor:
        """Returns a batch's weights, ``link_weights``, padded like its tokens.

        Pairs are ``drawn`` from the ``stored`` ones; a pair whose text has changed has no links.
        """
        src_len, tgt_len = (max(len(pair[side]) for pair in drawn) + 1 for side in (0, 1))
        weights = np.zeros((len(drawn), tgt_len, src_len), np.float32)
        for row, index, before, after in zip(weights, indices, stored, drawn, strict=True):
            links = self.numbers[index].reshape(-1, 2)
            if len(links) and all(map(WordNumbers.same_text, self.sides, before, after)):
                own = link_weights(links, *(side(ids) for side, ids in zip(self.sides, after, strict=True)))
                row[: len(after[1]), : len(after[0])] = own
        return torch.from_numpy(weights)


class Resampler:
    """Subword regularisation: draws segmentations as a pure function of the seed and the draw (pair and epoch).

    The number of workers or processes and interruptions do not matter. Sampled segmentations are mostly longer than the
    stored ones, which determine the batches within a budget of ``tokens``. A side whose sample would make its batch
    larger than ``MAX_GROWTH`` times the budget keeps its stored segmentation in this epoch.
    """

    def __init__(self, samplers: tuple[SubwordSampler, SubwordSampler], *, tokens: int, seed: int) -> None:
        self.samplers, self.tokens, self.seed = samplers, tokens, seed

    def __call__(self, draws: Sequence[int], pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[Ids, Ids]]:
        """Returns a batch's pairs in the segmentations of their draws."""
        most = MAX_GROWTH * self.tokens // len(draws) - 1  # the rest is EOS
        resampled = []
        for draw, pair in zip(draws, pairs, strict=True):
            rng = random.Random(f"{self.seed} {draw}")
            drawn = [sampler(ids.tolist(), rng) for sampler, ids in zip(self.samplers, pair, strict=True)]
            src, tgt = (
                np.asarray(new, dtype=ids.dtype) if len(new) <= most else ids
                for new, ids in zip(drawn, pair, strict=True)
            )
            resampled.append((src, tgt))
        return resampled


class NoisyText:
    """Adds noise to a batch's pairs, as a pure function of the seed and the draws.

    A pair keeps its stored text if the vocabulary lacks a part of the text, before or after noise, or if the noise
    would make its batch larger than ``MAX_GROWTH`` times the budget of ``tokens``.

    Args:
        noise: the changes to make.
        tokenizers: source and target tokenizers.
        tokens: the budget of a batch.
        seed: the run's seed.
        then: applied to the noisy pairs, for example to draw their segmentation.
    """

    def __init__(
        self, noise: Noise, tokenizers: Tokenizers, *, tokens: int, seed: int, then: Redraw | None = None
    ) -> None:
        self.noise, self.tokenizers, self.tokens, self.seed, self.then = noise, tokenizers, tokens, seed, then

    def __call__(self, draws: Sequence[int], pairs: Sequence[tuple[Ids, Ids]]) -> list[tuple[Ids, Ids]]:
        """Returns a batch's pairs with the noise of their draws."""
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


class ParallelDataset:
    """Sentence pairs as token ids, read as whole batches (``Batch``) by a list of draws.

    A draw is a pair and an epoch, ``epoch * len(dataset) + index``: in epoch 0 the index itself. A ``resampler`` draws
    new segmentations, or noise, in each epoch. ``features`` and ``links`` are given if the data has them, and
    ``shards`` if it is read from a store.
    """

    def __init__(
        self,
        src: TokenStore,
        tgt: TokenStore,
        resampler: Redraw | None = None,
        features: FeatureStore | None = None,
        links: LinkStore | None = None,
        shards: Shards | None = None,
    ) -> None:
        self.src, self.tgt, self.resampler, self.features, self.links = src, tgt, resampler, features, links
        self.shards = shards

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.src)

    def __getitems__(self, draws: list[int]) -> Batch:
        """Returns the pairs of ``draws`` as one padded batch (PyTorch's loader passes a sampler's batch)."""
        indices = [draw % len(self) for draw in draws]
        stored = pairs = [(self.src[index], self.tgt[index]) for index in indices]
        if self.resampler is not None:
            pairs = self.resampler(draws, stored)
        src, tgt = zip(*pairs, strict=True)
        features = None if self.features is None else self.features(src, indices)
        links = None if self.links is None else self.links(indices, stored, pairs)
        tgt_tokens = pad(tgt, bos=True)
        return Batch(pad(src), tgt_tokens, features, find_real(tgt_tokens[:, 1:]), links)
