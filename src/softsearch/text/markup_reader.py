"""Reads XML and HTML strictly: whatever is not closed, or closes nothing, is an error with its place."""

import re
from collections.abc import Mapping

from softsearch.errors import InputError
from softsearch.text.html_elements import BLOCKS, CODE, FOREIGN, OPTIONAL, PHRASING, RAW_TEXT, VOID, WITH_LINES
from softsearch.text.markup import Element, Segment, Token, is_shown, parts, text_tokens

_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_UNTIL = {begin: re.compile(re.escape(end)) for begin, end in _ENDS.items()} | {
    name: re.compile(rf"(?=</{name}\b)", re.IGNORECASE) for name in RAW_TEXT
}  # the end of each
_NAME = r"[^\W\d][^\s/<>]*+"
_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+)"""
_ATTRIBUTE = re.compile(rf"([^\s/<>=]++)\s*+=\s*+({_VALUE})")
_OPEN = re.compile(rf"<({_NAME})((?:[\s/]++|[^\s/<>=]++(?:\s*+=\s*+(?P<value>{_VALUE}))?+)*+)")
_CLOSE = re.compile(rf"</({_NAME})[^<>]*+")
_DOCTYPE = re.compile(r"<!([^\W\d])[^\[>]*+(?:\[.*?\]\s*)?", re.DOTALL)
_MAX_TAG = 2**16  # characters in a tag over several lines
_TEXT = re.compile("<?[^<]*+")


def is_copied(name: str, attributes: Mapping[str, str]) -> bool:
    """Tells whether an element's text is not translated: by the attribute ``translate``, its class or its name."""
    if "notranslate" in attributes.get("class", "").split():
        return name not in VOID
    default = "no" if name in CODE or name.rpartition(":")[2] in FOREIGN or name in _ENDS else "yes"
    wanted = attributes.get("translate", default).lower() or "yes"
    return wanted == "no" and name not in VOID


def _has_data(element: Element) -> bool:
    """Tells whether what stands on lines of its own in an element is data of XML, not a sentence of HTML."""
    names = {element.name, *(each.name for each in element.inner if each.name not in _ENDS)}
    return element.name not in BLOCKS and not names <= PHRASING


class MarkupReader:
    """Reads a markup fragment, whole or line by line; ``where`` and ``first_line`` are for messages."""

    def __init__(self, where: str = "", first_line: int = 1) -> None:
        self._where, self._place = where, (first_line, 1)
        self._tokens: list[Token] = []
        self._open: list[Element] = []
        self._rest = ""  # a tag that continues on the next line
        self._with_lines = 0  # number of open elements with line ends to keep

    @property
    def is_complete(self) -> bool:
        """Tells whether everything that was opened is closed."""
        return not self._rest and all(element.name in VOID for element in self._open)

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
        return tuple(parts(self._tokens))

    def _error(self, message: str, place: tuple[int, int] | None = None) -> InputError:
        line, column = place or self._place
        return InputError(f"{self._where}line {line}, column {column}: {' '.join(message.split())}")

    def _unfinished(self, tag: str) -> InputError:
        return self._error(f"the tag {tag:.40} is not closed with >; add it, or write &lt; for a < that is text")

    def _read(self, text: str, at: int) -> int:
        """Returns the end of the token that begins at an index; the same index if more text is needed."""
        if self._open and (until := _UNTIL.get(self._open[-1].name)):
            found = until.search(text, at)
            if (end := found.start() if found else len(text)) > at:
                self._add(Token("point", text[at:end]))
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
            self._add(Token("point", raw))
        elif tag.re is _CLOSE:
            self._close(raw, name)
        else:
            self._begin(raw, name, tag[2], is_empty=tag[2].endswith("/") and tag.end("value") != end)
        return end + 1

    def _read_text(self, text: str, at: int) -> int:
        found = _TEXT.match(text, at)
        assert found is not None  # it matches anything
        for token in text_tokens(found[0], with_lines=bool(self._with_lines)):
            self._add(token)
            for element in self._open[-1:]:
                element.has_text |= is_shown(token.raw)
                element.is_empty &= token.kind == "point"
                element.lines += "\n" in token.raw
            for element in reversed(self._open) if token.is_line_end else ():
                if element.is_block:
                    break
                element.is_block = True
        return found.end()

    def _begin(self, raw: str, name: str, attributes: str = "", *, is_empty: bool = False) -> None:
        values = {each[1].lower(): each[2].strip("\"'") for each in _ATTRIBUTE.finditer(attributes)}
        element = Element(name, raw, self._place, len(self._tokens), name in BLOCKS, is_copied(name, values))
        for around in self._open[-1:]:
            around.inner.append(element)
            around.is_block |= element.is_block and not around.is_foreign
            around.is_empty &= name != "br"
        self._add(Token("point" if is_empty else "open", raw, element))
        if not is_empty:
            self._open.append(element)
            self._with_lines += name in WITH_LINES

    def _close(self, raw: str, name: str) -> None:
        inside = next((n for n, element in enumerate(reversed(self._open)) if element.name == name), None)
        if inside is None:
            raise self._error(f"{raw:.40} closes nothing; remove it, or add <{name}> before it")
        self._close_until(len(self._open) - inside, raw)
        element = self._open[-1]
        element.is_closed = True
        self._add(Token("close", raw, element))
        self._end()

    def _close_until(self, size: int, before: str) -> None:
        """Ends all elements except the first ``size``, if their end tags may be missing."""
        while len(self._open) > size:
            element = self._open[-1]
            if element.name not in VOID | OPTIONAL:
                advice = f"add {_ENDS.get(element.name, f'</{element.name}>')}, or write &lt; for a < that is text"
                raise self._error(f"{element.raw:.40} is not closed before {before:.40}; {advice}", element.place)
            self._end()

    def _end(self) -> None:
        element = self._open.pop()
        self._with_lines -= element.name in WITH_LINES
        is_point = element.name in VOID and not element.is_closed  # the following text is not inside it
        if not (is_point or element.has_text) and element.lines > len(element.inner) > 1 and _has_data(element):
            for each in (element, *element.inner):
                each.is_block = True
        for around in self._open[-1:]:
            around.has_text |= is_point and element.has_text
            around.is_block |= element.is_block and not around.is_foreign
            around.is_empty &= element.is_empty or element.is_copied
        if element.is_copied or (element.is_closed and element.is_empty and not element.is_block):
            raw = "".join(each.raw for each in self._tokens[element.index :])
            self._tokens[element.index :] = [Token("point", raw, element)]

    def _add(self, token: Token) -> None:
        self._tokens.append(token)
        (line, column), lines = self._place, token.raw.count("\n")
        self._place = line + lines, len(token.raw) - token.raw.rfind("\n") if lines else column + len(token.raw)
