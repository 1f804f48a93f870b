"""Replacement of unknown words in translations by aligned source words or their dictionary translations."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError, InputError
from softsearch.text.reading import as_read
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import UNK, is_tag


class UnknownWords:
    """Replaces every <unk> in a translation, for word models.

    The source word with the most attention at <unk> is translated by the dictionary, in its own or the usual form, or
    copied if the dictionary lacks it (Jean et al. 2015, arXiv:1412.2007, section 3.3, after Luong et al. 2015,
    arXiv:1410.8206).

    Raises:
        ConfigError: a tokenizer's units are smaller than words.
    """

    def __init__(
        self,
        src_tokenizer: SentencePieceTokenizer,
        tgt_tokenizer: SentencePieceTokenizer,
        dictionary: Mapping[str, str],
    ) -> None:
        for side, tokenizer in (("source", src_tokenizer), ("target", tgt_tokenizer)):
            if not tokenizer.has_words:
                raise ConfigError(
                    f"replacing unknown words needs a word model, but the {side} vocabulary has smaller units; "
                    "leave the option out, or train with tokenizer=word"
                )
        self.src_tokenizer, self.tgt_tokenizer, self.dictionary = src_tokenizer, tgt_tokenizer, dictionary

    def __call__(self, src_text: str, tokens: Sequence[int], alignments: NDArray[np.floating] | None) -> str:
        """Returns the text of ``tokens``, a translation of ``src_text``.

        ``alignments`` is the attention of each token, ``[len(tokens), src_len]`` or more rows. Tokens and the source
        are in the model's order, and the source ends with EOS.

        Raises:
            InputError: there is an <unk> but no alignments.
        """
        if UNK not in tokens:
            return self.tgt_tokenizer.decode(tokens)
        if alignments is None:
            raise InputError("replacing unknown words needs alignments, but this model or search gives none")
        words = self.src_tokenizer.words(src_text)
        aligned = most_attended(words, alignments)
        output = []
        for index in self.tgt_tokenizer.text_order(tokens):
            if tokens[index] != UNK:
                output.append(self.tgt_tokenizer.decode([tokens[index]]))
            elif aligned is not None:
                word = words[aligned[index]]
                output.append(self.dictionary.get(word) or self.dictionary.get(as_read(word).text, word))
        return self.tgt_tokenizer.normalize_like_decode(" ".join(word for word in output if word))


def most_attended(words: Sequence[str], alignments: NDArray[np.floating]) -> NDArray[np.int64] | None:
    """Returns the index in ``words`` of each row's largest weight, ignoring EOS and tags.

    ``words`` are in the model's order, ``alignments`` are ``[tgt_len, len(words) + 1]``, EOS last; the result is
    ``[tgt_len]``, or None if the source has no words.
    """
    indices = np.array([i for i, word in enumerate(words) if not is_tag(word)], dtype=np.int64)
    return indices[alignments[:, indices].argmax(axis=1)] if indices.size else None
