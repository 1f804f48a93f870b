"""The tags of sentences of markup: where elements begin and end in their text."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Span = tuple[int, int]
Ends = tuple[bool, bool]


class Tag(NamedTuple):
    """An element that begins or ends in a sentence, or a point in it.

    Attributes:
        place: begin and end in the sentence; of an element, of its text there.
        anchor: the characters whose translation decides: the element's, or a word next to the point.
        parent: index of the element around it in the sentence, -1 if that one holds the whole sentence.
        kind: an element with text, or a point before or behind its word.
        continues: whether an element begins before the sentence, and whether it ends after it.
    """

    place: Span
    anchor: Span
    parent: int
    kind: Literal["element", "before", "behind"]
    continues: Ends


class SentenceTags(NamedTuple):
    """The tags of a sentence, parents before children.

    Attributes:
        sentence: its text, with a language tag at the start.
        start: where the text begins behind the language tag.
        tags: with places that count from there.
    """

    sentence: str
    start: int
    tags: tuple[Tag, ...]


Tags = Sequence[SentenceTags]  # of some sentences
