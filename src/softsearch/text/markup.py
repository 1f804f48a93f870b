"""Segments of markup (XML or HTML): text without tags, and their way into another text.

Blocks (paragraphs, items, cells) keep their places. Between them are segments: text with inline tags.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from html import unescape as _unescape
from html.entities import html5
from itertools import accumulate, groupby
from typing import Literal, NamedTuple
from unicodedata import category

import regex

from softsearch.text.folding import invisible
from softsearch.text.html_elements import FOREIGN
from softsearch.text.reading import as_read

_BREAK = re.compile(r"</?br\b", re.IGNORECASE)
_ENTITY = re.compile(r"(&[^\W\d][\w.-]*;)")
_MAX_REFERENCE = 40  # characters
_PIECE = re.compile(r"\s++|&#?\w{1,38};|.", re.DOTALL)
_CLOSING = r"\p{Pe}\p{Pf}.,;:!?\u2026\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"
_FOLLOWS = regex.compile(rf"[{_CLOSING}](?![\p{{L}}\p{{N}}])")  # without a space before it
_AFTER_WORD = regex.compile(r"[\p{L}\p{M}\p{Pe}\p{Pf}]")  # what a number may be glued to
_AFTER_SIGN = regex.compile(rf"[\p{{L}}\p{{M}}\p{{N}}{_CLOSING}]")
_UNSEEN = re.compile(
    r"<(?:!(?!\[)|\?|(?:wbr|script|style|link|meta)\b)", re.IGNORECASE
)  # points without a place in a line
_ZEROS = re.compile(r"(?<=&#)0++(?=[0-9])|(?<=&#[xX])0++(?=[0-9a-fA-F])")
_NO_CHARACTER = re.compile(r"(?<=&#)[0-9]{8,}+|(?<=&#[xX])[0-9a-fA-F]{8,}+")  # int() refuses very long ones
_SPACES = re.compile(r"[ \t\n\r\f]+")
# A word or number, a character of a script without spaces, or any other character.
WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*+"
    r"|[\p{L}\p{N}\p{M}_]++(?:(?:[-'\u2019]|\p{Cf}++|(?<=\p{N})[.,:/](?=\p{N}))[\p{L}\p{N}\p{M}_]++)*+|\S"
)
UNBROKEN = regex.compile(r"[\p{L}\p{N}]\S*[\p{L}\p{N}]")  # from letter to letter, as an address


def unescape(text: str) -> str:
    """Text with its references replaced by characters, U+FFFD for a number that is none."""
    return _unescape(_NO_CHARACTER.sub("99999999", _ZEROS.sub("", text)))


class Node(NamedTuple):
    """An element, or a point (a single tag, or text copied unchanged), in the text of a segment."""

    opening: str  # the tag, or the whole point
    closing: str  # the end tag; "" for a point
    begin: int  # index of the first character inside
    end: int  # index of the first character after it
    parent: int  # index of the enclosing element, or -1
    spaces: tuple[bool, bool] = (False, False)  # whether one must precede and follow a point


class Segment(NamedTuple):
    """Text without its tags, and its nodes, parents before children."""

    text: str
    nodes: tuple[Node, ...]

    def children(self) -> list[list[int]]:
        """The indices of each node's children, and at the end of the nodes without a parent."""
        found: list[list[int]] = [[] for _ in range(len(self.nodes) + 1)]
        for index, node in enumerate(self.nodes):
            found[node.parent].append(index)
        return found

    def write(self, text: str, places: Sequence[tuple[int, int]]) -> str:
        """Writes another text with the nodes at these places: the first character inside, and the first after it.

        Places are nested like the nodes, and do not overlap otherwise. A point precedes an element that begins at the
        same index.
        """

        def last_first(nodes: Sequence[int]) -> list[int]:
            return sorted(nodes, key=lambda index: (places[index][0], len({*places[index]}), index), reverse=True)

        *children, outermost = map(last_first, self.children())
        first, last = len(text) - len(text.lstrip()), len(text.rstrip()) - 1  # without white space
        written, at, todo = [""], 0, outermost
        while todo:
            index = todo.pop()
            is_end, index = index < 0, max(index, ~index)
            node, to = self.nodes[index], places[index][is_end]
            written += [escape(text[at:to], quote=False)] if at < to else []
            at = to
            if is_end:
                written.append(node.closing)
                continue
            is_apart = text[at - 1 : at].isspace() or written[-1].endswith(" ")
            written += [" "] if node.spaces[0] and at > first and not is_apart else []
            if _BREAK.match(node.opening) and not node.spaces[0]:
                written[-1] = written[-1].removesuffix(" ")
            written.append(node.opening)
            is_apart = at > last or text[at].isspace() or _FOLLOWS.match(text, at)
            written += [" "] if node.spaces[1] and not is_apart else []
            todo += [*([~index] if node.closing else []), *children[index]]
        return "".join([*written, escape(text[at:], quote=False)])


