"""Special tokens, the same in every vocabulary, model, bundle and search, and tags of languages."""

import re
from collections.abc import Sequence

PAD = 0
UNK = 1
BOS = 2
EOS = 3
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")

# Tag at the start of a source line: the language to translate into (Johnson et al. 2017, arXiv:1611.04558, section 3).
LANGUAGE_TAG = re.compile(r"<2([^\s<>]+)>")


def with_eos(ids: Sequence[int]) -> list[int]:
    """Returns the ids with EOS at the end, as models read and write them.

    Sentences have no EOS elsewhere: it is added where a model reads them, here or in ``softsearch.data.dataset.pad``.
    """
    return [*ids, EOS]


def language_tag(lang: str) -> str:
    """Returns the tag that asks for a language: ``<2de>`` for German."""
    return f"<2{lang}>"
