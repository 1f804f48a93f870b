"""Places of tags in translations: each sentence's among its own words, by attention, in time linear in both."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.runtime.translation import Translation
from softsearch.text.markup import UNBROKEN, WORD, Node, Segment
from softsearch.text.reading import as_read
from softsearch.text.sentence_tags import Ends, SentenceTags, Span, Tag
from softsearch.text.vocabulary import SPECIALS, UNK

Spans = NDArray[np.int64]  # [spans, 2]
Weights = NDArray[np.float64]
_SPACE = "\u2581"
_TILT = 1e-3  # a word in another part of the sentence weighs this much less, so order breaks ties
_FAR = 16  # characters that may be skipped where two texts differ
_TAKEN = -1e9  # weight of a word that is in another element


class SegmentTags(NamedTuple):
    """The tags of a segment's sentences.

    Attributes:
        sentences: those of each sentence.
        first: for each node of the segment, the sentence in which it begins, and the index of its tag there.
        last: the same where it ends.
    """

    sentences: tuple[SentenceTags, ...]
    first: tuple[tuple[int, int], ...]
    last: tuple[tuple[int, int], ...]

    def places(self, found: Sequence[Sequence[Span]], starts: Sequence[int]) -> list[Span]:
        """The places of the segment's nodes, from those in each sentence's translation and where these start."""
        return [
            (starts[one] + found[one][index][0], starts[other] + found[other][last][1])
            for (one, index), (other, last) in zip(self.first, self.last, strict=True)
        ]


def segment_tags(segment: Segment, sentences: Sequence[str], start: int) -> SegmentTags:
    """Divides the nodes of a segment among its sentences, which begin with a language tag of ``start`` characters."""
    spans, at = list[Span](), 0
    for sentence in sentences:
        at = max(segment.text.find(sentence[start:], at), at)
        spans.append((at, at + len(sentence) - start))
        at = spans[-1][1]
    begins, ends = ([span[side] for span in spans] for side in (0, 1))
    shown = [place for place, letter in enumerate(segment.text) if not letter.isspace()]
    words = [match.span() for match in WORD.finditer(segment.text)]
    tags: list[list[Tag]] = [[] for _ in spans]
    first, last = list[tuple[int, int]](), list[tuple[int, int]]()

    def add(at: int, node: Node, anchor: Span, kind: Literal["element", "before", "behind"], ends: Ends) -> Span:
        around = [own for of, own in (first[node.parent], last[node.parent]) if of == at] if node.parent >= 0 else []
        begin, end = spans[at]
        place, inside = (
            (min(max(one, begin), end) - begin, min(max(other, begin), end) - begin)
            for one, other in (node[2:4], anchor)
        )
        tags[at].append(Tag(place, inside, around[0] if around else -1, kind, ends))
        return at, len(tags[at]) - 1

    for node in segment.nodes:
        low, high = (bisect_left(shown, place) for place in node[2:4])
        if low < high:
            anchor = shown[low], shown[high - 1] + 1
            one = min(bisect_right(ends, anchor[0]), len(spans) - 1)
            other = max(bisect_left(begins, anchor[1]) - 1, one)
            parts = dict.fromkeys((one, other))
            found = [add(at, node, anchor, "element", (at > one, at < other)) for at in parts]
        else:
            begin, end, is_behind = _neighbour(segment, node, words)
            around = (first[node.parent][0], last[node.parent][0]) if node.parent >= 0 else (0, len(spans) - 1)
            inside = max(begin, segment.nodes[node.parent].begin if node.parent >= 0 else 0)
            at = min(max(bisect_right(ends, inside), around[0]), around[1])
            found = [add(at, node, (begin, end), "behind" if is_behind else "before", (False, False))]
        first.append(found[0])
        last.append(found[-1])
    own = (SentenceTags(text, start, tuple(each)) for text, each in zip(sentences, tags, strict=True))
    return SegmentTags(tuple(own), tuple(first), tuple(last))


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


def with_places(translation: Translation, tags: SentenceTags) -> Translation:
    """A sentence's translations with the places of its tags instead of alignments.

    Raises:
        ConfigError: they have no alignments.
    """
    others = tuple(with_places(each, tags) for each in translation.alternatives)
    return replace(translation, alignments=None, places=_places(tags, translation), alternatives=others)


def _places(own: SentenceTags, translation: Translation) -> tuple[Span, ...]:
    """The places of a sentence's tags in its translation.

    An element gets the run of words that attend to its text with the greatest sum of weights above one half, or else
    the single word that does so most; a point gets the place before, or after, the word that attends to its neighbour.
    """
    words, copied = _words(own, translation.text)
    if not own.tags or not words:
        return ((0, 0),) * len(own.tags)
    anchors = {tag.anchor: None for tag in own.tags}
    column = {anchor: index for index, anchor in enumerate(anchors)}
    wanted = np.array([*anchors])
    weights = _weights(own, translation, words, wanted)
    for index, at in copied.items():
        weights[index] = (wanted[:, 0] <= at) & (at < wanted[:, 1])
    children: list[list[int]] = [[] for _ in range(len(own.tags) + 1)]
    for index, tag in enumerate(own.tags):
        children[tag.parent].append(index)
    runs: list[Span] = [(0, 0)] * len(own.tags)
    places: list[Span] = [(0, 0)] * len(own.tags)
    *inner, outermost = children
    for parent, inside in enumerate((outermost, *inner), -1):
        whole = (0, len(words)) if parent < 0 else runs[parent]
        elements = [index for index in inside if own.tags[index].kind == "element"] if whole[0] < whole[1] else []
        columns = [column[own.tags[index].anchor] for index in elements]
        if len(elements) == 1 and parent >= 0 and own.tags[parent].anchor == own.tags[elements[0]].anchor:
            found = {elements[0]: whole}
        else:
            ends = [own.tags[index].continues for index in elements]
            found = dict(_runs(elements, weights[slice(*whole), columns] - 0.5, ends, whole[0]))
        for index, (begin, end) in found.items():
            runs[index], places[index] = (begin, end), (words[begin][0], words[end - 1][1])
        taken = sorted((places[index], own.tags[index].continues) for index in found)
        best: dict[int, int] = {}
        for index in inside:
            if index in found:
                continue
            tag, at = own.tags[index], places[parent][0] if parent >= 0 else 0
            if whole[0] < whole[1]:
                if (of := column[tag.anchor]) not in best:
                    best[of] = whole[0] + int(weights[slice(*whole), of].argmax())
                continues = any(tag.continues)
                at = words[whole[1] - 1][1] if tag.continues[1] else words[best[of]][tag.kind == "behind"]
                at = words[whole[0]][0] if tag.continues[0] else at
                at = at if continues else _outside(at, taken, is_behind=tag.kind == "behind")
            places[index] = at, at
    return tuple(places)


def _words(own: SentenceTags, target: str) -> tuple[list[Span], dict[int, int]]:
    """The words of a translation, and where those that are copied stand in the source, by index.

    What is copied from inside the same tags, as an address is, is one word, and belongs where it stood.
    """
    words, found, text = [match.span() for match in WORD.finditer(target)], dict[Span, int](), own.sentence[own.start :]
    edges = sorted({edge for tag in own.tags for edge in tag.place})
    for match in UNBROKEN.finditer(target):
        at = text.find(match[0])
        end = at + len(match[0])
        first, last = (bisect_left(words, place, key=lambda word: word[0]) for place in match.span())
        is_there_once = at >= 0 and text.find(match[0], at + 1) < 0
        if is_there_once and last - first > 1 and bisect_right(edges, at) == bisect_left(edges, end):
            words[first:last], found[match.span()] = [match.span()], at
    return words, {index: found[word] for index, word in enumerate(words) if word in found}


def _outside(at: int, taken: Sequence[tuple[Span, Ends]], *, is_behind: bool) -> int:
    """A place, or the one before or after the element that encloses it."""
    index = bisect_right(taken, at, key=lambda each: each[0][0] - each[1][0]) - 1
    for (begin, end), (is_begun, goes_on) in taken[max(index - 1, 0) : index + 1]:
        if begin - is_begun < at < end + goes_on:
            return end if is_begun or (is_behind and not goes_on) else begin
    return at


def _runs(elements: Sequence[int], gains: Weights, continues: Sequence[Ends], start: int) -> Iterator[tuple[int, Span]]:
    """The runs of words for elements side by side; none for an element if no word is left.

    ``gains`` has the weight of each word for each element, above one half. An element that continues from the sentence
    before has the first words, and one that goes on has the last; of the others, the most certain have the first
    choice.
    """
    order = sorted(range(len(elements)), key=lambda index: (not any(continues[index]), -_best_run(gains[:, index])[0]))
    free = np.zeros(len(gains))
    for index in order:
        part = gains[:, index] + free
        if continues[index][0]:
            sums = part.cumsum()
            gain, begin, end = part[0], 0, int(sums.argmax()) + 1
        elif continues[index][1]:
            sums = part[::-1].cumsum()
            gain, begin, end = part[-1], len(part) - int(sums.argmax()) - 1, len(part)
        else:
            gain, begin, end = _best_run(part)
        if gain > _TAKEN / 2:
            free[begin:end] = _TAKEN
            yield elements[index], (start + begin, start + end)


def _best_run(gains: Weights) -> tuple[float, int, int]:
    """The run of words with the greatest sum, and that sum; at least one word."""
    if gains.max() <= 0:
        begin = int(gains.argmax())
        return float(gains[begin]), begin, begin + 1
    sums = np.concatenate([[0.0], gains.cumsum()])
    rises = sums[1:] - np.minimum.accumulate(sums[:-1])
    end = int(rises.argmax())
    return float(rises[end]), int(sums[: end + 1].argmin()), end + 1


def _weights(own: SentenceTags, translation: Translation, words: Sequence[Span], wanted: Spans) -> Weights:
    """How much each word of a translation attends to each of the wanted spans of its sentence, ``[words, spans]``."""
    targets = np.array(words)
    weights = np.zeros((len(words), len(wanted)))
    if translation.src_pieces:  # otherwise the sentence is blank for the model
        if translation.alignments is None:
            raise ConfigError("markup needs alignments; give the search alignments=True")
        src = piece_spans(translation.src_pieces, own.sentence)
        tgt = piece_spans(translation.tgt_pieces, translation.text)
        attention = translation.alignments * (src[:, 1] > src[:, 0])  # without EOS
        attention = attention / np.maximum(attention.sum(axis=1, keepdims=True), 1e-9)
        lengths = tgt[:, 1] - tgt[:, 0]
        by_word = _within(attention.T * lengths, tgt, targets).T  # [words, src_len]
        total = _within(lengths[None, :].astype(float), tgt, targets).T
        weights = _within(by_word, src, wanted + own.start) / (total + 1e-9)
    places = [spans.mean(axis=1) / max(spans.max(initial=0), 1) for spans in (targets, wanted)]
    return weights - _TILT * np.abs(places[0][:, None] - places[1])


def _within(values: Weights, spans: Spans, wanted: Spans) -> Weights:
    """Sums of values, each spread evenly over its span, within the wanted spans: ``[rows, wanted]``."""
    rates = (values / np.maximum(spans[:, 1] - spans[:, 0], 1)).T * (spans[:, 1] > spans[:, 0])[:, None]
    changes = np.zeros((max(spans.max(initial=0), wanted.max(initial=0)) + 1, len(values)))
    np.add.at(changes, spans[:, 0], rates)
    np.add.at(changes, spans[:, 1], -rates)
    sums = np.zeros((len(changes) + 1, len(values)))
    sums[1:] = changes.cumsum(axis=0).cumsum(axis=0)
    return (sums[wanted[:, 1]] - sums[wanted[:, 0]]).T


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


@lru_cache(2**12)
def _folded(letter: str) -> str:
    """A character in a form that is the same for all characters that models treat alike."""
    return normalize("NFKC", as_read(letter).text or letter).lower()[:1]
