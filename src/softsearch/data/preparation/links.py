"""Word links of training pairs, from files or IBM Model 1, written next to the pairs' token ids."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.data.corpora.base import line_of_links
from softsearch.data.lexicon import train_lexicon
from softsearch.data.preparation.cleaned_text import Chunk, CleanedText
from softsearch.data.preparation.encode import LINKS, TokenWriter
from softsearch.data.preparation.processes import ordered_map
from softsearch.errors import CorpusError
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.word_links import Link, WordNumbers, lines_of_links, read_pharaoh

_SAMPLE = 200_000  # maximum number of pairs to train Model 1 on
_TENSION, _EMPTY = 4.0, 0.2  # of the diagonal, as in fast_align; the share of the empty word
_CODES = 1 << 20  # looked up together
_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
_log = logging.getLogger(__name__)


def words_of(line: bytes | str) -> list[str]:
    """Returns the words of a line, separated by U+0020 as in tokenizers."""
    text = line if isinstance(line, str) else line.decode()
    return [word for word in text.rstrip("\n").split(" ") if word]


class Lexicon(NamedTuple):
    """t(y | x) of IBM Model 1 in one direction; word 0 of x is the empty word."""

    x_ids: dict[str, int]
    y_ids: dict[str, int]
    codes: NDArray[np.int64]  # x * len(y_ids) + y, sorted
    probs: NDArray[np.float64]

    @classmethod
    def train(cls, x_lines: Iterable[Sequence[str]], y_lines: Iterable[Sequence[str]]) -> "Lexicon":
        """Estimates a lexicon from sentence pairs."""
        x_ids, y_ids = {"": 0}, dict[str, int]()
        x = [np.array([0, *(x_ids.setdefault(w, len(x_ids)) for w in line)]) for line in x_lines]
        y = [np.array([y_ids.setdefault(w, len(y_ids)) for w in line], dtype=np.int64) for line in y_lines]
        x_found, y_found, probs = train_lexicon(x, y)
        return cls(x_ids, y_ids, x_found * len(y_ids) + y_found, probs)

    def partners(self, x_lines: Iterable[Sequence[str]], y_lines: Iterable[Sequence[str]]) -> Iterator[list[Link]]:
        """Yields, for each pair, the indices (x, y) of each word in y and its likeliest partner in x, if not empty."""
        wanted, size = list[NDArray[np.int64]](), 0
        for x, y in zip(x_lines, y_lines, strict=True):
            wanted.append(self._codes(x, y))
            size += wanted[-1].size
            if size > _CODES:
                yield from self._likeliest(wanted)
                wanted, size = [], 0
        if wanted:
            yield from self._likeliest(wanted)

    def _likeliest(self, wanted: Sequence[NDArray[np.int64]]) -> Iterator[list[Link]]:
        """Yields the links of pairs, given their codes; all are looked up in one sorted search."""
        priors = {shape: _prior(*shape) for shape in {each.shape for each in wanted}}
        codes, places = np.unique(np.concatenate([each.reshape(-1) for each in wanted]), return_inverse=True)
        at = np.searchsorted(self.codes, codes).clip(max=len(self.codes) - 1)
        found = np.where(self.codes[at] == codes, self.probs[at], 0.0)[places]
        for each, flat in zip(wanted, np.split(found, np.cumsum([each.size for each in wanted])[:-1]), strict=True):
            likelihood = flat.reshape(each.shape)
            likelihood[:, 1:] *= priors[each.shape]
            likelihood[:, 0] *= _EMPTY
            best = likelihood.argmax(1)
            linked = np.flatnonzero((best > 0) & likelihood.any(1))
            yield list(zip((best[linked] - 1).tolist(), linked.tolist(), strict=True))

    def _codes(self, x: Sequence[str], y: Sequence[str]) -> NDArray[np.int64]:
        """Returns the codes of all combinations, ``[y, 1 + x]``, -1 with an unknown word."""
        xs = np.array([0, *(self.x_ids.get(word, -1) for word in x)])
        ys = np.array([self.y_ids.get(word, -1) for word in y], dtype=np.int64)[:, None]
        return np.where((xs >= 0) & (ys >= 0), xs * len(self.y_ids) + ys, -1)


def _prior(y: int, columns: int) -> NDArray[np.float64]:
    """Returns the prior of links between ``y`` words and ``columns - 1`` others, ``[y, columns - 1]``.

    It favours the diagonal (Dyer et al. 2013, "A simple, fast, and effective reparameterization of IBM Model 2",
    equation 1), which decides between repeated words; Model 1 has no such prior.
    """
    x = columns - 1
    distance = np.arange(1, x + 1) / x - (np.arange(1, y + 1) / y)[:, None]
    prior = np.exp(-_TENSION * np.abs(distance))
    return np.asarray((1 - _EMPTY) * prior / prior.sum(1, keepdims=True))


def grow_diag_final(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Symmetrises the links of two directions (Koehn, Och & Marcu 2003, section 4.5; Och & Ney 2003).

    It starts with links in both directions, adds neighbouring links (also diagonal) from either direction while one of
    their words has no link, and finally other links with an unlinked word.
    """
    union, links = forward | backward, forward & backward
    src, tgt = {link[0] for link in links}, {link[1] for link in links}

    def add(link: Link) -> bool:
        if link in links or (link[0] in src and link[1] in tgt):
            return False
        links.add(link)
        src.add(link[0])
        tgt.add(link[1])
        return True

    waiting = sorted(links)
    for i, j in waiting:  # the list grows
        waiting += [near for a, b in _NEIGHBOURS if (near := (i + a, j + b)) in union and add(near)]
    for direction in (forward, backward):
        for link in sorted(direction):
            add(link)
    return links


