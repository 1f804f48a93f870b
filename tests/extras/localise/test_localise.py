"""Catalogs are filled, each new text marked for review, and nothing else is touched."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from softsearch.extras.localise.checks import problems
from softsearch.extras.localise.fill import Written, fill
from softsearch.extras.localise.memory import Memory, memories_of
from softsearch.extras.localise.opening import open_catalog, read_catalog
from softsearch.runtime.cli import main

BUNDLE = "tests/golden/bundle"
PO = r"""# A program's
msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: menu.c:1
msgid "_Two"
msgstr ""

#: menu.c:2
#, c-format
msgid "Three %s"
msgstr "Drei %s"

#: menu.c:3
#, fuzzy
msgid "Old"
msgstr "Alt"

#: other.c:9
msgctxt "dialog"
msgid ""
"Three %s\n"
"  two:  "
msgstr ""

#: other.c:10
msgid "one file"
msgid_plural "two files"
msgstr[0] ""
msgstr[1] ""

#, c-format
msgid "lost %d"
msgstr ""

#~ msgid "gone"
#~ msgstr "weg"
"""
TS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en">
<context>
    <name>Main</name>
    <message>
        <source>&amp;Two</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Three</source>
        <translation>&amp;Drei</translation>
    </message>
</context>
</TS>
"""
XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a" source-language="en" target-language="de" datatype="plaintext">
    <body>
      <trans-unit id="1"><source>two <g id="1">three</g> &amp; more</source></trans-unit>
      <trans-unit id="2"><source>One</source><target state="translated">Eins &lt;b&gt;</target></trans-unit>
    </body>
  </file>
</xliff>
"""
XLIFF_2 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
  <file id="f"><unit id="1"><segment><source>two</source></segment></unit></file>
</xliff>
"""
WORDS = {"Two": "Zwei", "two": "zwei", "two:": "zwei", "Three %s": "Drei %s", "one file": "eine Datei"}
WORDS |= {"two files": "zwei Dateien", "lost %d": "verloren", 'two <g id="1">three</g> &amp; more': "zwei"}


def words(lines: Sequence[str]) -> list[Written]:
    return [Written(WORDS[line], 0.5, ["x"] if line == "Two" else []) for line in lines]


def test_untranslated_messages_of_po_are_filled(tmp_path: Path) -> None:
    (tmp_path / "x.po").write_text(PO)
    catalog = open_catalog(tmp_path / "x.po")
    assert bytes(catalog) == PO.encode()
    memory = memories_of([tmp_path / "x.po"], ["de"])["de"]
    filled = fill(catalog, memory, words)
    assert (filled.before, filled.memory, filled.translated, filled.unknown) == (2, 0, 3, {"x"})
    assert filled.left == [("lost %d", "it lacks %d")]
    (tmp_path / "y.po").write_bytes(bytes(catalog))
    again = {entry.sources[0]: entry for entry in open_catalog(tmp_path / "y.po").entries}
    assert again["_Two"].targets == ("_Zwei",)
    assert again["Three %s\n  two:  "].targets == ("Drei %s\n  zwei:  ",)
    assert again["one file"].targets == ("eine Datei", "zwei Dateien")
    assert {source for source, entry in again.items() if entry.state == "fuzzy"} == {
        "_Two", "Old", "Three %s\n  two:  ", "one file"
    }  # fmt: skip
    text = bytes(catalog).decode()
    assert text.count("# softsearch: translated, confidence 0.50\n") == 3
    kept = PO[PO.index("#: menu.c:2") : PO.index("#: other.c:9")]
    assert kept in text
    assert text.endswith(PO[PO.index('#, c-format\nmsgid "lost') :])
    if msgfmt := shutil.which("msgfmt"):
        subprocess.run(
            [msgfmt, "-c", "--check-format", "--use-fuzzy", "-o", tmp_path / "y.mo", tmp_path / "y.po"], check=True
        )


ARABIC = r"""msgid ""
msgstr ""
"Language: ar\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;\n"

msgid "one file"
msgid_plural "two files"
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""
msgstr[3] ""
msgstr[4] ""
msgstr[5] ""

msgid "Three %s"
msgstr "%s"
"""
ARABIC_TS = """<TS version="2.1" language="ar"><context><name>x</name><message numerus="yes"><source>%n files</source>
<translation type="unfinished"><numerusform>a</numerusform><numerusform>b</numerusform></translation></message>
</context></TS>
"""


def test_the_form_of_one_is_not_always_the_first(tmp_path: Path) -> None:
    (tmp_path / "x.po").write_text(ARABIC)
    catalog = open_catalog(tmp_path / "x.po")
    fill(catalog, Memory(), words)
    translations = ["zwei Dateien", "eine Datei", *["zwei Dateien"] * 4]
    assert catalog.pairs() == [("Three %s", "%s")]
    entry = read_catalog(bytes(catalog), Path("x.po")).entries[0]
    assert entry.targets == tuple(translations)
    assert list(entry.pairs()) == [("one file", "eine Datei"), ("two files", "zwei Dateien")]
    assert [entry.singular for entry in read_catalog(ARABIC_TS.encode(), Path("x.ts")).entries] == [1]


