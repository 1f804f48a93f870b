"""Which words a trained model aligns with each other in text that is given, counted."""

from collections import Counter
from collections.abc import Callable, Sequence

from softsearch.errors import ConfigError
from softsearch.search.forced import forced_alignments
from softsearch.search.interface import StepFunction
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.unknown_words import most_looked_at
from softsearch.text.vocabulary import EOS

BATCH_TOKENS = 4096
_CHUNK = 2000  # pairs whose attention is in memory at once


def attention_counts(
    step_fn: StepFunction,
    tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer],
    pairs: Sequence[tuple[str, str]],
    *,
    on_done: Callable[[int], None] | None = None,
) -> Counter[tuple[str, str]]:
    """Counts (source word, target word) where the model, writing the target word, looked most at the source word.

    Words are those of the text, also where the vocabulary lacks them. Left out are words with other white space than
    U+0020 in them, which a dictionary cannot hold.

    Args:
        step_fn: the model, with attention.
        tokenizers: source and target, of words.
        pairs: source and target text.
        on_done: told again and again how many more pairs are done.

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
        counts.update(_count(step_fn, tokenizers, chunk))
        if on_done is not None:
            on_done(len(chunk))
    return counts


def _count(
    step_fn: StepFunction,
    tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer],
    pairs: Sequence[tuple[str, str]],
) -> Counter[tuple[str, str]]:
    encode_src, encode_tgt = (tokenizer.encode for tokenizer in tokenizers)
    src, tgt = [[*encode_src(read), EOS] for read, _ in pairs], [[*encode_tgt(written), EOS] for _, written in pairs]
    matrices = forced_alignments(step_fn, src, tgt, batch_tokens=BATCH_TOKENS)
    assert matrices is not None
    counts: Counter[tuple[str, str]] = Counter()
    for pair, matrix in zip(pairs, matrices, strict=True):
        read, written = (tokenizer.words(text) for tokenizer, text in zip(tokenizers, pair, strict=True))
        places = most_looked_at(read, matrix[:-1])
        aligned = () if places is None else zip((read[place] for place in places), written, strict=True)
        counts.update(words for words in aligned if all(unit.split() == [unit] for unit in words))
    return counts
