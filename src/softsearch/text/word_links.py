"""Links between the words of sentence pairs, in Pharaoh's format, and the words that tokens belong to."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import regex
from numpy.typing import NDArray

from softsearch.errors import CorpusError
from softsearch.text.corpus import read_lines
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import EOS, SPECIALS, UNK

Link = tuple[int, int]  # indices of a source and of a target word, from 0
_PHARAOH = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_SPACE, _END, _UNKNOWN = "\u2581", SPECIALS[EOS], SPECIALS[UNK]
# Letters of scripts without spaces between words.
UNSPACED = regex.compile(
    r"[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}"
    r"\p{sc=Lana}\p{sc=Tale}\p{sc=Talu}\p{sc=Tavt}]"
)


def read_pharaoh(line: str, src_words: int, tgt_words: int) -> list[Link]:
    """Returns the links in a line such as ``0-0 1-2``, for sentences with these numbers of words.

    Raises:
        ValueError: the line is wrong; the text completes a message that names the line.
    """
    links = []
    for text in line.split():
        match = _PHARAOH.fullmatch(text)
        if match is None:
            raise ValueError(f"has {text[:60]!r}, expected word links such as '0-0 1-2' (Pharaoh), numbered from 0")
        src, tgt = int(match[1]), int(match[2])
        if src >= src_words or tgt >= tgt_words:
            raise ValueError(
                f"has the link {text!r}, but the source has {src_words} words and the target {tgt_words}, numbered "
                "from 0; does the file belong to this text, with the source first?"
            )
        links.append((src, tgt))
    return links


def lines_of_links(path: Path, numbers: Iterable[int], total: int) -> Iterator[tuple[int, str]]:
    """Yields the lines with these ``numbers`` (ascending, from 1) of a links file; ``total`` is its text's line count.

    Raises:
        CorpusError: the file cannot be read, or has the wrong number of lines.
    """
    wanted, found = iter(numbers), 0
    following = next(wanted, None)
    for found, line in enumerate(read_lines(path), start=1):
        if found == following:
            yield found, line
            following = next(wanted, None)
    if found != total:
        raise CorpusError(
            f"{path} has {found:,} lines, but its text has {total:,}; expected one line of links per pair, such as "
            "'0-0 1-2', empty if it has none; align the same files again"
        )


class WordNumbers:
    """Numbers the words of a tokenizer's ids."""

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        self.tokenizer, names = tokenizer, tokenizer.names()
        self._order = -1 if tokenizer.reverse else 1
        self._begins = np.array([name.startswith(_SPACE) for name in names])
        self._begins[UNK] = tokenizer.has_words
        self._ends = np.array([name[1:].endswith(_SPACE) for name in names])

    def __call__(self, ids: Sequence[int] | NDArray[np.integer]) -> NDArray[np.int64]:
        """Returns the number of each id's word in the text, from 0; the ids have neither BOS nor EOS."""
        tokens = np.asarray(ids, dtype=np.int64)[:: self._order]
        starts = self._begins[tokens]
        starts[1:] |= self._ends[tokens[:-1]]
        starts[:1] = True
        return (np.cumsum(starts) - 1)[:: self._order]

    def same_text(self, ids: NDArray[np.integer], others: NDArray[np.integer]) -> bool:
        """Returns whether both are segmentations of one text."""
        if np.array_equal(ids, others):
            return True
        one, other = (self.tokenizer.decode(each.tolist(), joined=False) for each in (ids, others))
        return one == other

    def count(self, words: Sequence[str]) -> int:
        """Returns how many words a text's ids have, which for some tokenizers differs from the text's words."""
        return int(self(self.tokenizer.encode(" ".join(words))).max(initial=-1)) + 1


def link_weights(
    links: Sequence[Link] | NDArray[np.integer], src_words: NDArray[np.int64], tgt_words: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Returns each target token's weights of source tokens, ``[tgt_len, src_len]``, from word links.

    Each token of a linked word is linked to all tokens of the other; rows sum to 1, or to 0 without a link (Garg et al.
    2019, arXiv:1909.02074, section 3.3). ``src_words`` and ``tgt_words`` are the tokens' ``WordNumbers``.
    """
    linked = np.zeros((tgt_words.max(initial=-1) + 1, src_words.max(initial=-1) + 1), np.float32)
    for src, tgt in links:
        linked[tgt, src] = 1
    weights = linked[tgt_words][:, src_words]
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1)
    return weights


def word_starts(pieces: Sequence[str], *, whole_words: bool, unspaced: bool = False) -> list[int]:
    """Returns the indices of the pieces that begin a word: with U+2581, or behind a piece that ends with it.

    With ``whole_words``, ``<unk>`` is a word too; with ``unspaced``, each piece of a script that has no spaces between
    words, where a word would be the whole sentence.
    """
    return [
        index
        for index, (last, piece) in enumerate(pairwise(["", *pieces]))
        if index == 0
        or piece.startswith(_SPACE)
        or last[1:].endswith(_SPACE)
        or piece == _END
        or (whole_words and piece == _UNKNOWN)
        or (unspaced and last != _SPACE and UNSPACED.match(piece) is not None)
    ]


def join_pieces(pieces: Sequence[str], starts: Sequence[int]) -> list[str]:
    """Returns the words that begin at these indices."""
    return ["".join(pieces[a:b]).replace(_SPACE, "") for a, b in pairwise([*starts, len(pieces)])]


def word_weights(
    weights: NDArray[np.float32], src_starts: Sequence[int], tgt_starts: Sequence[int]
) -> NDArray[np.float32]:
    """Returns attention between words, from that of pieces, ``[tgt_len, src_len]``, and where the words begin.

    Weights are added over the pieces of a source word and averaged over those of a target word.
    """
    merged = np.add.reduceat(weights, src_starts, axis=1)
    if not tgt_starts:
        return merged
    sizes = np.diff([*tgt_starts, len(weights)]).astype(np.float32)
    sums: NDArray[np.float32] = np.add.reduceat(merged, tgt_starts, axis=0)
    return sums / sizes[:, None]
