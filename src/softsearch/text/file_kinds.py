"""Kinds of files that are not lines of text, told by their first bytes, with what to do."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from softsearch.errors import CorpusError

_MAX_SEGMENT = 1000  # lines
_TABLE = "then use data=table data.src=COLUMN data.tgt=COLUMN"
_TMX = "then use data=table with the .tmx file, and languages as data.src and data.tgt"
_CSV = "po2csv x.po x.csv, then use data=table data.train=x.csv data.src=source data.tgt=target, and name the languages"
_TOOLKIT = "pip install translate-toolkit"
_TORCH = "a checkpoint of PyTorch, not text; name files of sentences"
_BINARY = {
    rb"version https://git-lfs": "a Git LFS pointer, not the file itself; run git lfs pull where it was cloned, or "
    "download the file",
    rb"(?s)PK\x03\x04.{26}[^/]{1,200}/(data\.pkl|\.format_version|\.storage_alignment|byteorder)": _TORCH,
    rb"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\.": _TORCH,
    rb"(?s)PK\x03\x04.{26}mimetypeapplication/vnd\.oasis\.opendocument\.spreadsheet": "a spreadsheet (ODS); save its "
    f"sheet as CSV in UTF-8, {_TABLE}",
    rb"(?s)PK\x03\x04.{26}mimetypeapplication/vnd\.oasis\.opendocument": "an OpenDocument text (ODT); save it as text "
    "in UTF-8, one sentence per line",
    rb"(?s)PK\x03\x04.{0,8100}?\0xl/": f"an Excel workbook; save its sheet as CSV UTF-8, {_TABLE}",
    rb"(?s)PK\x03\x04.{0,8100}?\0word/": "a Word document; save it as plain text in UTF-8, one sentence per line",
    rb"PK(\x03\x04|\x05\x06)": "a zip archive; unpack it (unzip FILE) and name a file in it, or save an Office "
    "document as text or CSV",
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a document of an older Office; save it as text or CSV in UTF-8",
    rb"(?s).{257}ustar": "a tar archive; unpack it (tar -xf FILE) and name a file in it",
    rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07": "an archive (7z or RAR); unpack it and name a file in it",
    rb"%PDF-": "a PDF; save its text as a file of lines",
    rb"PAR1": "a Parquet file; give it a name that ends with .parquet, and to train on it use data=table",
}
_COMMENTS = rb"(?><!--.{0,4000}?-->\s*+)*+"  # atomic, because they could be divided in exponentially many ways
_PROLOG = (
    rb"(?si)(\xef\xbb\xbf)?\s*+(<\?xml.{0,300}?\?>\s*+)?"
    + _COMMENTS
    + rb"(<!DOCTYPE[^>\[]{0,300}(\[.{0,2000}?\]\s*+)?>\s*+)?"
    + _COMMENTS
)
_SEGMENTS = re.compile(_PROLOG + rb"<(mteval|srcset|refset|tstset|doc)\b.*?<seg\b")
_SEGMENT = re.compile(rb"(?si)<seg\b[^>]*>(.*?)</seg\s*>")
_ENTITIES = ((b"&quot;", b'"'), (b"&apos;", b"'"), (b"&lt;", b"<"), (b"&gt;", b">"), (b"&amp;", b"&"))
_DOCUMENTS = {
    _PROLOG + rb"<dataset\b": "a test set of WMT in XML, with several languages; write a side of it with: sacrebleu -t "
    "wmt24 -l en-de --echo src > test.en",
    _PROLOG + rb"<(doc\b|url>|talkid>|speaker>|keywords>)": "a training text of IWSLT with tags; remove them with: "
    "grep -v '^<' FILE > NEW, on both sides",
    _PROLOG + rb"<(\w+:)?xliff\b": f"XLIFF; type ({_TOOLKIT}): xliff2po FILE x.po && {_CSV}",
    _PROLOG + rb"<(\w+:)?tmx\b": f"TMX; name it .tmx, {_TMX}",
    _PROLOG + rb"<(\w+:)?(martif|tbx)\b": f"TBX, a list of terms; type ({_TOOLKIT}): tbx2tmx -l LANGUAGE FILE x.tmx, "
    f"{_TMX}; or write terms as lines of a glossary, term<TAB>translation",
    _PROLOG + rb"<TS\b": f"Qt's .ts; type ({_TOOLKIT}): ts2po FILE x.po && {_CSV}",
    rb"(\xef\xbb\xbf)?(#[^\n]*\n|[ \t\r]*\n)*+(msgctxt|msgid) \"": f"PO, of gettext; type ({_TOOLKIT}): "
    f"{_CSV.replace('x.po', 'FILE')}",
    rb"(\xef\xbb\xbf)?\s*+(WEBVTT\b|\d{1,6}[ \t]*\r?\n\d\d:\d\d:\d\d[,.]\d{3} -->|\[Script Info\])": "subtitles "
    f"with times; type (pip install 'translate-toolkit[subtitles]'): sub2po -t en.srt de.srt x.po && {_CSV}; or write "
    "their sentences as lines of text",
    rb'(\xef\xbb\xbf)?\s*+(\[\s*+)?\{\s*+"[^"\n]{1,200}"\s*+:\s*+["{\[\d]': "JSON; name a file of one object per "
    "line .jsonl, then use data=table with keys as data.src and data.tgt; for files of messages type "
    f"({_TOOLKIT}): json2po -t en.json de.json x.po && {_CSV}",
    rb"(\xef\xbb\xbf)?\s*<\?xml\s": "XML; write its sentences as lines of text",
}
_BY_NAME = {".properties": f"Java properties; type ({_TOOLKIT}): prop2po -t en.properties de.properties x.po && {_CSV}"}


def other_kind(head: bytes) -> str:
    """Returns what a file is by its first bytes, with advice, if it is not text or a table itself; else ""."""
    return next((what for magic, what in _BINARY.items() if re.match(magic, head)), "")


def refuse_document(head: bytes, path: Path) -> None:
    """Refuses a text file that is a document of another kind than lines of sentences.

    Raises:
        CorpusError: it is; the message says what to do.
    """
    found = next((what for start, what in _DOCUMENTS.items() if re.match(start, head)), _BY_NAME.get(path.suffix))
    if found and not has_segments(head):
        raise CorpusError(f"{path} is {found}")


def has_segments(head: bytes) -> bool:
    """Tells whether a file is a test set of WMT or IWSLT in SGML or XML, with one sentence in each ``seg``."""
    return _SEGMENTS.match(head) is not None


def segments(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Yields the sentences of a test set in SGML or XML, one from each ``seg``.

    Raises:
        CorpusError: one does not end.
    """
    rest, count = b"", 0
    for number, line in enumerate(lines, start=1):
        rest, count = (rest + b" " + line, count + 1) if rest else (line, 0)
        while found := _SEGMENT.search(rest):
            rest, text = rest[found.end() :], b" ".join(found[1].split())
            for name, char in _ENTITIES:
                text = text.replace(name, char)
            yield text
        begin = re.search(rb"(?i)<seg\b", rest)
        rest = rest[begin.start() :] if begin else b""
        if count == _MAX_SEGMENT:
            raise CorpusError(f"{path}:{number}: a seg does not end within {count:,} lines; add </seg>")
    if rest:
        raise CorpusError(f"{path}: the last seg does not end; get the whole file")
