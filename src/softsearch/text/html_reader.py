"""Reads HTML as browsers do: nothing is refused, and what is not closed ends where the HTML standard says.

These are the standard's rules (13.2.6, tree construction) as far as they decide where inline elements end: a missing
end tag is added there, and an element that goes on in the next block begins again. Tags of blocks stay where they are,
and so do inline elements with blocks inside, hence all that browsers make of them stays, too.
"""

from collections.abc import Collection
from dataclasses import dataclass

from softsearch.errors import InputError
from softsearch.text import html_elements as html
from softsearch.text.html_tokens import ATTRIBUTE, COMMENT, TAG, TAG_START, TEXT, foreign_ends, raw_end
from softsearch.text.markup import Element, Segment, Token, is_shown, parts, text_tokens
from softsearch.text.markup_reader import is_copied

_MAX_OPEN = 512  # as in browsers; beyond it, searches of all open elements would take long
_IGNORED = ("html", "head", "body", "frameset", "frame")  # browsers add them, and let their tags end nothing


@dataclass(eq=False)
class _Open(Element):
    is_open: bool = True


class HtmlReader:
    """Reads an HTML fragment or page; ``where`` and ``first_line`` are for messages."""

    def __init__(self, where: str = "", first_line: int = 1) -> None:
        self._where, self._line = where, first_line
        self._tokens: list[Token] = []
        self._open: list[_Open] = []
        self._active: list[_Open | None] = []  # formatting elements that go on; None is the edge of a cell etc.
        self._foreign: dict[str, dict[int, int]] = {}  # where formulas and drawings end
        self._is_page_copied = False
        self._copied = self._with_lines = 0  # open elements that are copied, or whose line ends are kept

    def feed(self, text: str) -> None:
        """Reads the whole text.

        Raises:
            InputError: far too many elements are open at once.
        """
        at = 0
        while at < len(text):
            end = self._read(text, at)
            if len(self._open) > _MAX_OPEN:
                line = self._line + text.count("\n", 0, at)
                tag = f"{text[at:end]:.40} is in more than {_MAX_OPEN} open elements; close some"
                raise InputError(f"{self._where}line {line}: {tag}")
            at = end

    def close(self) -> tuple[str | Segment, ...]:
        """Returns the parts: unchanged text, and segments."""
        self._pop_to(0)
        return ("".join(token.raw for token in self._tokens),) if self._is_page_copied else tuple(parts(self._tokens))

    def _read(self, text: str, at: int) -> int:
        """Reads the token that begins at an index, and returns its end."""
        if tag := TAG.match(text, at):
            name = tag[2].lower()
            name = "img" if name == "image" else name
            if tag[1]:
                self._end_tag(tag[0], name)
                return tag.end()
            self._start_tag(tag[0], name, tag[3])
            if name in html.FOREIGN and not tag[3].endswith("/"):
                return self._copy_foreign(text, tag.end(), name)
            return self._read_raw(text, tag.end(), name) if name in html.NO_MARKUP else tag.end()
        if comment := COMMENT.match(text, at):
            self._point(comment[0], "")
            return comment.end()
        if TAG_START.match(text, at):  # a tag without an end: browsers do not show the rest
            self._block(text[at:])
            return len(text)
        found = TEXT.match(text, at)
        assert found is not None  # it matches anything
        self._text(found[0])
        return found.end()

    def _read_raw(self, text: str, at: int, name: str) -> int:
        """Reads text in which < begins no tag, up to the end tag."""
        end = raw_end(text, at, name)
        if name in ("textarea", "title"):
            self._text(text[at:end])
        elif at < end:
            self._tokens.append(Token("point", text[at:end], self._open[-1]))
        return end

    def _copy_foreign(self, text: str, at: int, name: str) -> int:
        """Reads a formula or a drawing whole; if its end tag is missing, only its begin tag is copied."""
        if name not in self._foreign:
            self._foreign[name] = foreign_ends(text, name)
        end = self._foreign[name].get(at, at)
        self._tokens[-1] = self._tokens[-1]._replace(raw=self._tokens[-1].raw + text[at:end])
        return end

    def _text(self, raw: str) -> None:
        if is_shown(raw):
            self._reconstruct()
        for token in text_tokens(raw, with_lines=bool(self._with_lines)):
            if token.is_line_end:
                self._mark_blocks()
            self._tokens.append(token)
            for element in self._open[-1:]:
                element.is_empty &= token.kind == "point"

    def _start_tag(self, raw: str, name: str, attributes: str) -> None:
        values = {each[1].lower(): each[2].strip("\"'") for each in reversed([*ATTRIBUTE.finditer(attributes)])}
        if name in _IGNORED or (name in html.TABLE_CONTEXTS and self._scope("table", {"html", "template"}) is None):
            self._is_page_copied |= name in ("html", "body") and is_copied(name, values)
            self._block(raw)
            return
        self._close_before(name)
        is_placeholder = attributes.endswith("/") and name not in html.BLOCKS | html.PHRASING  # of a program, not HTML
        if name not in (html.BLOCKS - {"object", "xmp"}) | html.RUBY | {"param", "source", "track", "link", "meta"}:
            self._reconstruct()
        if name in html.VOID | html.FOREIGN or is_placeholder:
            self._point(raw, name)
        else:
            self._push(raw, name, is_copied=is_copied(name, values))
            if name in html.FORMATTING:
                self._activate()
            self._active += [None] * (name in html.MARKED)

    def _activate(self) -> None:
        """Remembers a formatting element, of equal ones the last three."""
        element, equal = self._open[-1], []
        for index in range(len(self._active) - 1, -1, -1):
            if (each := self._active[index]) is None:
                break
            equal += [index] * (each.raw == element.raw)
        for index in equal[2:]:
            del self._active[index]
        self._active.append(element)

    def _close_before(self, name: str) -> None:
        """Ends the elements that an element with this name cannot be in."""
        top = self._open[-1].name if self._open else ""
        if name in ("li", "dd", "dt"):
            self._close_item(("li",) if name == "li" else ("dd", "dt"))
        if name in html.CLOSES_P and (index := self._scope("p", html.SCOPE | {"button"})) is not None:
            self._pop_to(index)
        if name in html.HEADINGS and self._open and self._open[-1].name in html.HEADINGS:
            self._pop()
        if context := html.TABLE_CONTEXTS.get(name):
            while self._open and self._open[-1].name not in context:
                self._pop()
        if name in ("option", "optgroup") and top == "option":
            self._pop()
        if name in html.RUBY and self._scope("ruby", html.SCOPE) is not None:
            self._pop_implied({"rtc"} if name in ("rp", "rt") else set())
        if name == "button" and (index := self._scope("button", html.SCOPE)) is not None:
            self._pop_to(index)
        if name in ("a", "nobr") and any(each.name == name for each in self._going_on()):
            self._adopt(name, None)

    def _close_item(self, names: Collection[str]) -> None:
        for index in range(len(self._open) - 1, -1, -1):
            name = self._open[index].name
            if name in names:
                self._pop_to(index)
            if name in names or (name in html.SPECIAL and name not in ("address", "div", "p")):
                break

    def _end_tag(self, raw: str, name: str) -> None:
        if name == "br":
            self._reconstruct()
            self._point(raw, name)
        elif name in html.FORMATTING:
            self._adopt(name, raw)
        elif name in html.SPECIAL:
            names = html.HEADINGS if name in html.HEADINGS else {name}
            stops = {"table", "template"} if name in html.TABLE_CONTEXTS or name == "table" else html.SCOPE
            more = {"p": {"button"}, "li": {"ol", "ul"}}.get(name, set())
            index = self._scope(names, stops | more)
            if name == "form" and index is not None:  # what is in it stays open
                self._pop_implied(set())
                self._block(raw)
                self._finish(self._open.pop(index))
            elif index is None or name in _IGNORED:
                self._block(raw)
            else:
                self._pop_to(index + 1)
                self._pop(raw)
        else:
            self._end_other(raw, name)

    def _end_other(self, raw: str, name: str) -> None:
        if (index := self._scope(name, html.SPECIAL)) is None:
            self._point(raw, "")
        else:
            self._pop_to(index + 1)
            self._pop(raw)

    def _adopt(self, name: str, raw: str | None) -> None:
        """Ends a formatting element (the adoption agency algorithm); ``raw`` is its end tag, if there is one."""
        element = next((each for each in self._going_on() if each.name == name), None)
        if element is None:
            if raw is not None:
                self._end_other(raw, name)
            return
        if not element.is_open:  # an end tag that was added already stands for this one
            self._forget(element)
            if raw is not None and not element.is_closed:
                self._block(raw)
            return
        start = next(index for index, each in enumerate(self._open) if each is element)
        inside = self._open[start + 1 :]
        if any(each.name in html.SCOPE for each in inside):
            if raw is not None:
                self._point(raw, "")
            return
        self._forget(element)
        furthest = next((index for index, each in enumerate(inside) if each.name in html.SPECIAL), None)
        if furthest is None:
            self._pop_to(start + 1)
            self._pop(raw)
            return
        self._pop_to(start + furthest + 2)
        self._block(raw or "")
        going_on = self._going_on()
        for each in (element, *inside[:furthest]):
            if not any(each is other for other in going_on):
                self._open = [other for other in self._open if other is not each]
                self._finish(each)

    def _scope(self, names: Collection[str] | str, stops: Collection[str]) -> int | None:
        """The index of the innermost open element with one of these names, unless another one is around it."""
        names = {names} if isinstance(names, str) else names
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index].name in names:
                return index
            if self._open[index].name in stops:
                break
        return None

    def _going_on(self) -> list[_Open]:
        """The formatting elements that go on here, the last first."""
        found = []
        for each in reversed(self._active):
            if each is None:
                break
            found.append(each)
        return found

    def _forget(self, element: _Open) -> None:
        self._active = [each for each in self._active if each is not element]

    def _reconstruct(self) -> None:
        """Opens the formatting elements again that ended with the last block."""
        start = len(self._active)
        while start and (each := self._active[start - 1]) is not None and not each.is_open:
            start -= 1
        for index in range(start, len(self._active)):
            before = self._active[index]
            assert before is not None
            self._push(before.raw, before.name, is_copied=before.is_copied, is_added=not before.is_closed)
            self._active[index] = self._open[-1]

    def _push(self, raw: str, name: str, *, is_copied: bool, is_added: bool = False) -> None:
        """Opens an element; browsers have ``added`` it themselves to what stands there already."""
        element = _Open(name, raw, (0, 0), len(self._tokens), name in html.BLOCKS or is_added, is_copied)
        if name in html.BLOCKS:
            self._mark_blocks()
        self._open.append(element)
        self._copied += is_copied
        self._with_lines += name in html.WITH_LINES
        if not is_added:
            self._tokens.append(Token("open", raw, element))

    def _pop_implied(self, but: Collection[str]) -> None:
        while self._open and self._open[-1].name in html.IMPLIED.difference(but):
            self._pop()

    def _pop_to(self, size: int) -> None:
        while len(self._open) > size:
            self._pop()

    def _pop(self, raw: str | None = None) -> None:
        """Ends the innermost element, with its end tag, or with an added one if it has no block inside."""
        element, behind = self._open.pop(), list[Token]()
        if raw is None and not element.is_block:
            raw = f"</{element.raw[1 : 1 + len(element.name)]}>"
            behind = self._trailing_space()
        if raw is not None:
            element.is_closed = True
            self._tokens += [Token("close", raw, element), *behind]
        self._finish(element)

    def _trailing_space(self) -> list[Token]:
        """Takes white space off the end, to be put behind an added end tag."""
        last = self._tokens.pop()
        text = last.raw.rstrip() if last.kind == "text" and not last.is_line_end else last.raw
        self._tokens += [last._replace(raw=text)] if text else []
        return [last._replace(raw=last.raw[len(text) :])] if len(text) < len(last.raw) else []

    def _finish(self, element: _Open) -> None:
        element.is_open = False
        self._copied -= element.is_copied
        self._with_lines -= element.name in html.WITH_LINES
        for around in self._open[-1:]:
            around.is_empty &= element.is_empty or element.is_copied
        if element.name in html.MARKED:
            while self._active and self._active.pop() is not None:
                pass
        if element.is_copied and not self._copied:
            inside = [Token("point", token.raw, element) for token in self._tokens[element.index :]]
        elif element.is_closed and element.is_empty and not element.is_block:
            inside = self._tokens[element.index :]
        else:
            return
        if not element.is_block:
            inside = [Token("point", "".join(token.raw for token in inside), element)]
        self._tokens[element.index :] = inside

    def _point(self, raw: str, name: str) -> None:
        element = _Open(name, raw, (0, 0), len(self._tokens), name in html.BLOCKS, is_copied=False)
        if element.is_block:
            self._mark_blocks()
        for around in self._open[-1:]:
            around.is_empty &= name != "br"
        self._tokens.append(Token("point", raw, element))

    def _block(self, raw: str) -> None:
        """Adds a tag that keeps its place."""
        self._mark_blocks()
        self._tokens.append(Token("point", raw, is_line_end=True))

    def _mark_blocks(self) -> None:
        """Lets the open inline elements keep their places, because a block is inside."""
        for element in reversed(self._open):
            if element.is_block:
                break
            element.is_block = True