def align(lexicons: tuple[Lexicon, Lexicon], chunk: Chunk) -> list[set[Link]]:
    """Returns the symmetrised links of each pair of a chunk; ``lexicons`` are for both directions."""
    src, tgt = ([words_of(line) for line in side] for side in chunk[:2])
    directions = zip(lexicons[0].partners(src, tgt), lexicons[1].partners(tgt, src), strict=True)
    return [grow_diag_final(set(forward), {(i, j) for j, i in backward}) for forward, backward in directions]


def links_by_model(corpus: CleanedText, processes: int) -> Iterator[list[set[Link]]]:
    """Yields the links of each chunk of a corpus, from Model 1 in both directions, trained on the corpus."""
    src, tgt = ([words_of(line) for line in corpus.sample(side, _SAMPLE)] for side in (0, 1))
    lexicons = Lexicon.train(src, tgt), Lexicon.train(tgt, src)
    return ordered_map(partial(align, lexicons), corpus.chunks(), processes)


def links_of_files(
    files: Sequence[Path], corpus: CleanedText, tags: Sequence[str], given: Sequence[Path]
) -> Iterator[list[list[Link]]]:
    """Yields the links of each chunk of a corpus, from one file in Pharaoh's format for each of its parts.

    Words are those of the text files, without the ``tags`` that a source may begin with. Messages name the files as
    they were ``given``.

    Raises:
        CorpusError: a file cannot be read, has another format or belongs to another text.
    """
    lines = _kept_lines(files, corpus)
    for src_lines, tgt_lines, _ in corpus.chunks():
        chunk = []
        for src_line, tgt_line in zip(src_lines, tgt_lines, strict=True):
            path, number, line = next(lines)
            src, tgt = words_of(src_line), words_of(tgt_line)
            tagged = sum(1 for _ in takewhile(tags.__contains__, src))
            try:
                links = read_pharaoh(line, len(src) - tagged, len(tgt))
            except ValueError as error:
                named = line_of_links(given[files.index(path)], path, number)
                raise CorpusError(f"{named} {error}") from error
            chunk.append([(i + tagged, j) for i, j in links])
        yield chunk
    next(lines, None)  # counts the rest of the last file


def _kept_lines(files: Sequence[Path], corpus: CleanedText) -> Iterator[tuple[Path, int, str]]:
    """Yields the file, the line number from 1 and the line of links for each pair of a corpus."""
    numbers = chain.from_iterable(chunk[2].tolist() for chunk in corpus.chunks())
    for path, size, counts in zip(files, corpus.sizes(), corpus.counts, strict=True):
        for number, line in lines_of_links(path, islice(numbers, size), counts["lines"]):
            yield path, number, line


def write_links(
    folder: Path, chunks: Iterable[Sequence[Iterable[Link]]], corpus: CleanedText, tokenizers: Tokenizers
) -> dict[str, int]:
    """Writes the links of a corpus's pairs, in chunks, and returns their counts for the report.

    Numbers of a source and a target word alternate. A pair whose tokens form other words than its text, for example
    because a tokenizer's rules treat a character as a space, has no links.
    """
    numbers, counts = [WordNumbers(tokenizer) for tokenizer in tokenizers], {"links": 0, "pairs": 0, "left_out": 0}
    with ExitStack() as stack:
        writer = TokenWriter(folder / LINKS, stack)
        for chunk, (*sides, _) in zip(chunks, corpus.chunks(), strict=True):
            words = (map(words_of, side) for side in sides)
            for links, *texts in zip(chunk, *words, strict=True):
                made = (each.count(text) for each, text in zip(numbers, texts, strict=True))
                ids = np.array(sorted(links), np.uint16).reshape(-1)
                if any(count != len(text) for count, text in zip(made, texts, strict=True)):
                    counts["left_out"] += bool(len(ids))
                    ids = ids[:0]
                writer.append(ids, np.array([len(ids)]))
                counts["links"] += len(ids) // 2
                counts["pairs"] += bool(len(ids))
    _log.info("%s word links in %s pairs", f"{counts['links']:,}", f"{counts['pairs']:,}")
    if counts["left_out"]:
        _log.warning("%s pairs have no links, because the tokenizer divides them into other words", counts["left_out"])
    return counts
