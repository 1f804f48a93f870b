"""Markup (XML or HTML): extracts text without tags, and puts the tags into another text.

Blocks (paragraphs, items, cells) keep their places. Between them are segments: text with inline tags.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from html.entities import html5
from itertools import groupby
from typing import Literal, NamedTuple

import regex

from softsearch.errors import InputError
from softsearch.text.corpus import is_blank

_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())  # noqa: SIM905
_OPTIONAL = frozenset(  # elements whose end tag may be missing
    "html head body p li dt dd option optgroup rt rp colgroup caption thead tbody tfoot tr td th".split()  # noqa: SIM905
)
_BLOCKS = (_OPTIONAL - {"rt", "rp"}) | frozenset(
    "address article aside audio blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 "  # noqa: SIM905
    "h2 h3 h4 h5 h6 header hgroup hr iframe legend main menu nav noscript object ol pre search section select summary "
    "table template textarea title ul video".split()
)
_WITH_LINES = ("pre", "textarea")  # their line ends are kept
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_COPIED = {begin: re.compile(re.escape(end)) for begin, end in _ENDS.items()} | {
    name: re.compile(rf"(?=</{name}\b)", re.IGNORECASE) for name in ("script", "style")
}  # the end of each
_NAME = r"[^\W\d][^\s/<>]*+"
_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+)"""
_ATTRIBUTE = re.compile(rf"([^\s/<>=]++)\s*+=\s*+({_VALUE})")
_OPEN = re.compile(rf"<({_NAME})((?:[\s/]++|[^\s/<>=]++(?:\s*+=\s*+(?P<value>{_VALUE}))?+)*+)")
_CLOSE = re.compile(rf"</({_NAME})[^<>]*+")
_DOCTYPE = re.compile(r"<!([^\W\d])[^\[>]*+(?:\[.*?\]\s*)?", re.DOTALL)
_MAX_TAG = 2**16  # characters in a tag over several lines
_TEXT = re.compile("<?[^<]*+")
_ENTITY = re.compile(r"(&[^\W\d][\w.-]*;)")
_SPACES = re.compile(r"[ \t\n\r\f]+")
# A word or number, a character of a script without spaces, or any other character.
WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*+"
    r"|[\p{L}\p{N}\p{M}_]++(?:(?:[-'\u2019]|(?<=\p{N})[.,:/](?=\p{N}))[\p{L}\p{N}\p{M}_]++)*+|\S"
)
UNBROKEN = regex.compile(r"[\p{L}\p{N}]\S*[\p{L}\p{N}]")  # from letter to letter, as an address


class Node(NamedTuple):
    """An element, or a point (a single tag, or text copied unchanged), in the text of a segment."""

    opening: str  # the tag, or the whole point
    closing: str  # the end tag; "" for a point
    begin: int  # index of the first character inside
    end: int  # index of the first character after it
    parent: int  # index of the enclosing element, or -1
    spaces: tuple[bool, bool] = (False, False)  # whether one must precede and follow a point with text


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
            written += [" "] if node.spaces[0] and text[:at].strip() and not is_apart else []
            written.append(node.opening)
            written += [" "] if node.spaces[1] and text[at:].strip() and not text[at].isspace() else []
            todo += [*([~index] if node.closing else []), *children[index]]
        return "".join([*written, escape(text[at:], quote=False)])


@dataclass
class _Element:
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
    inner: "list[_Element]" = field(default_factory=list)  # direct children


class _Token(NamedTuple):
    kind: Literal["text", "open", "close", "point", "kept"]  # kept: a point with its own text
    raw: str
    element: _Element | None = None
    is_line_end: bool = False  # a line end to keep

    @property
    def is_block(self) -> bool:
        return self.is_line_end or (self.element is not None and self.element.is_block)

    @property
    def is_inside(self) -> bool:
        """Tells whether it needs a place in a segment's text."""
        if self.kind == "text":
            return not is_blank(unescape(self.raw))
        return self.kind in ("open", "close") and self.element is not None and self.element.is_closed