@dataclass
class Element:
    """An element, or a comment etc., while it is read."""

    name: str  # or the beginning of a comment, a declaration etc.
    raw: str  # the tag
    place: tuple[int, int]  # line and column
    index: int  # index of the tag's token
    is_block: bool
    is_copied: bool  # is not translated
    is_closed: bool = False
    has_text: bool = False  # outside its inner elements
    is_empty: bool = True  # without text, white space and line breaks, also in inner elements
    lines: int = 0  # texts with line ends inside it
    inner: "list[Element]" = field(default_factory=list)  # direct children

    @property
    def is_foreign(self) -> bool:
        """Tells whether it is a formula or a drawing, copied: names in it have other meanings than in HTML."""
        return self.is_copied and self.name.rpartition(":")[2] in FOREIGN


class Token(NamedTuple):
    """A tag, a text or a point; a tag belongs to an element."""

    kind: Literal["text", "open", "close", "point"]
    raw: str
    element: Element | None = None
    is_line_end: bool = False  # a line end to keep

    @property
    def is_block(self) -> bool:
        """Tells whether it keeps its place, between segments."""
        return self.is_line_end or (self.element is not None and self.element.is_block)

    @property
    def is_inside(self) -> bool:
        """Tells whether it needs a place in a segment's text."""
        if self.kind == "text":
            return is_shown(self.raw)
        return self.kind in ("open", "close") and self.element is not None and self.element.is_closed


def text_tokens(raw: str, *, with_lines: bool) -> Iterator[Token]:
    """The tokens of a text: unknown entities are points, and with lines, line ends keep their places."""
    for part in re.split("(\n)", raw) if with_lines else [raw]:
        for each in filter(None, _ENTITY.split(part)):
            is_unknown = bool(_ENTITY.fullmatch(each)) and each[1:] not in html5
            yield Token("point" if is_unknown else "text", each, is_line_end=with_lines and each == "\n")


def parts(tokens: Sequence[Token]) -> Iterator[str | Segment]:
    """A fragment's segments, and the text between them."""
    for is_block, group in groupby(tokens, lambda token: token.is_block):
        if is_block:
            yield "".join(token.raw for token in group)
        else:
            yield from _segment([*group])


def _segment(tokens: list[Token]) -> Iterator[str | Segment]:
    """A segment, without the tokens around its text, and these tokens."""
    first, last = 0, len(tokens)
    while first < last:
        start, end = tokens[first], tokens[last - 1]
        is_around = start.kind == "open" and start.element is end.element and start is not end
        first += is_around or not start.is_inside
        last -= is_around or (start.is_inside and not end.is_inside)
        if not is_around and start.is_inside and end.is_inside:
            break
    around, inside = [tokens[:first], tokens[last:]], tokens[first:last]
    before, behind = ("".join(token.raw for token in each) for each in around)
    if not any(token.kind == "text" and token.is_inside for token in inside):
        yield "".join([before, *(token.raw for token in inside), behind])
        return
    if inside[0].kind == "text":
        at, _ = _shown(inside[0].raw)
        before, inside[0] = before + inside[0].raw[:at], inside[0]._replace(raw=inside[0].raw[at:])
    if inside[-1].kind == "text":
        _, at = _shown(inside[-1].raw)
        behind, inside[-1] = inside[-1].raw[at:] + behind, inside[-1]._replace(raw=inside[-1].raw[:at])
    yield before
    yield _without_tags([*_with_notes(inside)])
    yield behind


