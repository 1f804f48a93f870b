"""What is written is accepted by each format's own tools: msgfmt, Qt's lconvert, Android's aapt2, schemas of XLIFF.

Debian has them in gettext, qttools5-dev-tools, aapt and php-symfony-translation; without one, its tests are skipped.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lxml import etree

from softsearch import Translation
from softsearch.extras.localise.fill import Filled, Written, fill
from softsearch.extras.localise.memory import Memory
from softsearch.extras.localise.opening import open_catalog
from softsearch.extras.localise.translating import translation
from softsearch.text.parts import spans_of

SCHEMAS = Path("/usr/share/php/Symfony/Component/Translation/Resources/schemas")
# Texts with what breaks builds: placeholders, quotes, escapes, tags, entities, line breaks, space, other scripts.
TEXTS = [
    "Open %s",
    "%1$s of %2$d: 100%%",
    'Say "hello" to {0}\'s \\ friend',
    " <b>Two</b> & three &amp; <br/>\n\tlines ",
    "@mention ?",
    "<![CDATA[<i>x</i>]]>",
    "{n, plural, one {# file} other {# files}}",
    "]]> -- \u202e\u0635\U0001f600",
]
FORMS = {"de": 2, "ja": 1, "ar": 6, "cs": 3, "ru": 3}
RULES = {
    "de": "nplurals=2; plural=(n != 1);",
    "ja": "nplurals=1; plural=0;",
    "cs": "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;",
    "ru": "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;",
    "ar": "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;",
}


def shout(lines: Sequence[str]) -> list[Written]:
    """Translates by new letters around what is not language, which stays."""
    found = []
    for line in lines:
        parts, reached = [], 0
        for begin, end in [*spans_of(line), (len(line), len(line))]:
            parts += [line[reached:begin].upper().replace("E", "\u00c9'\""), line[begin:end]]
            reached = end
        found.append(Written("".join(parts), 0.5, ()))
    return found


def filled(path: Path, left: int = 0) -> Filled:
    """Fills a file in its place, and checks that a second time nothing is left to do."""
    catalog = open_catalog(path)
    done = fill(catalog, Memory(), shout)
    assert len(done.left) == left, done.left
    assert done.translated > 0
    path.write_bytes(bytes(catalog))
    assert fill(open_catalog(path), Memory(), shout).translated == 0
    return done


def run(tool: str, *arguments: object) -> None:
    if not (found := shutil.which(tool)):
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("code", FORMS)
def test_msgfmt_accepts_po(tmp_path: Path, code: str) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", '\\n"\n"').replace("\t", "\\t") + '"'

    fields = dict.fromkeys(("Project-Id-Version", "PO-Revision-Date", "Last-Translator", "Language-Team"), "x")
    fields |= {"Language": code, "Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": RULES[code]}
    fields |= {"MIME-Version": "1.0", "Content-Transfer-Encoding": "8bit"}
    rows = ['msgid ""\nmsgstr ""\n' + "".join(f'"{name}: {value}\\n"\n' for name, value in fields.items())]
    for text in TEXTS:
        kind = "#, c-format\n" if "%" in text else "#, python-brace-format\n" if "{0}" in text else ""
        rows.append(f'{kind}msgctxt "x"\nmsgid {quoted(text)}\nmsgstr ""\n')
    forms = "".join(f'msgstr[{form}] ""\n' for form in range(FORMS[code]))
    rows += [  # in Russian the form of one is for 21, too
        f'#, c-format\nmsgid "{one}"\nmsgid_plural "%d {one}s"\n{forms}' for one in ("%d file", "One file")
    ]
    (tmp_path / "x.po").write_text("\n".join(rows), encoding="utf-8")
    filled(tmp_path / "x.po")
    run("msgfmt", "-c", "--check-format", "--use-fuzzy", "-o", tmp_path / "x.mo", tmp_path / "x.po")


def test_msgfmt_accepts_placeholders_in_another_order(tmp_path: Path) -> None:
    texts = ["%s has %d files", "Copy %s to %s", "%.*f in %s", "one %s\\nof %s or %d", "%s of %s"]
    flags = ["c-format"] * 4 + ["python-format"]
    rows = (f'#, {flag}\nmsgid "{text}"\nmsgstr ""\n' for flag, text in zip(flags, texts, strict=True))
    header = 'msgid ""\nmsgstr "Language: de\\nContent-Type: text/plain; charset=UTF-8\\n"\n\n'
    (tmp_path / "x.po").write_text(header + "\n".join(rows), encoding="utf-8")
    catalog, tokenizer = open_catalog(tmp_path / "x.po"), SimpleNamespace(reads_symbols=True, vocabulary=list)

    def turned(lines: Sequence[str]) -> list[Translation]:
        symbols = ([f"<{n}>" for n in range(line.count("<"), 0, -1)] for line in lines)
        return [Translation(" ".join(each), 0.0, 0.0, False, (), (), None) for each in symbols]

    done = fill(catalog, Memory(), translation(turned, cast("Any", tokenizer), Memory()))
    (tmp_path / "x.po").write_bytes(bytes(catalog))
    written = [entry.targets[0] for entry in open_catalog(tmp_path / "x.po").entries]
    assert written == ["%2$d %1$s", "%2$s %1$s", "", "", ""]  # the others cannot have numbers
    assert [source for source, _ in done.left] == [text.replace("\\n", "\n") for text in texts[2:]]
    run("msgfmt", "--check-format", "--use-fuzzy", "-o", tmp_path / "x.mo", tmp_path / "x.po")


def test_lconvert_accepts_ts(tmp_path: Path) -> None:
    root = etree.Element("TS", version="2.1", language="cs_CZ", sourcelanguage="en")
    context = etree.SubElement(root, "context")
    etree.SubElement(context, "name").text = "Main"
    for text in [*TEXTS, "%n file(s) %1 %L2"]:
        message = etree.SubElement(context, "message")
        etree.SubElement(message, "source").text = text
        translation = etree.SubElement(message, "translation", type="unfinished")
        if "%n" in text:
            message.set("numerus", "yes")
            etree.SubElement(translation, "numerusform")  # as of lupdate without -target-language; Czech has 3
    (tmp_path / "x.ts").write_bytes(
        etree.tostring(root, xml_declaration=True, encoding="utf-8", doctype="<!DOCTYPE TS>")
    )
    filled(tmp_path / "x.ts")
    run("lconvert", "-i", tmp_path / "x.ts", "-o", tmp_path / "x.po", "-of", "po")
    run("lconvert", "-i", tmp_path / "x.ts", "-o", tmp_path / "y.ts", "-of", "ts")
    for name in ("x.po", "y.ts"):
        targets = [text for entry in open_catalog(tmp_path / name).entries for text in entry.targets]
        assert "OP\u00c9'\"N %s" in targets
        assert targets.count("%n FIL\u00c9'\"(S) %1 %L2") == 3


def schema(name: str) -> etree.XMLSchema:
    class Local(etree.Resolver):
        def resolve(self, system_url: str, public_id: str, context: object) -> object:
            return self.resolve_filename(str(SCHEMAS / Path(system_url).name), context)

    if not (SCHEMAS / name).is_file():
        pytest.skip(f"{SCHEMAS / name} is not there")
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(Local())
    return etree.XMLSchema(etree.parse(str(SCHEMAS / name), parser))


XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a" source-language="en" target-language="de" datatype="plaintext"><body>{}</body></file>
</xliff>
"""
UNITS = """
<trans-unit id="a"><source>Open <g id="1">the <x id="2"/> file</g></source></trans-unit>
<group id="g"><trans-unit id="b" xml:space="preserve" resname="r"><source> two
 </source><target/><note>x</note><alt-trans><target>y</target></alt-trans></trans-unit></group>
<trans-unit id="c"><source>One. Two.</source>
<seg-source><mrk mtype="seg" mid="1">One.</mrk> Two.</seg-source></trans-unit>
<trans-unit id="d" translate="no"><source>no</source></trans-unit>
"""
XLIFF_2 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
  <file id="f">{}</file>
