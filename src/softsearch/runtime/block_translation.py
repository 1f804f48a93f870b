"""Translation of the blocks of a stream, in order; lines that cannot be translated may be left blank."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from softsearch.errors import InputError
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator
from softsearch.text.features import Features

ENDS = "\r\n"


class Block(NamedTuple):
    """Lines, or feature vectors, that are translated together."""

    lines: Sequence[str] | None
    features: Features | None
    prefixes: Sequence[str] | None
    first_line: int

    @property
    def is_empty(self) -> bool:
        """Tells whether it has nothing, because nothing more can be read for now."""
        return not self.lines and (self.features is None or not len(self.features))


class TranslatedBlock(NamedTuple):
    """The translations of a block, and the lines, by their numbers, that were left blank, with the reason."""

    translations: list[Translation]
    blank: list[tuple[int, InputError]]


Translate = Callable[[Translator, Block], TranslatedBlock]


def translate_block(
    translator: Translator, block: Block, *, keywords: Mapping[str, Any], may_be_blank: bool
) -> TranslatedBlock:
    """Translates a block; a line that cannot be translated, and may be left blank, is found by halving it.

    Raises:
        SoftsearchError: as ``Translator.translate``.
    """
    lines, features, prefixes, first_line = block
    try:
        found = translator.translate(lines, features=features, prefixes=prefixes, first_line=first_line, **keywords)
    except InputError as error:
        if not lines or not may_be_blank:
            raise
        if len(lines) == 1:
            blank = translator.translate([lines[0][len(lines[0].rstrip(ENDS)) :]], **keywords)
            return TranslatedBlock(blank, [(first_line, error)])
    else:
        return TranslatedBlock(found, [])
    half, whole = len(lines) // 2, TranslatedBlock([], [])
    for part in (slice(half), slice(half, None)):
        own = Block(lines[part], None, prefixes and prefixes[part], first_line + (part.start or 0))
        translated = translate_block(translator, own, keywords=keywords, may_be_blank=may_be_blank)
        whole.translations.extend(translated.translations)
        whole.blank.extend(translated.blank)
    return whole
