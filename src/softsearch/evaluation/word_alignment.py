"""Where a model looked, from pieces to words, as links between words, and as text in the format of Pharaoh."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.search.forced import forced_alignments
from softsearch.search.interface import StepFunction
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import EOS, SPECIALS, UNK

Units = Literal["words", "pieces"]
Link = tuple[int, int]  # places of a source and of a target word, from 0
_SPACE = "\u2581"
_END, _UNKNOWN = SPECIALS[EOS], SPECIALS[UNK]
_BATCH_TOKENS = 2048


class Aligned(NamedTuple):
    """A sentence and a translation, in the order of the text, ``</s>`` last where there is one."""

    src: list[str]
    tgt: list[str]
    weights: NDArray[np.float32]  # [len(tgt), len(src)]


class _Units(NamedTuple):
    names: list[str]
    places: list[list[int]]  # the pieces of each unit


def align(
    step_fn: StepFunction,
    tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer],
    sources: Sequence[str],
    targets: Sequence[str] | Sequence[Sequence[int]],
    *,
    units: Units,
) -> list[Aligned] | None:
    """Looks where the model looks while it is made to write ``targets``.

    Args:
        step_fn: the model.
        tokenizers: source and target.
        sources: lines of text.
        targets: lines of text, or the token ids that a model has written, with EOS unless they were cut.
        units: merge the pieces of a word: the weights of the source word's pieces are added, of the target word's
            pieces the mean is taken.

    Returns:
        As many as sources; None if the model has no alignments.
    """
    src_tokenizer, tgt_tokenizer = tokenizers
    src_ids = [[*src_tokenizer.encode(line), EOS] for line in sources]
    tgt_ids = [[*tgt_tokenizer.encode(t), EOS] if isinstance(t, str) else list(t) for t in targets]
    matrices = forced_alignments(step_fn, src_ids, tgt_ids, batch_tokens=_BATCH_TOKENS)
    if matrices is None:
        return None
    words = (src_tokenizer.has_words, tgt_tokenizer.has_words)
    found = []
    for source, target, src, tgt, matrix in zip(sources, targets, src_ids, tgt_ids, matrices, strict=True):
        ordered = matrix[np.ix_(tgt_tokenizer.text_order(tgt), src_tokenizer.text_order(src))]
        sides = [_group(src_tokenizer, src, source, units, words[0])]
        sides.append(_group(tgt_tokenizer, tgt, target if isinstance(target, str) else None, units, words[1]))
        found.append(Aligned(sides[0].names, sides[1].names, _merge(ordered, sides[0].places, sides[1].places)))
    return found


def links(aligned: Aligned) -> list[Link]:
    """For each unit of the target the unit of the source that it looked at most, as in Luong et al. 2015, section 5.5.

    ``</s>`` has no part in it on either side.
    """
    columns, rows = (len(side) - (side[-1:] == [_END]) for side in (aligned.src, aligned.tgt))
    if not columns:
        return []
    return [(int(aligned.weights[row, :columns].argmax()), row) for row in range(rows)]


def pharaoh(found: Iterable[Link]) -> str:
    """One line of text: ``0-0 1-2``, source before target, from 0, in the order of the source."""
    return " ".join(f"{src}-{tgt}" for src, tgt in sorted(found))


def group_pieces(pieces: Sequence[str], *, whole_words: bool) -> list[list[int]]:
    """The places of the pieces of each word.

    Args:
        pieces: as SentencePiece names them: U+2581 begins a word.
        whole_words: every piece is a word, so that ``<unk>`` is one too; else it is part of one.
    """
    groups: list[list[int]] = []
    for place, piece in enumerate(pieces):
        begins = piece.startswith(_SPACE) or piece == _END or (whole_words and piece == _UNKNOWN)
        if begins or not groups:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def _group(
    tokenizer: SentencePieceTokenizer, ids: Sequence[int], text: str | None, units: Units, whole_words: bool
) -> _Units:
    pieces = tokenizer.pieces(ids)
    if units == "pieces":
        return _Units(pieces, [[place] for place in range(len(pieces))])
    if whole_words and text is not None:
        words = tokenizer.words(text)
        names = [*(reversed(words) if tokenizer.reverse else words), _END]
        return _Units(names, [[place] for place in range(len(names))])
    places = group_pieces(pieces, whole_words=whole_words)
    names = ["".join(pieces[place] for place in group).replace(_SPACE, "") for group in places]
    return _Units(names, places)


def _merge(
    weights: NDArray[np.float32], src: Sequence[Sequence[int]], tgt: Sequence[Sequence[int]]
) -> NDArray[np.float32]:
    columns = [weights[:, list(group)].sum(axis=1) for group in src]
    over_words = np.stack(columns, axis=1)  # [tgt pieces, src words]
    rows = [over_words[list(group)].mean(axis=0) for group in tgt]
    return np.stack(rows) if rows else np.empty((0, len(src)), dtype=np.float32)
