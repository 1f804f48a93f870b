"""Translation memories in TMX: languages, encodings and placeholders, as many programs write them."""

import tracemalloc
from pathlib import Path

import pytest

from softsearch.errors import ConfigError, CorpusError
from tests.support.rows import declared, rows, units

ENCODED = {
    "Shift_JIS": "本①",
    "EUC-JP": "日本",
    "GB2312": "中国镕",
    "Big5": "中國",
    "UTF-16": "日本",
    "windows-1251": "да",
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_tmx_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    text = ENCODED[encoding]
    codec = {"Shift_JIS": "cp932", "GB2312": "gbk"}.get(encoding, encoding)  # as Windows writes them
    content = declared(encoding, "TEXT").decode().replace("TEXT", text * 70_000)  # several chunks
    (tmp_path / "x.tmx").write_bytes(content.encode(codec))
    assert rows(tmp_path / "x.tmx") == [("a", text * 70_000)]


def test_utf16_without_a_mark_and_text_that_only_declares_it(tmp_path: Path) -> None:
    content = declared("UTF-16", "TEXT").decode().replace("TEXT", "äß")
    for codec in ("utf-16-le", "utf-16-be", "utf-8"):
        (tmp_path / "x.tmx").write_bytes(content.encode(codec))
        assert rows(tmp_path / "x.tmx") == [("a", "äß")]


LANGUAGES = [("EN_US", "de_de"), ("en-us", "DE"), ("en", "de"), ("En_Us", "De-DE")]


@pytest.mark.parametrize(("src", "tgt"), LANGUAGES)
def test_codes_of_languages_in_any_spelling_and_namespaces(tmp_path: Path, src: str, tgt: str) -> None:
    unit = '<tu><tuv xml:lang="EN-us"><seg>a</seg></tuv><tuv xml:lang="de_DE"><seg>b</seg></tuv></tu>'
    for start, end in (('<tmx xmlns="http://www.lisa.org/tmx14">', "</tmx>"), ("<tmx>", "</tmx>")):
        (tmp_path / "x.tmx").write_text(f"{start}<body>{unit}</body>{end}")
        assert rows(tmp_path / "x.tmx", src, tgt) == [("a", "b")]
    prefixed = unit.replace("</", "</t:").replace("<t", "<t:t").replace("<seg", "<t:seg")
    (tmp_path / "x.tmx").write_text(f'<t:tmx xmlns:t="urn:t"><t:body>{prefixed}</t:body></t:tmx>')
    assert rows(tmp_path / "x.tmx", src, tgt) == [("a", "b")]


PLACEHOLDERS = [
    ("Click<ph/>here", "Click here"),
    ("Click <ph>&lt;br&gt;</ph>here", "Click here"),
    ("Stop.<ph x='1'>{0}</ph>Go", "Stop. Go"),
    ("file<ph/>, ok<ph/>.", "file, ok."),
    ("(<ph/>a<ph/>)", "(a)"),
    ("<ph/>a<ph/>", "a"),
    ("un<bpt i='1'>b</bpt>able<ept i='1'/>", "unable"),
    ("日本<ph/>語", "日本語"),
    ("ที่<ph/>บ้าน", "ที่บ้าน"),
    ("សាលា<ph/>រៀន", "សាលារៀន"),
    ("ใช้<ph/>Python", "ใช้ Python"),
    ("한국<ph/>어", "한국 어"),
    ("a<ph>x<sub>y</sub></ph>b", "a b"),
    ("Save<it pos='begin'>&lt;br/&gt;</it>Cancel", "Save Cancel"),
    ("save<it pos='begin'/>cancel", "save cancel"),
    (
        "<bpt i='1'>&lt;p&gt;</bpt>save<ept i='1'>&lt;/p&gt;</ept><bpt i='2'>&lt;p&gt;</bpt>cancel<ept i='2'/>",
        "save cancel",
    ),
    ("Save<bpt i='1'>&lt;b&gt;</bpt>Cancel<ept i='1'>&lt;/b&gt;</ept>.", "Save Cancel."),
    ("save<bpt i='1'>{1}</bpt>cancel<ept i='1'>{2}</ept>", "save cancel"),
    ("un<bpt i='1'>&lt;b class='x'&gt;</bpt>able<ept i='1'>&lt;/b&gt;</ept>s", "unables"),
    ("H<bpt i='1'>&lt;sub&gt;</bpt>2<ept i='1'>&lt;/sub&gt;</ept>O", "H2O"),
    ("日<it pos='begin'>&lt;br/&gt;</it>本", "日本"),
]


@pytest.mark.parametrize(("segment", "text"), PLACEHOLDERS)
def test_a_placeholder_between_words_is_a_space(tmp_path: Path, segment: str, text: str) -> None:
    (tmp_path / "x.tmx").write_bytes(declared("utf-8", "TEXT").replace(b"TEXT", segment.encode()))
    assert rows(tmp_path / "x.tmx") == [("a", text)]


def test_variants_of_a_language_are_not_taken_for_each_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = units(tmp_path / "x.tmx", {"en": "a", "zh-TW": "b", "zh-CN": "c"})
    with pytest.raises(ConfigError, match=r"unit 1 has different texts in zh-tw and zh-cn, and data names 'zh'"):
        rows(path, "en", "zh")
    assert rows(path, "en", "zh_CN") == [("a", "c")]
    path = units(path, {"en-US": "a", "en-GB": "a", "zh": "b", "zh-CN": "c"}, {"en-GB": "d", "zh-TW": "e"})
    assert rows(path, "en", "zh") == [("a", "b"), ("d", "e")]
    assert "zh stands for several languages: 1 in zh, 1 in zh-tw" in caplog.text


@pytest.mark.parametrize(
    "encoding", ["zip", "rot13", "idna", "utf-7", "euc-jp", "shift_jis", "big5", "hex", "x" * 5000]
)
def test_any_encoding_of_tmx_ends_in_one_line(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.tmx").write_bytes(declared(encoding, "TEXT").replace(b"TEXT", b"\x81\xff&#" + b"9" * 5000 + b";"))
    with pytest.raises(CorpusError, match=r"x\.tmx ") as caught:
        rows(tmp_path / "x.tmx")
    assert len(str(caught.value)) < 500


def test_what_is_not_text_of_a_tmx_takes_no_memory(tmp_path: Path) -> None:
    notes, unit = "<note>abc</note><prop type='x'/>" * 50_000, "<tu><tuv lang='en'><seg>a</seg></tuv></tu>"
    (tmp_path / "x.tmx").write_text(f"<tmx><header>{notes}</header><body>{unit}{notes}</body>{notes}</tmx>")
    tracemalloc.start()
    try:
        assert rows(tmp_path / "x.tmx", "en", "en") == [("a", "a")]
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