def _with_notes(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens of a segment, with each number that is glued to a word by its tags as one point.

    The model would read both as one word: a mark of a footnote, an exponent, an index.
    """
    texts = [unescape(token.raw) if token.kind == "text" else "" for token in tokens]
    following = [*accumulate(reversed(texts), lambda after, text: _visible(text)[:1] or after, initial=" ")][::-1]
    letters, signs, links = (
        [*accumulate(map(count, tokens, texts), initial=0)]
        for count in (
            lambda _, text: sum(map(str.isalpha, text)),
            lambda _, text: bool(_visible(text).strip()),
            lambda token, _: token.kind == "open" and token.element.name == "a",
        )
    )
    opened, ends = list[int](), dict[int, int]()
    for index, token in enumerate(tokens):
        if token.is_inside and token.kind == "open":
            opened.append(index)
        elif token.is_inside and token.kind == "close":
            ends[opened.pop()] = index + 1
    before, at = " ", 0
    while at < len(tokens):
        end, element = ends.get(at, at), tokens[at].element
        if element is not None and signs[end] > signs[at]:
            is_link = links[end] > links[at]
            is_raised = element.name in ("sup", "sub")
            is_note = is_link and is_raised
            word = _AFTER_SIGN if is_link or is_raised else _AFTER_WORD
            is_glued = letters[end] == letters[at] and word.fullmatch(before)
            if (is_note or is_glued) and not following[end].isalnum():
                yield Token("point", "".join(token.raw for token in tokens[at:end]), element)
                at = end
                continue
        yield tokens[at]
        before = _visible(texts[at])[-1:] or before
        at += 1


def is_shown(raw: str) -> bool:
    """Tells whether a model reads anything in a text of markup."""
    return bool(as_read(unescape(raw)).text)


def _shown(raw: str) -> tuple[int, int]:
    """Where what a model reads in a text begins and ends: white space and invisible characters around it are lost."""
    begin, end = 0, len(raw)
    while (piece := _PIECE.match(raw, begin)) and not is_shown(piece[0]):
        begin = piece.end()
    while end > begin:
        start = raw.rfind("&", max(end - _MAX_REFERENCE, begin), end) if raw[end - 1] == ";" else -1
        start = start if start >= 0 and _PIECE.fullmatch(raw, start, end) else end - 1
        if is_shown(raw[start:end]) or category(raw[end - 1]) == "Mn":  # such as the selector of an emoji's form
            break
        end = start
    return begin, end


def _visible(text: str) -> str:
    return text.translate(_invisible())


@cache
def _invisible() -> dict[int, str]:
    return str.maketrans({char: "" for char, text in invisible().items() if not text})


def _without_tags(tokens: Sequence[Token]) -> Segment:
    text, nodes, inside = "", list[Node](), [-1]
    apart: list[int] = []  # points behind the last text; a space may follow the last one
    since: list[int] = []  # nodes that begin or end behind the last text
    for token in tokens:
        is_spaced = text == "" or text.endswith(" ")
        if token.kind == "text":
            more = _SPACES.sub(" ", unescape(token.raw))
            for index in apart[-1:] if more.startswith(" ") else ():
                nodes[index] = nodes[index]._replace(spaces=(nodes[index].spaces[0], True))
            if apart and text.endswith(" ") and _FOLLOWS.match(more):  # the space was for the point
                text = text[:-1]
                for index in since:
                    begin, end = (min(place, len(text)) for place in nodes[index][2:4])
                    nodes[index] = nodes[index]._replace(begin=begin, end=end)
            apart, since = [], []
            text += more[is_spaced and more.startswith(" ") :]
        elif token.kind == "close":
            since.append(inside.pop())
            nodes[since[-1]] = nodes[since[-1]]._replace(closing=token.raw, end=len(text))
        else:
            if not is_spaced and _BREAK.match(token.raw):
                text += " "
            is_seen = not token.is_inside and not _UNSEEN.match(token.raw)
            is_begun = is_spaced and is_seen and not apart
            apart += [len(nodes)] * is_seen
            since.append(len(nodes))
            nodes.append(Node(token.raw, "", len(text), len(text), inside[-1], (is_begun, False)))
            inside += [len(nodes) - 1] * token.is_inside
    return Segment(text.rstrip(), tuple(nodes))
