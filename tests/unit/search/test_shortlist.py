"""Which words a sentence may use."""

import numpy as np
import pytest

from softsearch.errors import ConfigError
from softsearch.search.shortlist import Shortlist
from softsearch.text.vocabulary import EOS

FREQUENT = np.array([9, 5])
TRANSLATIONS = np.array([[-1, -1], [-1, -1], [-1, -1], [-1, -1], [7, 8], [12, -1], [5, 20]])


def own(shortlist: Shortlist, batch: list[list[int]]) -> list[list[int]]:
    tokens, mask = shortlist(batch)
    assert tokens.dtype == np.int64
    assert (np.diff(tokens) > 0).all()
    return [tokens[row].tolist() for row in mask]


def test_frequent_words_and_translations_of_each_sentence() -> None:
    shortlist = Shortlist(FREQUENT, TRANSLATIONS)
    batch = [[4, 5, EOS], [6, EOS], [EOS]]
    expected = [[EOS, 5, 7, 8, 9, 12], [EOS, 5, 9, 20], [EOS, 5, 9]]
    assert own(shortlist, batch) == expected
    assert [own(shortlist, [sentence])[0] for sentence in batch] == expected


def test_a_shortlist_needs_frequent_words() -> None:
    with pytest.raises(ConfigError, match="0 frequent words"):
        Shortlist(FREQUENT[:0], TRANSLATIONS)
