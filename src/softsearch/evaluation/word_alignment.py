"""Word alignments from attention: matrices over words or pieces, links, Pharaoh format, and dictionary counts."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.evaluation.alignment_error import Link
from softsearch.evaluation.inference import BATCH_TOKENS, TorchStepFunction
from softsearch.search.forced_decoding import forced_alignments
from softsearch.search.interface import StepFunction
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.text.unknown_words import most_attended
from softsearch.text.vocabulary import EOS, SPECIALS, with_eos
from softsearch.text.word_links import join_pieces, word_starts, word_weights

Units = Literal["words", "pieces"]
_END = SPECIALS[EOS]
_CHUNK = 2000  # sentence pairs whose attention is in memory at once


class Sentence(NamedTuple):
    """One side of a pair to align."""

    ids: Sequence[int]
    text: str | None = None  # has the words of unknown tokens; None for a model's translation
    truncated: bool = False  # cut off at a length limit, before EOS

    @property
    def written(self) -> Sequence[int]:
        """Returns the ids with EOS, unless truncated."""
        return self.ids if self.truncated else with_eos(self.ids)


class Alignment(NamedTuple):
    """The attention of a sentence pair, in the order of the text, ``</s>`` last unless truncated."""

    src: list[str]
    tgt: list[str]
    weights: NDArray[np.float32]  # [len(tgt), len(src)]


def encode_sentences(tokenizer: SentencePieceTokenizer, lines: Sequence[str]) -> list[Sentence]:
    """Encodes lines of text."""
    return [Sentence(tokenizer.encode(line), line) for line in lines]


def align(
    step_fn: StepFunction,
    tokenizers: Tokenizers,
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    *,
    units: Units,
) -> list[Alignment] | None:
    """Returns the attention of a model forced to generate ``targets``; None if it has no attention.

    Pieces are merged into ``words``: weights are summed over the pieces of a source word and averaged over those of a
    target word.
    """
    src_ids, tgt_ids = ([sentence.ids for sentence in side] for side in (sources, targets))
    matrices = forced_alignments(step_fn, src_ids, tgt_ids, batch_tokens=BATCH_TOKENS)
    if matrices is None:
        return None
    pairs = zip(sources, targets, matrices, strict=True)
    return [_of_units(tokenizers, source, target, matrix, units) for source, target, matrix in pairs]


def align_by_head(
    step_fn: TorchStepFunction, tokenizers: Tokenizers, source: Sentence, target: Sentence, *, units: Units
) -> dict[str, NDArray[np.float32]]:
    """Returns the weights of each head of a Transformer and their mean, by name, like ``align``; else nothing."""
    heads = step_fn.all_heads(source.ids, target.written)
    if heads is None:
        return {}
    named = {f"layer {layer}, head {head}": heads[layer, head] for layer, head in np.ndindex(*heads.shape[:2])}
    named = {"mean of all layers and heads": heads.mean(axis=(0, 1)), **named}
    return {name: _of_units(tokenizers, source, target, matrix, units).weights for name, matrix in named.items()}


def links(alignment: Alignment) -> list[Link]:
    """Links target units to the source unit with most attention (Luong et al. 2015, section 5.5), except ``</s>``."""
    columns, rows = (len(side) - (side[-1:] == [_END]) for side in (alignment.src, alignment.tgt))
    if not columns:
        return []
    return [(int(alignment.weights[row, :columns].argmax()), row) for row in range(rows)]


def pharaoh(pairs: Iterable[Link]) -> str:
    """Returns a line in Pharaoh format: ``0-0 1-2``, source before target, from 0, in the order of the source."""
    return " ".join(f"{src}-{tgt}" for src, tgt in sorted(pairs))


def attention_counts(
    step_fn: StepFunction,
    tokenizers: Tokenizers,
    pairs: Sequence[tuple[str, str]],
    on_done: Callable[[int], object] = lambda _pairs: None,
) -> Counter[tuple[str, str]]:
    """Counts (source word, target word) if the source word has the most attention when the target word is generated.

    Words are those of the text, even if they are not in the vocabulary. Words with white space other than U+0020, which
    a dictionary cannot hold, are skipped. ``on_done`` is called with the number of pairs of each chunk.

    Raises:
        ConfigError: the model has no attention, or a tokenizer has no word vocabulary.
    """
    if not all(tokenizer.has_words for tokenizer in tokenizers):
        raise ConfigError("the model's vocabulary has smaller units than words; train with tokenizer=word")
    if not step_fn.has_attention:
        raise ConfigError("the model has no attention to count; train a model with attention")
    counts: Counter[tuple[str, str]] = Counter()
    by_length = sorted(pairs, key=lambda pair: -len(pair[1]))  # so that batches have similar lengths
    for begin in range(0, len(by_length), _CHUNK):
        chunk = by_length[begin : begin + _CHUNK]
        src, tgt = (encode_sentences(t, side) for t, side in zip(tokenizers, zip(*chunk, strict=True), strict=True))
        for alignment in align(step_fn, tokenizers, src, tgt, units="words") or []:
            read, written = alignment.src[:-1], alignment.tgt[:-1]  # without EOS
            indices = most_attended(read, alignment.weights[:-1])
            aligned = () if indices is None else zip((read[index] for index in indices), written, strict=True)
            counts.update(words for words in aligned if all(word.split() == [word] for word in words))
        on_done(len(chunk))
    return counts


def _of_units(
    tokenizers: Tokenizers, source: Sentence, target: Sentence, matrix: NDArray[np.float32], units: Units
) -> Alignment:
    """Merges the attention of pieces into that of units."""
    src_tokenizer, tgt_tokenizer = tokenizers
    order = np.ix_(tgt_tokenizer.text_order(target.written), src_tokenizer.text_order(source.written))
    src, src_starts = _units(src_tokenizer, source, units)
    tgt, tgt_starts = _units(tgt_tokenizer, target, units)
    return Alignment(src, tgt, word_weights(matrix[order], src_starts, tgt_starts))


def _units(tokenizer: SentencePieceTokenizer, sentence: Sentence, units: Units) -> tuple[list[str], list[int]]:
    """Returns the units in the order of the text, and the indices of their first pieces."""
    written = sentence.written
    pieces = tokenizer.pieces(written) if sentence.text is None else tokenizer.read_pieces(sentence.text, written)
    if units == "pieces":
        return pieces, list(range(len(pieces)))
    if tokenizer.has_words and sentence.text is not None:
        words = tokenizer.words(sentence.text)
        return [*words[:: -1 if tokenizer.reverse else 1], _END], list(range(len(words) + 1))
    starts = word_starts(pieces, whole_words=tokenizer.has_words)
    return join_pieces(pieces, starts), starts
