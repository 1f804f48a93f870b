"""Counts of the word pairs that a trained model aligns in parallel text, for dictionaries."""

from collections import Counter
from collections.abc import Callable, Sequence

from softsearch.errors import ConfigError
from softsearch.evaluation.word_alignment import align, encode_sentences
from softsearch.search.interface import StepFunction
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.unknown_words import most_attended

_CHUNK = 2000  # pairs whose attention is in memory at once


def attention_counts(
    step_fn: StepFunction,
    tokenizers: Tokenizers,
    pairs: Sequence[tuple[str, str]],
    *,
    on_done: Callable[[int], None] | None = None,
) -> Counter[tuple[str, str]]:
    """Counts (source word, target word) where the source word has most attention while the target word is written.

    Words are those of the text, also where the vocabulary lacks them. Words with other white space than U+0020 in them,
    which a dictionary cannot hold, are left out. ``on_done`` is called again and again with the number of pairs since.

    Raises:
        ConfigError: the model has no attention, or a tokenizer is not of words.
    """
    if not all(tokenizer.has_words for tokenizer in tokenizers):
        raise ConfigError("the model's vocabulary has smaller units than words; train with tokenizer=word")
    if not step_fn.has_attention:
        raise ConfigError("the model has no attention that could be counted; train one with attention")
    counts: Counter[tuple[str, str]] = Counter()
    by_length = sorted(pairs, key=lambda pair: -len(pair[1]))  # batches of like length
    for begin in range(0, len(by_length), _CHUNK):
        chunk = by_length[begin : begin + _CHUNK]
        src, tgt = (encode_sentences(t, side) for t, side in zip(tokenizers, zip(*chunk, strict=True), strict=True))
        for alignment in align(step_fn, tokenizers, src, tgt, units="words") or []:
            read, written = alignment.src[:-1], alignment.tgt[:-1]  # without EOS
            indices = most_attended(read, alignment.weights[:-1])
            aligned = () if indices is None else zip((read[index] for index in indices), written, strict=True)
            counts.update(words for words in aligned if all(word.split() == [word] for word in words))
        if on_done is not None:
            on_done(len(chunk))
    return counts