class MarkupReader:
    """Reads a markup fragment, whole or line by line; ``where`` and ``first_line`` are for messages."""

    def __init__(self, where: str = "", first_line: int = 1) -> None:
        self._where, self._place = where, (first_line, 1)
        self._tokens: list[_Token] = []
        self._open: list[_Element] = []
        self._rest = ""  # a tag that continues on the next line
        self._with_lines = 0  # number of open elements with line ends to keep

    @property
    def is_complete(self) -> bool:
        """Tells whether everything that was opened is closed."""
        return not self._rest and all(element.name in _VOID for element in self._open)

    def feed(self, text: str) -> None:
        """Reads more text.

        Raises:
            InputError: a tag is wrong, or an end tag closes nothing.
        """
        text, at, self._rest = self._rest + text, 0, ""
        while at < len(text) and not self._rest:
            if (end := self._read(text, at)) == at:
                self._rest = text[at:]
                if len(self._rest) > _MAX_TAG:
                    raise self._unfinished(self._rest)
            at = end

    def close(self) -> tuple[str | Segment, ...]:
        """Returns the fragment's parts: unchanged text, and segments.

        Raises:
            InputError: something is not closed.
        """
        if self._rest:
            raise self._unfinished(self._rest)
        self._close_until(0, "the end")
        return tuple(_parts(self._tokens))

    def _error(self, message: str, place: tuple[int, int] | None = None) -> InputError:
        line, column = place or self._place
        return InputError(f"{self._where}line {line}, column {column}: {' '.join(message.split())}")

    def _unfinished(self, tag: str) -> InputError:
        return self._error(f"the tag {tag:.40} is not closed with >; add it, or write &lt; for a < that is text")

    def _read(self, text: str, at: int) -> int:
        """Returns the end of the token that begins at an index; the same index if more text is needed."""
        if self._open and (until := _COPIED.get(self._open[-1].name)):
            found = until.search(text, at)
            if (end := found.start() if found else len(text)) > at:
                self._add(_Token("point", text[at:end]))
                return end
            if found and found.end() > at:
                self._close(found[0], self._open[-1].name)
                return found.end()
        elif begin := next((begin for begin in _ENDS if text.startswith(begin, at)), None):
            self._begin(begin, begin)
            return at + len(begin)
        if (tag := _OPEN.match(text, at) or _CLOSE.match(text, at) or _DOCTYPE.match(text, at)) is None:
            return self._read_text(text, at)
        end = tag.end()
        if (after := text[end : end + 1]) != ">":
            if after not in ("", "=", "["):
                raise self._unfinished(text[at:end])
            return at
        raw, name = text[at : end + 1], tag[1].lower()
        if tag.re is _DOCTYPE:
            self._add(_Token("point", raw, is_line_end=True))
        elif tag.re is _CLOSE:
            self._close(raw, name)
        else:
            self._begin(raw, name, tag[2], is_empty=tag[2].endswith("/") and tag.end("value") != end)
        return end + 1

    def _read_text(self, text: str, at: int) -> int:
        found = _TEXT.match(text, at)
        assert found is not None  # it matches anything
        for part in re.split("(\n)", found[0]) if self._with_lines else [found[0]]:
            for raw in filter(None, _ENTITY.split(part)):
                is_line_end = bool(self._with_lines) and raw == "\n"
                is_foreign = _ENTITY.fullmatch(raw) and raw[1:] not in html5
                self._add(_Token("kept" if is_foreign else "text", raw, is_line_end=is_line_end))
                for element in self._open[-1:]:
                    element.has_text |= not is_blank(raw)
                    element.is_empty = False
                    element.lines += "\n" in raw
                for element in reversed(self._open) if is_line_end else ():
                    if element.is_block:
                        break
                    element.is_block = True
        return found.end()

    def _begin(self, raw: str, name: str, attributes: str = "", *, is_empty: bool = False) -> None:
        values = {each[1].lower(): each[2].strip("\"'") for each in _ATTRIBUTE.finditer(attributes)}
        is_kept = values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()
        is_copied = name in _COPIED or (is_kept and name not in _VOID)
        element = _Element(name, raw, self._place, len(self._tokens), name in _BLOCKS, is_copied)
        for around in self._open[-1:]:
            around.inner.append(element)
            around.is_block |= element.is_block
            around.is_empty &= name != "br"
        self._add(_Token("point" if is_empty else "open", raw, element))
        if not is_empty:
            self._open.append(element)
            self._with_lines += name in _WITH_LINES

    def _close(self, raw: str, name: str) -> None:
        inside = next((n for n, element in enumerate(reversed(self._open)) if element.name == name), None)
        if inside is None:
            raise self._error(f"{raw:.40} closes nothing; remove it, or add <{name}> before it")
        self._close_until(len(self._open) - inside, raw)
        element = self._open[-1]
        element.is_closed = True
        self._add(_Token("close", raw, element))
        self._end()

    def _close_until(self, size: int, before: str) -> None:
        """Ends all elements except the first ``size``, if their end tags may be missing."""
        while len(self._open) > size:
            element = self._open[-1]
            if element.name not in _VOID | _OPTIONAL:
                advice = f"add {_ENDS.get(element.name, f'</{element.name}>')}, or write &lt; for a < that is text"
                raise self._error(f"{element.raw:.40} is not closed before {before:.40}; {advice}", element.place)
            self._end()

    def _end(self) -> None:
        element = self._open.pop()
        self._with_lines -= element.name in _WITH_LINES
        is_point = element.name in _VOID and not element.is_closed  # the following text is not inside it
        has_data = not (is_point or element.has_text) and element.lines > len(element.inner) > 1  # in XML
        for each in (element, *element.inner) if has_data and element.name not in _BLOCKS else ():
            each.is_block = True
        for around in self._open[-1:]:
            around.has_text |= is_point and element.has_text
            around.is_block |= element.is_block
            around.is_empty &= element.is_empty
        if element.is_copied or (element.is_closed and element.is_empty and not element.is_block):
            copied = self._tokens[element.index :]
            has_text = element.name not in _COPIED and any(each.kind in ("text", "kept") for each in copied)
            raw = "".join(each.raw for each in copied)
            self._tokens[element.index :] = [_Token("kept" if has_text else "point", raw, element)]

    def _add(self, token: _Token) -> None:
        self._tokens.append(token)
        (line, column), lines = self._place, token.raw.count("\n")
        self._place = line + lines, len(token.raw) - token.raw.rfind("\n") if lines else column + len(token.raw)