def test_a_memory_has_precedence_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "old.po").write_text(PO.replace('msgid "_Two"\nmsgstr ""', 'msgid "Two"\nmsgstr "Ein Paar"'))
    (tmp_path / "x.po").write_text(PO)
    catalog = open_catalog(tmp_path / "x.po")
    filled = fill(catalog, memories_of([tmp_path / "old.po"], ["de"])["de"], words)
    assert (filled.memory, filled.translated) == (1, 2)
    assert 'msgstr "Ein _Paar"' in bytes(catalog).decode() or 'msgstr "_Ein Paar"' in bytes(catalog).decode()
    assert "# softsearch: from old.po\n" in bytes(catalog).decode()


def test_a_translation_of_a_memory_that_fails_a_check_is_not_taken(tmp_path: Path) -> None:
    header = PO[: PO.index("\n\n") + 2]
    pairs = [("a", "Fuß:"), ("b", "Fuß"), ("c", "Anderer Fuß")]
    messages = [f'msgctxt "{context}"\nmsgid "Foot"\nmsgstr "{target}"\n' for context, target in pairs]
    (tmp_path / "x.po").write_text(header + "\n".join(messages))
    (tmp_path / "bad.po").write_text(header + messages[0])
    for name, expected in (("x.po", "Fuß"), ("bad.po", None)):
        match = memories_of([tmp_path / name], ["de"])["de"].find("Foot")
        assert (match and match.target) == expected


def test_ts_and_xliff_are_filled(tmp_path: Path) -> None:
    for name, content in (("x.ts", TS), ("x.xlf", XLIFF), ("y.xlf", XLIFF_2)):
        (tmp_path / name).write_text(content)
        catalog = open_catalog(tmp_path / name)
        assert bytes(catalog).decode() == content
        assert (catalog.src_lang, catalog.tgt_lang[:2]) == ("en", "de")
        fill(catalog, Memory(), lambda lines: [Written(WORDS[line], None, []) for line in lines])
        text = bytes(catalog).decode()
        if name == "x.ts":
            assert '<translation type="unfinished">&amp;Zwei</translation>' in text
            assert "<translation>&amp;Drei</translation>" in text
        elif name == "x.xlf":  # its translation lacks the element and the entity
            assert text == content
        else:
            assert '<segment state="initial"><source>two</source><target>zwei</target></segment>' in text


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1"])
def test_prefixes_encodings_and_what_follows_the_root_stay(tmp_path: Path, encoding: str) -> None:
    text = XLIFF_2.replace('"UTF-8"', f'"{encoding}"').replace("<unit", "<!-- \xfc --><unit") + "<!-- end > -->\n"
    text = text.replace("xmlns=", "xmlns:x=").replace('version="2.0"', 'note="a > b" version="2.0"')
    for name in ("xliff", "file", "unit", "segment", "source"):
        text = text.replace(f"<{name}", f"<x:{name}").replace(f"</{name}", f"</x:{name}")
    (tmp_path / "x.xlf").write_bytes(text.encode(encoding))
    catalog = open_catalog(tmp_path / "x.xlf")
    assert bytes(catalog) == text.encode(encoding)
    fill(catalog, Memory(), lambda lines: [Written("zw\xf6lf", None, []) for _ in lines])
    new = '<x:segment state="initial"><x:source>two</x:source><x:target>zw\xf6lf</x:target>'
    assert bytes(catalog) == text.replace("<x:segment><x:source>two</x:source>", new).encode(encoding)


TS_PARTS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE">
<context>
    <name>Main</name>
    <message>
        <source>Open file</source>
        <translation variants="yes"><lengthvariant>Datei</lengthvariant><lengthvariant>D.</lengthvariant></translation>
    </message>
    <message>
        <source>A<byte value="x9c"/>B</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>two</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
