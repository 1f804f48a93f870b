"""Where a model looks while it writes translations that are given."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.models.interface import Seq2Seq
from softsearch.search.forced import forced_alignments as search_alignments
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import EOS
from softsearch.training.evaluation import evaluating
from softsearch.training.step_function import TorchStepFunction


class Aligned(NamedTuple):
    """A sentence pair in pieces, both sides in the order of the text and with EOS."""

    src_pieces: list[str]
    tgt_pieces: list[str]
    alignments: NDArray[np.float32]  # [len(tgt_pieces), len(src_pieces)], rows sum to 1


def align_lines(
    model: Seq2Seq,
    tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer],
    pairs: Sequence[tuple[str, str]],
) -> list[Aligned]:
    """Aligns ``pairs`` (source, translation) as one batch; at least one pair."""
    src, tgt = (
        [[*tokenizer.encode(line), EOS] for line in side]
        for tokenizer, side in zip(tokenizers, zip(*pairs, strict=True), strict=True)
    )
    return [
        Aligned(
            tokenizers[0].pieces(read),
            tokenizers[1].pieces(written),
            matrix[np.ix_(tokenizers[1].text_order(written), tokenizers[0].text_order(read))],
        )
        for read, written, matrix in zip(src, tgt, forced_alignments(model, src, tgt), strict=True)
    ]


def forced_alignments(
    model: Seq2Seq, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[NDArray[np.float32]]:
    """Steps through the target tokens, whatever the model would have chosen; needs no search.

    Args:
        model: the model, in any mode.
        sources: token ids with EOS.
        targets: token ids with EOS, as many.

    Returns:
        For each sentence ``[tgt_len, src_len]``.
    """
    with evaluating(model):
        everything = max(1, sum(map(len, sources)) + sum(map(len, targets))) * len(sources)  # one batch
        found = search_alignments(TorchStepFunction(model), sources, targets, batch_tokens=everything)
    assert found is not None
    return found