def _parts(tokens: Sequence[_Token]) -> Iterator[str | Segment]:
    """A fragment's segments, and the text between them."""
    for is_block, group in groupby(tokens, lambda token: token.is_block):
        if is_block:
            yield "".join(token.raw for token in group)
        else:
            yield from _segment([*group])


def _segment(tokens: list[_Token]) -> Iterator[str | Segment]:
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
    first_text, last_text = (token.raw if token.kind == "text" else "" for token in (inside[0], inside[-1]))
    yield before + first_text[: len(first_text) - len(first_text.lstrip())]
    yield _without_tags(inside)
    yield last_text[len(last_text.rstrip()) :] + behind


def _without_tags(tokens: Sequence[_Token]) -> Segment:
    text, nodes, inside = "", list[Node](), [-1]
    apart: list[int] = []  # nodes for which it is undecided whether a space follows
    for token in tokens:
        is_spaced = text == "" or text.endswith(" ")
        if token.kind == "text":
            more = _SPACES.sub(" ", unescape(token.raw))
            for index in apart if more.startswith(" ") else ():
                nodes[index] = nodes[index]._replace(spaces=(nodes[index].spaces[0], True))
            apart = []
            text += more[is_spaced and more.startswith(" ") :]
        elif token.kind == "close":
            index = inside.pop()
            nodes[index] = nodes[index]._replace(closing=token.raw, end=len(text))
        else:
            if token.element is not None and token.element.name == "br" and not is_spaced:
                text += " "
            apart += [len(nodes)] * (token.kind == "kept")
            nodes.append(
                Node(token.raw, "", len(text), len(text), inside[-1], (token.kind == "kept" and is_spaced, False))
            )
            inside += [len(nodes) - 1] * token.is_inside
    return Segment(text.rstrip(), tuple(nodes))
