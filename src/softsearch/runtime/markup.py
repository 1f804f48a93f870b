"""Translation of markup: each segment's text is translated, and attention shows where its tags belong."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.runtime.paragraphs import Paragraph, join_translations
from softsearch.runtime.translation import Translation
from softsearch.text.markup import UNBROKEN, WORD, Node, Segment
from softsearch.text.markup_reader import MarkupReader
from softsearch.text.vocabulary import SPECIALS, UNK

Span = tuple[int, int]
Spans = NDArray[np.int64]  # [spans, 2]
Weights = NDArray[np.float64]
_SPACE = "\u2581"
_TILT = 1e-3  # a word in another part of the sentence weighs this much less, so order breaks ties
_FAR = 16  # characters that may be skipped where two texts differ


class Markup(NamedTuple):
    """A fragment of markup; it is joined like a :class:`Paragraph`.

    Attributes:
        parts: text that stays unchanged, and the segments.
        texts: the sentences of each segment.
        tag: the language tag at the start of each sentence, or "".
    """

    parts: tuple[str | Segment, ...]
    texts: tuple[Paragraph, ...]
    tag: str

    @property
    def sentences(self) -> tuple[str, ...]:
        """The text to translate."""
        return tuple(sentence for text in self.texts for sentence in text.sentences)

    def join(self, translations: Sequence[Translation]) -> Translation:
        """Joins the translations of the fragment's sentences, which have alignments, into one.

        Raises:
            ConfigError: they have no alignments.
        """
        return join_translations(translations, self._text)

    def _text(self, translations: Sequence[Translation]) -> str:
        each, texts, written = iter(translations), iter(self.texts), []
        for part in self.parts:
            if isinstance(part, str):
                written.append(part)
                continue
            text = next(texts)
            written.append(self._segment(part, text, [next(each) for _ in text.sentences]))
        return "".join(written)

    def _segment(self, segment: Segment, text: Paragraph, translations: Sequence[Translation]) -> str:
        target, src_at, pairs = "", 0, []
        for gap, sentence, translation in zip(text.gaps, text.sentences, translations, strict=False):
            target += gap
            src_at = max(segment.text.find(sentence.removeprefix(self.tag), src_at), src_at)
            pairs.append(_Pair(sentence, src_at - len(self.tag), translation, len(target)))
            src_at += len(sentence) - len(self.tag)
            target += translation.text
        target += text.gaps[-1]
        return segment.write(target, _places(segment, target, pairs) if segment.nodes else ())


def read_markup(
    lines: Iterable[str],
    first_line: int,
    tag_of: Callable[[str], str],
    split: Callable[[Sequence[str]], Sequence[Paragraph]] | None,
) -> list[Markup]:
    """Reads fragments of XML or HTML, one from each line or text.

    Args:
        lines: the fragments.
        first_line: the number of the first one, for messages.
        tag_of: finds the language tag at the start of a fragment.
        split: splits text into sentences; by default segments are translated whole.

    Raises:
        InputError: a tag is not closed, or closes nothing.
    """
    found = []
    for number, line in enumerate(lines, first_line):
        several = "\n" in line.rstrip("\n")
        reader = MarkupReader(f"text {number}, " if several else "", 1 if several else number)
        tag = tag_of(line)
        reader.feed(line.removeprefix(tag))
        parts = reader.close()
        texts = [tag + part.text for part in parts if isinstance(part, Segment)]
        sentences = [Paragraph((text,), ("", "")) for text in texts] if split is None else split(texts)
        found.append(Markup(parts, tuple(sentences), tag))
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


class _Pair(NamedTuple):
    """A sentence and its translation, with their places in the segment and in its translation."""

    source: str
    src_at: int
    translation: Translation
    tgt_at: int


def _places(segment: Segment, target: str, pairs: Sequence[_Pair]) -> list[Span]:
    """The places of a segment's nodes in its translation.

    An element gets the run of words that attend to its text with the greatest sum of weights above one half, or else
    the single word that does so most; a point gets the place before, or after, the word that attends to its neighbour.
    """
    words, copied = _words(segment, target)
    sources = [match.span() for match in WORD.finditer(segment.text)]
    is_element = [bool(segment.text[node.begin : node.end].strip()) for node in segment.nodes]
    anchors = [
        (node.begin, node.end, False) if has_text else _neighbour(segment, node, sources)
        for node, has_text in zip(segment.nodes, is_element, strict=True)
    ]
    weights = _weights(pairs, words, anchors)
    for index, at in copied.items():
        weights[index] = [begin <= at < end for begin, end, _ in anchors]
    runs: list[Span] = [(0, 0)] * len(anchors)
    places: list[Span] = [(0, 0)] * len(anchors)
    *children, outermost = segment.children()
    for parent, inside in enumerate((outermost, *children), -1):
        whole = (0, len(words)) if parent < 0 else runs[parent]
        found = _runs(weights, [index for index in inside if is_element[index]], whole)
        for index, (begin, end) in found.items():
            runs[index], places[index] = (begin, end), (words[begin][0], words[end - 1][1])
        taken = [places[index] for index in found]
        for index in inside:
            if index not in found:
                at = places[parent][0] if parent >= 0 else 0
                if whole[0] < whole[1]:
                    word = words[whole[0] + weights[slice(*whole), index].argmax()]
                    at = _outside(word[anchors[index][2]], taken, behind=anchors[index][2])
                places[index] = at, at
    return places


def _words(segment: Segment, target: str) -> tuple[list[Span], dict[int, int]]:
    """The words of a translation, and where those that are copied stand in the source, by index.

    What is copied from inside the same tags, as an address is, is one word, and belongs where it stood.
    """
    words, found = [match.span() for match in WORD.finditer(target)], dict[Span, int]()
    edges = sorted({edge for node in segment.nodes for edge in node[2:4]})
    for match in UNBROKEN.finditer(target):
        at, end = segment.text.find(match[0]), segment.text.find(match[0]) + len(match[0])
        first, last = (bisect_left(words, place, key=lambda word: word[0]) for place in match.span())
        is_there_once = at >= 0 and segment.text.find(match[0], at + 1) < 0
        if is_there_once and last - first > 1 and bisect_right(edges, at) == bisect_left(edges, end):
            words[first:last], found[match.span()] = [match.span()], at
    return words, {index: found[word] for index, word in enumerate(words) if word in found}


def _neighbour(segment: Segment, node: Node, words: Sequence[Span]) -> tuple[int, int, bool]:
    """The word after a point, or before it, in its element, and whether it is the one before."""
    text, at = segment.text, node.begin
    begin, end = (0, len(text)) if node.parent < 0 else segment.nodes[node.parent][2:4]
    index = bisect_right(words, at, key=lambda word: word[1])
    behind, before = words[index : index + 1], words[max(index - 1, 0) : index]
    has_behind, has_before = bool(behind) and behind[0][0] < end, bool(before) and before[0][1] > begin
    is_close = not text[at - 1 : at].isspace() and not text[at : at + 1].isalnum()
    if has_before and (is_close or not has_behind):
        return *before[0], True
    return (*behind[0], False) if has_behind else (at, at, False)


def _outside(at: int, taken: Sequence[Span], *, behind: bool) -> int:
    """A place, or the one before or after the element that encloses it."""
    return next((place[behind] for place in taken if place[0] < at < place[1]), at)


def _runs(weights: Weights, elements: Sequence[int], whole: Span) -> dict[int, Span]:
    """The runs of words for elements side by side, the most certain first; none if no word is left for an element."""
    free, found = [whole], dict[int, Span]()
    for element in sorted(elements, key=lambda element: -_best_run(weights[:, element], whole)[0]):
        tried = [(*_best_run(weights[:, element], part), part) for part in free if part[0] < part[1]]
        if tried:
            _, begin, end, around = max(tried, key=itemgetter(0))
            found[element] = begin, end
            free.remove(around)
            free += [(around[0], begin), (end, around[1])]
    return found


def _best_run(weights: NDArray[np.float64], within: Span) -> tuple[float, int, int]:
    """The run of words with the greatest sum of weights above one half, and that sum."""
    part = weights[slice(*within)] - 0.5
    if not part.size:
        return -np.inf, *within
    if part.max() <= 0:
        begin = int(part.argmax())
        return float(part[begin]), within[0] + begin, within[0] + begin + 1
    sums = np.concatenate([[0.0], part.cumsum()])
    gains = sums[1:] - np.minimum.accumulate(sums[:-1])
    end = int(gains.argmax())
    return float(gains[end]), within[0] + int(sums[: end + 1].argmin()), within[0] + end + 1


def _weights(pairs: Sequence[_Pair], words: Sequence[Span], anchors: Sequence[tuple[int, int, bool]]) -> Weights:
    """How much each word of a translation attends to each of the anchors, ``[words, anchors]``."""
    targets, wanted = np.array(words).reshape(-1, 2), np.array([anchor[:2] for anchor in anchors])
    sums, total = np.zeros((len(words), len(anchors))), np.full((len(words), 1), 1e-9)
    for source, src_at, translation, tgt_at in pairs:
        if not translation.src_pieces:  # blank for the model
            continue
        if translation.alignments is None:
            raise ConfigError("markup needs alignments; give the search alignments=True")
        src = piece_spans(translation.src_pieces, source) + src_at
        tgt = piece_spans(translation.tgt_pieces, translation.text) + tgt_at
        lengths = src[:, 1] - src[:, 0]
        attention = translation.alignments * (lengths > 0)  # without EOS
        attention = attention / np.maximum(attention.sum(axis=1, keepdims=True), 1e-9)
        shares = attention @ (_overlap(src, wanted) / np.maximum(lengths, 1)[:, None])  # [tgt_len, anchors]
        characters = _overlap(targets, tgt)  # [words, tgt_len]
        sums += characters @ shares
        total += characters.sum(axis=1, keepdims=True)
    places = [spans.mean(axis=1) / max(spans.max(initial=0), 1) for spans in (targets, wanted)]
    return sums / total - _TILT * np.abs(places[0][:, None] - places[1])


def _overlap(one: Spans, other: Spans) -> NDArray[np.int64]:
    """How many characters spans have in common, ``[one, other]``."""
    end, begin = np.minimum(one[:, None, 1], other[:, 1]), np.maximum(one[:, None, 0], other[:, 0])
    return np.maximum(end - begin, 0)


def piece_spans(pieces: Sequence[str], text: str) -> Spans:
    """The span of each piece in a text, even if the model normalises it; an unknown one lies between its neighbours."""
    names = (name if name not in SPECIALS else "" for name in pieces)
    letters = [(_folded(letter), index) for index, name in enumerate(names) for letter in name.replace(_SPACE, "")]
    places = [place for place, letter in enumerate(text) if not letter.isspace()]
    one, other = [letter for letter, _ in letters], [_folded(text[place]) for place in places]
    found: list[Span | None] = [None] * len(pieces)
    for number, at in _matches(one, other):
        index, place = letters[number][1], places[at]
        found[index] = (found[index] or (place, 0))[0], place + 1
    spans, end = [], 0
    for index, (name, span) in enumerate(zip(pieces, found, strict=True)):
        if span is None and (name == SPECIALS[UNK] or name not in SPECIALS):
            spans.append((end, next((each[0] for each in found[index:] if each), len(text))))
        else:
            spans.append(span or (0, 0))
            end = span[1] if span else end
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def _matches(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The indices of equal characters in two nearly equal texts, in order; takes linear time."""
    at, place = 0, 0
    while at < len(one) and place < len(other):
        skips = ((count - k, k) for count in range(_FAR) for k in range(count + 1))
        near = ((i, k) for i, k in skips if one[at + i : at + i + 1] == other[place + k : place + k + 1] != [])
        skipped, skipped_other = next(near, (0, 0))
        at, place = at + skipped, place + skipped_other
        if one[at] == other[place]:
            yield at, place
        at, place = at + 1, place + 1


def _folded(letter: str) -> str:
    """A character in a form that is the same for all characters that models treat alike."""
    return normalize("NFKC", letter).lower()[:1]
