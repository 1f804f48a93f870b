"""Units of text: words, or characters where the script has no spaces between words."""

from collections.abc import Sequence
from typing import Literal

from softsearch.data.corpora.base import TextForm
from softsearch.text.word_links import UNSPACED

Unit = Literal["words", "characters"]

# sacreBLEU's tokenizers of scripts without spaces between words (ISO 15924); not ja-mecab, which needs MeCab.
_TOKENIZERS = dict.fromkeys(("Hans", "Hant", "Hani"), "zh") | dict.fromkeys(
    ("Jpan", "Hira", "Kana", "Hrkt", "Thai", "Laoo", "Khmr", "Mymr", "Tibt", "Lana", "Tale", "Talu", "Tavt"), "char"
)


def tokenizer_for(text_form: TextForm, lang: str) -> str:
    """Returns sacreBLEU's tokenizer for a text, such as ``char`` for ``th``, ``tha_Thai`` and ``dz``."""
    from softsearch.data.scripts import script_of  # its libraries take a tenth of a second to import

    return "none" if text_form == "lc_tok" else _TOKENIZERS.get(script_of(lang), "13a")


def is_unspaced(lines: Sequence[str]) -> bool:
    """Tells whether most characters of a text are of scripts without spaces between words."""
    text = "".join("".join(lines).split())
    return 2 * len(UNSPACED.findall(text)) > len(text)


def unit_of(lines: Sequence[str]) -> Unit:
    """Returns the unit in which the lengths of lines are counted."""
    return "characters" if is_unspaced(lines) else "words"


def lengths(lines: Sequence[str]) -> list[int]:
    """Returns the length of each line in the unit of the text; white space does not count."""
    if is_unspaced(lines):
        return [sum(map(len, line.split())) for line in lines]
    return [len(line.split()) for line in lines]
