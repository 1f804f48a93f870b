"""Files of other kinds than lines of text: test sets are read, others are named with what to do."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest
import torch

from softsearch.data.corpora.rows import read_rows
from softsearch.errors import CorpusError
from softsearch.text.corpus import read_lines

SGM = """<srcset setid="newstest" srclang="any">
<doc sysid="ref" docid="a" genre="news" origlang="en">
<hl>
<seg id="1"> A man &amp; a dog. </seg>
</hl>
<p><seg id="2">Two
lines</seg> <SEG id="3"></seg></p>
</doc>
</srcset>
"""
SETS = {
    "sgm": SGM,
    "xml": f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE mteval SYSTEM "x.dtd">\n<mteval>\n{SGM}</mteval>\n',
    "doc": SGM.partition("\n")[2].replace("</srcset>\n", ""),
    "mark": f"\ufeff<!-- a note -->\r\n{SGM}",
}


@pytest.mark.parametrize("name", SETS)
def test_segments_of_a_test_set_are_its_lines(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(SETS[name].encode()) if name == "xml" else SETS[name].encode())
    assert list(read_lines(tmp_path / "x")) == ["A man & a dog.", "Two lines", ""]


def packed(*names: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            mime = "application/vnd.oasis.opendocument." + name.partition(":")[2]
            compressed = zipfile.ZIP_STORED if ":" in name else None
            file.writestr(name.partition(":")[0], mime if ":" in name else "<x/>" * 50, compressed)
    return archive.getvalue()


def checkpoint() -> bytes:
    file = io.BytesIO()
    torch.save({"model": {}}, file)
    return file.getvalue()


KINDS = {
    "a.xlsx": (
        packed("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"),
        "Excel workbook; save its sheet as CSV",
    ),
    "a.docx": (packed("[Content_Types].xml", "_rels/.rels", "word/document.xml"), "a Word document; save it as plain"),
    "a.ods": (packed("mimetype:spreadsheet"), r"a spreadsheet \(ODS\); save its sheet as CSV"),
    "a.odt": (packed("mimetype:text"), r"an OpenDocument text \(ODT\); save it as text"),
    "a.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a document of an older Office"),
    "a.pt": (checkpoint(), "a checkpoint of PyTorch, not text"),
    "a.xlf": (b'<?xml version="1.0"?>\n<xliff version="1.2">', r"XLIFF; type .*: xliff2po FILE x\.po && po2csv x\.po"),
    "b.xlf": (b'\xef\xbb\xbf<x:xliff xmlns:x="urn">', "XLIFF"),
    "a.tmx.txt": (b"<!DOCTYPE tmx SYSTEM 'tmx14.dtd'>\n<tmx>", "TMX; name it .tmx, then use data=table"),
    "a.po": (b'# Name\n#, fuzzy\nmsgid ""\nmsgstr ""\n', r"PO, of gettext; type .*: po2csv FILE x\.csv"),
    "b.po": (b'msgctxt "a"\nmsgid "b"\n', "PO, of gettext"),
    "a.tbx": (b"<?xml version='1.0'?><!DOCTYPE martif SYSTEM 'x'><martif>", "TBX, a list of terms"),
    "a.ts": (b'<?xml version="1.0"?>\n<!DOCTYPE TS>\n<TS version="2.1">', r"Qt's \.ts; type .*: ts2po"),
    "en.properties": (b"# x\na.b = c\n", "Java properties; type .*: prop2po"),
    "wmt.xml": (
        b"<?xml version='1.0'?>\n<dataset id='x'><doc><src lang='en'><p><seg id='1'>",
        "several languages; .* sacrebleu",
    ),
    "train.tags.en-de.en": (b"<doc docid='1'>\n<url>http</url>\n", r"IWSLT with tags; .* grep -v '\^<'"),
    "a.srt": (b"1\r\n00:00:01,000 --> 00:00:02,000\r\nOne.\r\n", r"subtitles with times; type .*: sub2po -t"),
    "a.vtt": (b"WEBVTT\n\n00:01.000 --> 00:02.000\nOne.\n", "subtitles with times"),
    "en.json": (b'{\n  "menu": {"open": "Open"}\n}\n', r"JSON; name .* \.jsonl, .* json2po -t"),
    "a.json": (b'[{"en": "one", "de": "eins"}]', "JSON; name"),
    "a.xml": (b"<?xml version='1.0'?><resources>", "XML; write its sentences"),
}


@pytest.mark.parametrize("name", KINDS)
def test_other_kinds_are_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    content, message = KINDS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        list(read_lines(tmp_path / name))
    with pytest.raises(CorpusError, match=message):  # as a table, too
        list(read_rows(tmp_path / name, name, ("en", "de")))


@pytest.mark.parametrize(
    "line",
    [
        "<b>one</b> two",
        "# msgid",
        "a < b",
        "<2de> <from:en> a",
        "<seg> is a tag",
        "PK is my name",
        "1",
        "{name}: one",
        '"a": "b"',
        "<!---->" * 1000,
    ],
)
def test_text_stays_text(tmp_path: Path, line: str) -> None:
    (tmp_path / "x").write_text(f"{line}\n")
    assert list(read_lines(tmp_path / "x")) == [line]
    (tmp_path / "x").write_text(" \n" * 4000)
    assert len(list(read_lines(tmp_path / "x"))) == 4000


def test_a_segment_that_does_not_end_is_refused(tmp_path: Path) -> None:
    for rest, message in (
        ("\nx" * 10, "the last seg does not end"),
        ("\nx" * 2000, r":1004: a seg does not end within 1,000"),
    ):
        (tmp_path / "x").write_text(SGM.partition("</seg>")[0] + rest)
        with pytest.raises(CorpusError, match=message):
            list(read_lines(tmp_path / "x"))
