"""Sentences of different lengths in one padded batch."""

import numpy as np

from softsearch.data.batch import pad
from softsearch.text.vocabulary import BOS, EOS, PAD


def test_pad_puts_specials_around_the_ids() -> None:
    sentences = [np.array([7, 8, 9], dtype=np.uint16), np.array([], dtype=np.uint16)]
    assert pad(sentences).tolist() == [[7, 8, 9, EOS], [EOS, PAD, PAD, PAD]]
    assert pad(sentences, bos=True).tolist() == [[BOS, 7, 8, 9, EOS], [BOS, EOS, PAD, PAD, PAD]]
