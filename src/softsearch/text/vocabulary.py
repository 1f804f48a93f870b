"""Special tokens, the same in every vocabulary, model, bundle and search, and language tags."""

import re
from collections.abc import Sequence

PAD = 0
UNK = 1
BOS = 2
EOS = 3
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")

# Tag at the start of a source line: the language to translate into (Johnson et al. 2017, arXiv:1611.04558, section 3).
LANGUAGE_TAG = re.compile(r"<2([^\s<>]+)>")
# The tag after it, if models also read the source's language (Fan et al. 2021, arXiv:2010.11125, section 2).
SOURCE_TAG = re.compile(r"<from:([^\s<>]+)>")
# The tag between the sources of a line, as in "a man <and> un homme" (Zoph & Knight 2016, arXiv:1601.00710).
SOURCE_SEPARATOR = "<and>"
_LANGUAGES = re.compile(rf"(?:(?:{LANGUAGE_TAG.pattern}|{SOURCE_TAG.pattern})\s*)*")
# Stands for text that is not language, such as the placeholder of a message, anywhere in a line of either side.
SYMBOL = re.compile(r"<(\d+)>")
FEATURE_TAG = "<feature>"  # represents a feature vector in a source line (softsearch.text.features)
FIRST_TAG = len(SPECIALS)  # id of the first tag in vocabularies with tags


def with_eos(ids: Sequence[int]) -> list[int]:
    """Returns the ids with EOS at the end, as models read and write them.

    Sentences have no EOS elsewhere: it is added when a model reads them, here or in ``softsearch.data.dataset.pad``.
    """
    return [*ids, EOS]


def language_tag(lang: str) -> str:
    """Returns the tag that asks for a language: ``<2de>`` for German."""
    return f"<2{lang}>"


def source_tag(lang: str) -> str:
    """Returns the tag that names the language of the source: ``<from:en>`` for English."""
    return f"<from:{lang}>"


def without_tags(line: str) -> tuple[str, str | None]:
    """Returns a line without the tags of languages that it begins with, and the target language of such a tag."""
    tags = _LANGUAGES.match(line)
    assert tags is not None  # it matches an empty text, too
    return line[tags.end() :], tags[1]


def is_tag(word: str) -> bool:
    """Returns whether a word is a tag, which is one piece if the data has tags, and is not translated."""
    if word[:1] != "<":
        return False
    patterns = (LANGUAGE_TAG, SOURCE_TAG)
    return word in (SOURCE_SEPARATOR, FEATURE_TAG) or any(pattern.fullmatch(word) for pattern in patterns)
