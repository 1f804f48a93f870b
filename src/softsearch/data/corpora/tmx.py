"""Translation units of TMX files, streamed; everything except the units' text is skipped."""

import codecs
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from softsearch.errors import CorpusError
from softsearch.text.corpus import open_text
from softsearch.text.word_links import UNSPACED

MAX_LANGUAGES = 1000  # codes kept for a message
_CHUNK = 1 << 16
_MAX_TOKEN = 2 << 20  # bytes in a tag, a comment or an instruction, which the parser rereads with each chunk
_MAX_UNIT = 64 << 20  # characters
_MAX_DEPTH = 1000
_CODES = ("bpt", "ept", "it", "ph", "ut")
# Elements of HTML that may begin inside a word; others, and placeholders, stand between words.
_IN_WORDS = re.compile(
    r"(?i)</?(a|abbr|b|bdi|bdo|big|code|del|em|font|i|ins|kbd|mark|s|small|span|strike|strong|sub|sup|tt|u|var)\b[^<>]*>|"
    r"[biu]?"  # nothing, or the name alone
)
_DECLARED = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)["']""")
_ASCII = bytes(range(0x20, 0x7F))
_UNUSABLE_ENCODINGS = ("idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape")
# The encodings that these labels mean in practice, as in the WHATWG Encoding Standard: Windows' supersets.
_SUPERSETS = {"shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "big5": "cp950"}


class Unit(NamedTuple):
    """A translation unit: its number in the file, from 1, and its text by language code (``language_code``)."""

    number: int
    texts: dict[str, str]


def read_units(path: Path) -> Iterator[Unit]:
    """Yields the units of a TMX file; entities are refused, and no DTD is loaded.

    Raises:
        CorpusError: it is not XML, its encoding is invalid, or a part of it is longer than any text.
    """
    collector = _Collector(path)
    parser = collector.parser()
    try:
        with open_text(path) as stream:
            decoder = codecs.getincrementaldecoder(_encoding(stream.peek(_CHUNK), path))()
            while chunk := stream.read(_CHUNK):
                parser.Parse(decoder.decode(chunk), False)
                collector.check(len(chunk))
                yield from collector.take()
            parser.Parse(decoder.decode(b"", True), True)
            yield from collector.take()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not {error.encoding} throughout (byte 0x{error.object[error.start]:02x}: {error.reason}); "
            "write it again in UTF-8"
        ) from error
    except expat.ExpatError as error:
        raise CorpusError(f"{path} is not TMX ({error}); expected XML, export it again") from error


def language_code(text: str) -> str:
    """Returns a language's code in one spelling, ``en-us`` for EN_US and en-US."""
    return text.strip().lower().replace("_", "-")


