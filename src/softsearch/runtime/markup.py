"""Translation of markup: each segment's text is translated, and attention shows where its tags belong."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from softsearch.runtime.paragraphs import Paragraph, join_translations
from softsearch.runtime.tag_places import SegmentTags, segment_tags, with_places
from softsearch.runtime.translation import Translation
from softsearch.text.html_reader import HtmlReader
from softsearch.text.markup import Segment
from softsearch.text.markup_reader import MarkupReader
from softsearch.text.sentence_tags import SentenceTags


class Markup(NamedTuple):
    """A fragment of markup; it is joined like a ``Paragraph``.

    Attributes:
        parts: text that stays unchanged, and the segments.
        texts: the sentences of each segment.
        of_segments: the tags of each segment.
    """

    parts: tuple[str | Segment, ...]
    texts: tuple[Paragraph, ...]
    of_segments: tuple[SegmentTags, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The text to translate."""
        return tuple(sentence for text in self.texts for sentence in text.sentences)

    @property
    def tags(self) -> tuple[SentenceTags, ...]:
        """The tags of each sentence."""
        return tuple(sentence for tags in self.of_segments for sentence in tags.sentences)

    def join(self, translations: Sequence[Translation]) -> Translation:
        """Joins the translations of the fragment's sentences, which have places of tags or alignments, into one.

        Raises:
            ConfigError: they have neither.
        """
        placed = [
            each if each.places is not None else with_places(each, tags)
            for each, tags in zip(translations, self.tags, strict=True)
        ]
        return join_translations(placed, self._text)

    def _text(self, translations: Sequence[Translation]) -> str:
        each, texts, written = iter(translations), iter(zip(self.texts, self.of_segments, strict=True)), []
        for part in self.parts:
            if isinstance(part, str):
                written.append(part)
                continue
            text, tags = next(texts)
            written.append(_written(part, text, tags, [next(each) for _ in text.sentences]))
        return "".join(written)


def _written(segment: Segment, text: Paragraph, tags: SegmentTags, translations: Sequence[Translation]) -> str:
    parts, starts, end = list[str](), list[int](), 0
    for gap, translation in zip(text.gaps, translations, strict=False):
        parts += [gap, translation.text]
        starts.append(end + len(gap))
        end = starts[-1] + len(translation.text)
    found = [translation.places or () for translation in translations]
    return segment.write("".join((*parts, text.gaps[-1])), tags.places(found, starts))


def read_markup(
    lines: Iterable[str],
    first_line: int,
    tag_of: Callable[[str], str],
    split: Callable[[Sequence[str]], Sequence[Paragraph]] | None,
    *,
    html: bool = False,
) -> list[Markup]:
    """Reads fragments of XML or HTML, one from each line or text.

    Args:
        lines: the fragments.
        first_line: the number of the first one, for messages.
        tag_of: finds the language tag at the start of a fragment.
        split: splits text into sentences; by default segments are translated whole.
        html: whether to read all that browsers read, or to refuse tags that are not closed or close nothing.

    Raises:
        InputError: a tag is wrong; of HTML, far too many elements are open at once.
    """
    found = []
    for number, line in enumerate(lines, first_line):
        several = "\n" in line.rstrip("\n")
        where = f"text {number}, " if several else "", 1 if several else number
        reader = HtmlReader(*where) if html else MarkupReader(*where)
        tag = tag_of(line)
        reader.feed(line.removeprefix(tag))
        parts = reader.close()
        texts = [tag + part.text for part in parts if isinstance(part, Segment)]
        sentences = [Paragraph((text,), ("", "")) for text in texts] if split is None else split(texts)
        segments = (part for part in parts if isinstance(part, Segment))
        each = zip(segments, sentences, strict=True)
        tags = (segment_tags(segment, text.sentences, len(tag)) for segment, text in each)
        found.append(Markup(parts, tuple(sentences), tuple(tags)))
    return found


def join_fragments(blocks: Iterable[list[str]]) -> Iterator[list[str]]:
    """Joins lines, given in blocks, so that each element ends in the text where it begins.

    Raises:
        InputError: a tag is not closed, or closes nothing.
    """
    number, lines, reader = 0, list[str](), MarkupReader()
    for block in blocks:
        whole = []
        for line in block:
            lines.append(line)
            reader.feed(line)
            number += 1
            if reader.is_complete:
                whole.append("".join(lines))
                lines, reader = [], MarkupReader(first_line=number + 1)
        yield whole
    reader.close()
    if lines:
        yield ["".join(lines)]
