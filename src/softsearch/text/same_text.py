"""Which texts count as the same when training text is kept apart from validation and test: those with equal words.

They are compared as models read them (``softsearch.text.reading``), without case, punctuation, superscripts and the
tags of languages. One rule divides corpora (``softsearch.data.corpora.held_out``) and looks for test sentences in
training text (``softsearch.evaluation.train_test_overlap``).
"""

import re
import unicodedata
from hashlib import blake2b

import regex

from softsearch.text.reading import as_read
from softsearch.text.vocabulary import LANGUAGE_TAG, SOURCE_TAG

Words = tuple[str, ...]
# Scripts without spaces between words are compared by characters.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_WORDS = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|[\w--[{_UNSPACED}]]+", regex.VERSION1)
_ASCII_WORDS = re.compile(r"\w+", re.ASCII)  # the same, several times as fast


def words_of(line: str) -> Words:
    """Returns the words of a text, empty for white space alone; texts with equal words are the same."""
    line = SOURCE_TAG.sub(" ", LANGUAGE_TAG.sub(" ", line))
    if line.isascii() and line.isprintable():
        words = tuple(_ASCII_WORDS.findall(line.lower()))
    else:
        words = tuple(_WORDS.findall(unicodedata.normalize("NFKC", as_read(line).text.casefold())))
    return words or tuple(line.split())  # there are no words if there is only punctuation


def hash_of(line: str) -> bytes:
    """Returns 8 bytes that texts have in common if they are the same."""
    return blake2b(" ".join(words_of(line)).encode(), digest_size=8).digest()