class _Collector:
    """Handlers of a parser, which collect the text of units."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tags: list[str] = []
        self._codes = 0  # open elements inside a segment that are codes or inside codes
        self._code: list[str] = []  # text of the outermost code
        self._unit: dict[str, str] | None = None
        self._language = ""
        self._text: list[str] | None = None  # text of the open segment
        self._gap = False  # a code that stands between words has ended the text so far
        self._joint = False  # one that may stand inside a word has
        self._number = self._size = 0
        self._quiet = 0  # bytes since the parser last found something
        self._found = False
        self._done: list[Unit] = []

    def parser(self) -> expat.XMLParserType:
        """Makes a parser with these handlers."""
        parser = expat.ParserCreate()
        parser.buffer_text = False
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._skip
        parser.EntityDeclHandler = parser.SkippedEntityHandler = self._refuse_entity
        return parser

    def check(self, size: int) -> None:
        """Refuses a token that is still open after too many bytes, of which ``size`` are new."""
        self._quiet = 0 if self._found else self._quiet + size
        self._found = False
        if self._quiet > _MAX_TOKEN:
            raise CorpusError(f"{self._path} has a tag or a comment of over {_MAX_TOKEN:,} bytes; is it a TMX?")

    def take(self) -> list[Unit]:
        """Returns the units that ended since the last call."""
        done, self._done = self._done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._found = True
        tag = _local(name)
        if len(self._tags) == _MAX_DEPTH:
            raise CorpusError(f"{self._path} has over {_MAX_DEPTH} elements inside one another; is it a TMX?")
        parent = self._tags[-1] if self._tags else ""
        self._tags.append(tag)
        if self._text is not None:
            self._codes += tag in _CODES or self._codes > 0
        elif tag == "tu":
            self._unit, self._size = {}, 0
            self._number += 1
        elif tag == "tuv":
            self._language = next((code for key, code in attributes.items() if _local(key) == "lang"), "")
        elif tag == "seg" and parent == "tuv" and self._unit is not None:
            self._text, self._gap, self._joint = [], False, False

    def _end(self, name: str) -> None:
        self._found = True
        tag = _local(name)
        self._tags.pop()
        if self._codes:
            self._codes -= 1
            if not self._codes:
                code = "".join(self._code).strip()
                is_joint = tag in ("bpt", "ept", "it") and _IN_WORDS.fullmatch(code) and (code or tag != "it")
                self._joint, self._gap, self._code = True, self._gap or not is_joint, []
        elif tag == "seg" and self._text is not None and self._unit is not None:
            self._unit.setdefault(language_code(self._language), "".join(self._text))
            self._text = None
        elif tag == "tu" and self._unit is not None and self._text is None:
            self._done.append(Unit(self._number, self._unit))
            self._unit = None

    def _characters(self, data: str) -> None:
        self._found = True
        if self._unit is None:
            return
        self._size += len(data)
        if self._size > _MAX_UNIT:
            raise CorpusError(f"{self._path} has {_MAX_UNIT} bytes without the end of a unit; is it a TMX?")
        if self._text is not None and self._codes:
            self._code.append(data)
        elif self._text is not None:
            if self._joint and self._text:
                before, after = self._text[-1][-1], data[0]
                is_new_word = self._gap or (before.islower() and after.isupper())
                if is_new_word and _is_between_words(before, after):
                    self._text.append(" ")
            self._gap = self._joint = False
            self._text.append(data)

    def _skip(self, *_: str) -> None:
        self._found = True

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise CorpusError(
            f"{self._path} is not TMX (Entity {name!r:.60}); expected XML without entities, export it again"
        )


def _local(name: str) -> str:
    """A name without its namespace prefix."""
    return name.rpartition(":")[2].lower()


def _is_between_words(before: str, after: str) -> bool:
    """Tells whether a placeholder between two characters separates words, so that it becomes a space."""
    if before.isspace() or after.isspace():
        return False
    if unicodedata.category(before) in ("Ps", "Pi") or unicodedata.category(after) in ("Pe", "Pf", "Po"):
        return False
    return not (_is_unspaced(before) and _is_unspaced(after))


def _is_unspaced(char: str) -> bool:
    """Tells whether a character belongs to a script without spaces, such as Chinese or Thai, with its punctuation."""
    is_wide = unicodedata.east_asian_width(char) in "WF" and not unicodedata.name(char, "").startswith("HANGUL")
    return is_wide or UNSPACED.match(char) is not None


def _encoding(head: bytes, path: Path) -> str:
    """A file's codec by its byte order mark, its first characters or its declaration."""
    marks = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    marks |= {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
    if found := next((name for mark, name in marks.items() if head.startswith(mark)), ""):
        return found
    declared = _DECLARED.match(head)
    name = declared[1].decode() if declared else "utf-8"
    if name.lower().startswith(("utf-16", "utf-8", "utf8", "utf-32")):  # its declaration was read byte by byte
        return "utf-8-sig"
    try:
        codec = codecs.lookup(name.lower().removeprefix("x-")).name
        is_text = codec not in _UNUSABLE_ENCODINGS and _ASCII.decode(codec) == _ASCII.decode()
    except (LookupError, ValueError):
        is_text = False
    if not is_text:
        raise CorpusError(
            f"{path} has the encoding {name!r:.60} in its first line, which is not a text encoding; write it in UTF-8"
        )
    return _SUPERSETS.get(codec, codec)