</xliff>
"""
UNITS_2 = """
<unit id="a"><notes><note>x</note></notes><originalData><data id="d">%s</data></originalData>
 <segment id="s"><source>Open <ph id="1" dataRef="d"/> or <pc id="2">the file</pc></source></segment>
 <ignorable><source> </source></ignorable>
 <segment state="translated"><source>done</source><target>fertig</target></segment></unit>
<group id="g" translate="no"><unit id="b"><segment><source>no</source></segment></unit></group>
<unit id="c" translate="no"><segment><source>no</source></segment></unit>
"""


@pytest.mark.parametrize(
    ("name", "frame", "unit", "units"),
    [
        ("xliff-core-1.2-strict.xsd", XLIFF, '<trans-unit id="t{}"><source>{}</source></trans-unit>', UNITS),
        ("xliff-core-2.0.xsd", XLIFF_2, '<unit id="t{}"><segment><source>{}</source></segment></unit>', UNITS_2),
    ],
)
def test_schemas_accept_xliff(tmp_path: Path, name: str, frame: str, unit: str, units: str) -> None:
    escaped = [text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for text in TEXTS]
    body = units + "\n".join(unit.format(number, text) for number, text in enumerate(escaped))
    (path := tmp_path / "x.xlf").write_text(frame.format(body), encoding="utf-8")
    checked = schema(name)
    checked.assertValid(etree.parse(str(path)))
    filled(path)
    checked.assertValid(etree.parse(str(path)))
    assert "<target>no" not in path.read_text(encoding="utf-8").casefold()


@pytest.mark.parametrize("code", ["de", "ja", "cs", "ar", "ru", "pt-rBR"])
def test_aapt2_accepts_resources_of_android(tmp_path: Path, code: str) -> None:
    resources = """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="a">It\\'s \\"%1$s\\" &amp; <b>b</b> \\u0020\\n \\@x</string>
    <string name="b">Hello <xliff:g id="n" example="x">%1$s</xliff:g></string>
    <string name="c"><![CDATA[<i>Open</i> it]]></string>
    <string name="d">" two  spaces "</string>
    <string name="e" formatted="false">%s of %s</string>
    <string name="g" product="tablet">Tablet</string>
    <string name="g" product="default">Phone</string>
    <plurals name="f"><item quantity="one">%d file</item><item quantity="other">%d files</item></plurals>
</resources>
"""
    for folder, text in (("values", resources), (f"values-{code}", "<resources>\n</resources>\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "strings.xml").write_text(text, encoding="utf-8")
    path = tmp_path / f"values-{code}" / "strings.xml"
    assert filled(path).translated == 8
    run("aapt2", "compile", path, "-o", tmp_path)


def test_json_and_properties_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "en.json").write_text(json.dumps({str(key): text for key, text in enumerate(TEXTS)}))
    (tmp_path / "de.json").write_text("{}")
    filled(tmp_path / "de.json")
    written = json.loads((tmp_path / "de.json").read_text(encoding="utf-8"))
    assert written["0"] == "OP\u00c9'\"N %s"
    assert len(written) == len(TEXTS)
    (tmp_path / "app.properties").write_text("a=Open {0}\\n\\\n  it\nb\\ c=\\u0020two\n", encoding="utf-8")
    (tmp_path / "app_de.properties").write_text("")
    filled(tmp_path / "app_de.properties")
    entries = open_catalog(tmp_path / "app_de.properties").entries
    assert [entry.targets[0] for entry in entries] == ["OP\u00c9'\"N {0}\nIT", " TWO"]