"""


def test_other_lines_stay_where_the_library_writes_them_anew() -> None:
    catalog = read_catalog(TS_PARTS.encode(), Path("x.ts"))
    assert [entry.state for entry in catalog.entries] == ["left out", "left out", "untranslated"]
    fill(catalog, Memory(), words)
    old = 'two</source>\n        <translation type="unfinished">'
    note = "<translatorcomment>softsearch: translated, confidence 0.50</translatorcomment>"
    text = bytes(catalog).decode()
    assert text.replace(f"        {note}\n", "") == TS_PARTS.replace(old, f"{old}zwei")
    assert note in text


SIZES = 'xmlns:slr="urn:oasis:names:tc:xliff:sizerestriction:2.0"'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (XLIFF.replace('id="1">', 'id="1" maxwidth="12" size-unit="char">', 1), "it has 19 characters, the format"),
        (XLIFF.replace("<body>", '<body><group maxwidth="12" size-unit="byte">'), "it has 22 bytes in UTF-8, the "),
        (XLIFF.replace('id="1">', 'id="1" maxwidth="19" size-unit="char">', 1), ""),
        (XLIFF.replace('id="1">', 'id="1" maxwidth="12">', 1), ""),  # of pixels
        (XLIFF_2.replace("<unit", f'<unit {SIZES} slr:sizeRestriction="2"'), "it has 4 characters, the "),
        (
            XLIFF_2.replace('<file id="f">', f'<file id="f" {SIZES} slr:storageRestriction="0,3">\n<slr:profiles '
                            'storageProfile="xliff:utf16"/>'),
            "it has 8 bytes in utf-16-le, the format allows 3",
        ),
        (XLIFF_2.replace("<unit", f'<unit {SIZES} slr:sizeRestriction="1,4"'), ""),
    ],
)  # fmt: skip
def test_limits_of_lengths_are_kept(text: str, problem: str) -> None:
    text = text.replace("</body>", "</group></body>" if "<group" in text else "</body>")
    catalog = read_catalog(text.encode(), Path("x.xlf"))
    new = [Written(line, None, ()) for line in ('zw\u00f6i <g id="1">dr\u00e4i</g> &amp; m\u00e4hrere',)]
    done = fill(catalog, Memory(), lambda lines: new if "1.2" in text else words(lines))
    assert [reason[: len(problem)] for _, reason in done.left] == ([problem] if problem else [])


def test_tmx_is_only_read(tmp_path: Path, repo_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.tmx").write_text("<tmx/>")
    assert main(["localise", str(repo_root / BUNDLE), str(tmp_path / "x.tmx"), "--dry-run"]) == 2
    assert "is a TMX, which is only read; name it as --memory" in capsys.readouterr().err


def test_elements_of_xliff_stay(tmp_path: Path) -> None:
    (tmp_path / "x.xlf").write_text(XLIFF)
    catalog = open_catalog(tmp_path / "x.xlf")
    fill(catalog, Memory(), lambda lines: [Written(line.replace("two", "zwei"), 0.25, []) for line in lines])
    new = '<target state="needs-review-translation">zwei <g id="1">three</g> &amp; more</target>'
    assert bytes(catalog).decode() == XLIFF.replace(
        "&amp; more</source>",
        f'&amp; more</source>{new}<note from="softsearch">softsearch: translated, confidence 0.25</note>',
    )


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Open %s", "Öffnen", "it lacks %s"),
        ("Open", "Öffnen %s", "it has %s, which the message has not"),
        ("<b>a</b>", "</b>a<b>", "its tags are not nested"),
        ("a\nb", "a b", "it has 0 line breaks, the message 1"),
        ("~Open", "Öffnen", "one of both has an accelerator"),
        ("Open:", "Öffnen", "it ends with no sign, the message with :"),
        ("Open", " ", "the model found no complete translation"),
        ("%1:s open", "%1 öffnen", "it lacks %1:s"),
        ("Open", "<3> Datei", "it has a symbol of the model"),
    ],
)
def test_what_would_break_is_found(source: str, target: str, reason: str) -> None:
    assert any(found.startswith(reason) for found in problems(source, target, "~"))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Open...", "Öffnen…"),
        ("Open?", "開く？"),
        ("<br>a<b>b</b>", "<b>b</b><br>a"),
        ("~Open", "開く(~O)"),
        ("%s %s", "%s %s"),
        ("Copy %1 to %2", "Kopioi %1:n kohteeseen %2"),
        ("%1:s file", "%1:s fil"),
        ("~Open ~~ 2", "~Auf ~~ 2"),
    ],
)
def test_what_is_right_is_not_complained_about(source: str, target: str) -> None:
    assert problems(source, target, "~") == []


def test_the_command_fills_a_catalog(repo_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.po").write_text(PO.replace("_Two", "two").replace("Three", "three"))
    bundle, out = str(repo_root / BUNDLE), tmp_path / "out" / "x.po"
    assert main(["localise", bundle, str(tmp_path / "x.po"), "--dry-run"]) == 0
    assert not out.exists()
    assert main(["localise", bundle, str(tmp_path / "x.po"), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"{tmp_path / 'x.po'} -> {out}" in printed
    assert "translated, to be reviewed" in printed
    assert open_catalog(out).entries[0].targets == ("zwei",)
    before = out.read_bytes()
    assert main(["localise", bundle, str(tmp_path / "x.po"), "--out", str(out)]) == 2
    assert f"{out} exists already" in capsys.readouterr().err
    assert out.read_bytes() == before
    (tmp_path / "fr.po").write_text(PO.replace("Language: de", "Language: fr"))
    assert main(["localise", bundle, str(tmp_path / "fr.po"), "--dry-run"]) == 2
    assert "fr.po is a catalog of 'fr', expected 'de'; choose a bundle" in capsys.readouterr().err
