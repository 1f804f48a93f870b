"""Vocabulary shortlists: the few target words that may come in the translation of a sentence."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.text.vocabulary import EOS


class Allowed(NamedTuple):
    """The target words of a batch and which of them each sentence may use."""

    tokens: NDArray[np.int64]  # [words] ids, rising
    mask: NDArray[np.bool_]  # [sentences, words]


class Shortlist:
    """The candidate lists of Jean et al. 2015 (arXiv:1412.2007, section 3.3).

    A sentence may use the most frequent target words and the likely translations of each of its source words. Which
    sentences share its batch makes no difference to it.

    Args:
        frequent: ids of the words that are always allowed, ``[K]``; EOS is one more where it is not among them.
        translations: likely target ids of each source id, ``[src_vocab, K']``; -1 where there are fewer.

    Raises:
        ConfigError: there are no frequent words.
    """

    def __init__(self, frequent: NDArray[np.integer], translations: NDArray[np.integer]) -> None:
        if not frequent.size:
            raise ConfigError("a shortlist of 0 frequent words, expected at least 1; change shortlist.frequent")
        self.frequent = np.union1d(frequent, [EOS])
        self.translations = translations

    def __call__(self, src: Sequence[Sequence[int]]) -> Allowed:
        """The words for sources given as token ids."""
        own = [np.union1d(self.frequent, self.translations[np.asarray(ids)]) for ids in src]
        own = [ids[ids >= 0] for ids in own]
        tokens = np.unique(np.concatenate(own)).astype(np.int64)
        return Allowed(tokens, np.stack([np.isin(tokens, ids, assume_unique=True) for ids in own]))
