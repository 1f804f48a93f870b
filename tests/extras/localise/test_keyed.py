"""Formats with a file for each language: the source's file is found, new texts are added, and all bytes stay."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import CorpusError
from softsearch.extras.localise import Catalogs
from softsearch.extras.localise.fill import Filled, Written, fill
from softsearch.extras.localise.memory import Memory
from softsearch.extras.localise.messages import found_files
from softsearch.extras.localise.opening import open_catalog
from softsearch.extras.localise.siblings import source_of

ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="app" translatable="false">App</string>
    <string name="open">Open</string>
    <string name="hello">It\\'s <xliff:g id="n">%1$s</xliff:g> &amp; <b>you</b></string>
    <plurals name="files">
        <item quantity="one">%d file</item>
        <item quantity="other">%d files</item>
    </plurals>
</resources>
"""
ANDROID_CS = """<?xml version='1.0' encoding="utf-8"?>
<resources>
  <!-- mine -->
  <string  name="open" >Otevřít</string><string name="empty"/>
</resources>
"""
WORDS = {"Open": "Öffnen", "%d file": "%d Datei", "%d files": "%d Dateien", "file": "Datei", "files": "Dateien"}
HELLO = '<xliff:g id="n">%1$s</xliff:g> &amp; <b>you</b>'
WORDS |= {"{{count}} files": "{{count}} Dateien"}
WORDS |= {f"It's {HELLO}": f"{HELLO} ist's", 'Say "{0}"': 'Sag "{0}" für', "It's new": "Es ist neu", "x": "ü"}


def words(lines: Sequence[str]) -> list[Written]:
    return [Written(WORDS[line], 0.5, []) for line in lines]


def filled(path: Path) -> tuple[str, Filled]:
    catalog = open_catalog(path)
    assert bytes(catalog) == path.read_bytes()
    done = fill(catalog, Memory(), words)
    path.write_bytes(bytes(catalog))
    again = open_catalog(path)
    assert bytes(again) == path.read_bytes()
    assert fill(again, Memory(), words).translated == 0
    return path.read_bytes().decode(), done


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("source", "target", "code"),
    [
        ("res/values/strings.xml", "res/values-de/strings.xml", "de"),
        ("res/values/strings.xml", "res/values-pt-rBR/strings.xml", "pt-BR"),
        ("res/values-night/s.xml", "res/values-b+sr+Latn-night/s.xml", "sr-Latn"),
        ("app.properties", "app_de_AT.properties", "de-AT"),
        ("res/values/strings.xml", "res/values-iw/strings.xml", "he"),
        ("app_en.properties", "app_de.properties", "de"),
        ("en.json", "de.json", "de"),
        ("locales/en-US/a/b.json", "locales/zh-Hans/a/b.json", "zh-Hans"),
        ("lib/app_en.arb", "lib/app_de.arb", "de"),
        ("Base.lproj/L.strings", "de.lproj/L.strings", "de"),
    ],
)
def test_the_file_of_the_source_text_is_found(tmp_path: Path, source: str, target: str, code: str) -> None:
    paths = put(tmp_path / source, "{}"), put(tmp_path / target, "{}")
    assert source_of(paths[1]) == (paths[0], "en", code)
    assert source_of(paths[0]) is None
    assert found_files(str(tmp_path)) == [paths[1]]
    paths[0].unlink()
    with pytest.raises(CorpusError, match=r"has no file of its source text: expected one with en, or no language"):
        open_catalog(paths[1])


def test_the_source_may_be_another_language(tmp_path: Path) -> None:
    german, english = put(tmp_path / "de.json", '{"a": "Datei"}'), put(tmp_path / "en.json", '{"a": "File"}')
    assert source_of(english, "de") == (german, "de", "en")
    catalog = open_catalog(english, "de")
    assert (catalog.src_lang, catalog.tgt_lang, catalog.pairs()) == ("de", "en", [("Datei", "File")])


def test_resources_of_android(tmp_path: Path) -> None:
    put(tmp_path / "values" / "strings.xml", ANDROID)
    text, done = filled(put(tmp_path / "values-cs" / "strings.xml", ANDROID_CS))
    assert (done.before, done.translated, done.left) == (1, 2, [])
    start, end = ANDROID_CS.removesuffix("\n</resources>\n").split("<resources")
    namespace = ' xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2"'
    note = "  <!-- softsearch: translated, confidence 0.50 -->"
    assert text == (
        f"{start}<resources{namespace}{end}\n{note}\n"
        '  <string name="hello"><xliff:g id="n">%1$s</xliff:g> &amp; <b>you</b> ist\\\'s</string>\n'
        f'{note}\n  <plurals name="files">\n    <item quantity="one">%d Datei</item>\n'
        '    <item quantity="few">%d Dateien</item>\n    <item quantity="many">%d Dateien</item>\n'
        '    <item quantity="other">%d Dateien</item>\n  </plurals>\n</resources>\n'
    )
    text, _ = filled(put(tmp_path / "values-ja" / "strings.xml", "<resources/>"))
    assert text.startswith(f"<resources{namespace}>\n")
    assert '<item quantity="other">%d Dateien</item>' in text
    assert 'quantity="one"' not in text


EMPTY = """<resources>
    <!-- mine -->
    <string  name="open"></string>
  <string  name="old" >x</string>
    <string  name="hello"/>
    <plurals name="files">
        <item quantity="one">my %d file</item>
        <item quantity="other"></item>
    </plurals>
</resources>
"""


def test_resources_of_android_for_several_devices(tmp_path: Path) -> None:
    """A name may be there once for each of them, and once more as a plural."""
    tablet = '    <string name="open" product="tablet">{}</string>\n'
    plural = '    <plurals name="open">\n        <item quantity="other">{}</item>\n    </plurals>\n'
    default = '    <string name="open" product="default">{}</string>\n'
    source = tablet.format("x") + default.format("Open") + plural.format("files")
    put(tmp_path / "values" / "strings.xml", f"<resources>\n{source}</resources>\n")
    old = tablet.format("mein x")
    text, done = filled(put(tmp_path / "values-ja" / "strings.xml", f"<resources>\n{old}</resources>\n"))
    assert (done.before, done.translated) == (1, 2)
    note = "    <!-- softsearch: translated, confidence 0.50 -->\n"
    new = note + default.format("Öffnen") + note + plural.format("Dateien")
    assert text == f"<resources>\n{old}{new}</resources>\n"


def test_empty_texts_of_android_are_filled(tmp_path: Path) -> None:
    put(tmp_path / "values" / "strings.xml", ANDROID.replace("</r", '<string name="nothing"></string></r'))
    text, done = filled(put(tmp_path / "values-de" / "strings.xml", EMPTY))
    assert (done.before, done.translated, done.left) == (0, 3, [])
    note = "    <!-- softsearch: translated, confidence 0.50 -->\n"
    assert text == (
        '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">\n'
        '    <!-- mine -->\n  <string  name="old" >x</string>\n'
        f'{note}    <string name="open">Öffnen</string>\n'
        f'{note}    <string name="hello">{HELLO} ist\\\'s</string>\n'
        f'{note}    <plurals name="files">\n        <item quantity="one">my %d file</item>\n'
        '        <item quantity="other">%d Dateien</item>\n    </plurals>\n</resources>\n'
    )


def test_empty_texts_of_lines_are_filled_in_their_place(tmp_path: Path) -> None:
    put(tmp_path / "app.properties", "open=Open\nnothing=\nx=x\n")
    text, done = filled(put(tmp_path / "app_de.properties", "# mine\nopen = \n#  more\nx :   y\\\n   z"))
    note = "softsearch: translated, confidence 0.50"
    assert text == f"# mine\n# {note}\nopen=\\u00D6ffnen\n#  more\nx :   y\\\n   z"
    assert (done.before, done.translated) == (1, 1)
    put(tmp_path / "en.lproj" / "L.strings", '"o" = "Open";\n"n" = "";\n"x"="x";\n')
    text, _ = filled(put(tmp_path / "de.lproj" / "L.strings", '/* a */\n"o" = "";\n/* b */\n"x"="y";\n'))
    assert text == f'/* a */\n/* {note} */\n"o" = "Öffnen";\n/* b */\n"x"="y";\n'


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_properties(tmp_path: Path, end: str) -> None:
    put(tmp_path / "app.properties", 'open=Open\n# of the source\nsay = Say "{0}"\n')
    old = f"# mine{end}open : \\{end}   auf{end}e="
    text, _ = filled(put(tmp_path / "app_de.properties", old))
    note = "# softsearch: translated, confidence 0.50"
    assert text == f'{old}{end}{note}{end}say=Sag "{{0}}" f\\u00FCr{end}'
    text, _ = filled(put(tmp_path / "app_de.properties", f"open=\u00d6ffnen{end}"))
    assert text == f'open=\u00d6ffnen{end}{note}{end}say=Sag "{{0}}" f\u00fcr{end}'


@pytest.mark.parametrize("name", ["app_{}.properties", "app_{}.json", "{}.lproj/L.strings"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_utf_8_is_not_guessed(tmp_path: Path, name: str, mark: str, caplog: pytest.LogCaptureFixture) -> None:
    texts = {"json": '{{"k": "{}"}}', "properties": "k={}", "strings": '"k" = "{}";'}
    text = texts[name.rpartition(".")[2]]
    for code, value in (("en", "\u0192 \u201cx\u201d"), ("de", "\u00c3\u00a4")):  # read as others by charset_normalizer
        put(tmp_path / name.format(code), mark + text.format(value) + "\n")
    catalog = open_catalog(tmp_path / name.format("de"))
    assert catalog.pairs() == [("\u0192 \u201cx\u201d", "\u00c3\u00a4")]
    assert caplog.text == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_strings_of_apple(tmp_path: Path, encoding: str) -> None:
    put(tmp_path / "en.lproj" / "L.strings", '"o" = "Open";\n"s" = "Say \\"{0}\\"";\n')
    old = '/* mine */\n"o" = "Öffnen";\n'
    path = put(tmp_path / "de.lproj" / "L.strings", "")
    path.write_bytes(old.encode(encoding))
    catalog = open_catalog(path)
    fill(catalog, Memory(), words)
    note = "/* softsearch: translated, confidence 0.50 */"
    assert bytes(catalog) == f'{old}{note}\n"s" = "Sag \\"{{0}}\\" für";\n'.encode(encoding)


def test_strings_of_apple_beside_or_below_their_keys(tmp_path: Path) -> None:
    put(tmp_path / "en.lproj" / "L.strings", '"o" = "Open"; "p"\n  = "Open";\n"x" =\n"x";\n')
    old = '/* "a"\n= "b" */\n"o"\n  = "Auf";\n\n"x" = "";\n'
    text, done = filled(put(tmp_path / "de.lproj" / "L.strings", old))
    note = "/* softsearch: translated, confidence 0.50 */\n"
    new = f'{note}"p" = "Öffnen";\n'
    assert text == old.replace('"x" = ""', f'{note}"x" = "ü"') + new
    assert (done.before, done.translated) == (1, 2)


SOURCE = {
    "menu": {"open": "Open", "n": 1},
    "list": ["Open", "x"],
    "f_one": "file",
    "f_other": "files",
    "say": "It's new",
}
TARGET = {"say": "", "menu": {"old": "alt"}, "list": ["Öffnen"]}
NEW = {"say": "Es ist neu", "menu": {"old": "alt", "open": "Öffnen"}, "list": ["Öffnen", "ü"]}
NEW |= {"f_one": "Datei", "f_other": "Dateien"}


@pytest.mark.parametrize("indent", [None, 2, 4, "\t"])
def test_json_keeps_its_form(tmp_path: Path, indent: int | str | None) -> None:
    put(tmp_path / "en.json", json.dumps(SOURCE))
    path = put(tmp_path / "de.json", json.dumps(TARGET, indent=indent, ensure_ascii=False) + "\n" * (indent == 2))
    catalog = open_catalog(path)
    done = fill(catalog, Memory(), words)
    assert done.left == []
    assert bytes(catalog).decode() == json.dumps(NEW, indent=indent, ensure_ascii=False) + "\n" * (indent == 2)
    note = "softsearch: translated, confidence 0.50"
    assert ("f", "file | files", "Datei | Dateien", note) in catalog.to_review
    assert len(catalog.to_review) == 4


TREES = st.recursive(
    st.sampled_from(["Open", "x", "", 3, None, True]),
    lambda each: st.dictionaries(st.sampled_from("abc"), each, max_size=3) | st.lists(each, max_size=2),
    max_leaves=12,
)
FORMS = [{"indent": 4}, {"indent": 1, "separators": (" ,", ":")}, {"separators": (",", ":")}]


def leaves(tree: Any, key: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """What is in a tree by its keys, empty objects and lists included."""
    below = [*tree.items()] if isinstance(tree, dict) else [*enumerate(tree)] if isinstance(tree, list) else []
    yield from (leaf for part, each in below for leaf in leaves(each, (*key, part)))
    if not below:
        yield key, tree


@given(st.dictionaries(st.sampled_from("abc"), TREES, max_size=3), st.data(), st.sampled_from(FORMS))
def test_all_else_in_json_stays(source: dict[str, Any], draw: st.DataObject, form: dict[str, Any]) -> None:
    def with_less(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: with_less(each) for key, each in tree.items() if draw.draw(st.booleans())}
        return [with_less(each) for each in tree] if isinstance(tree, list) else tree and f"alt {tree}"

    target = {**with_less(source), "own": {"n": 1, "empty": {}, "no": []}}
    with TemporaryDirectory() as folder:
        put(Path(folder) / "en.json", json.dumps(source))
        catalog = open_catalog(put(Path(folder) / "de.json", json.dumps(target, **form)))
        assert fill(catalog, Memory(), words).left == []
    new, before = dict(leaves(json.loads(bytes(catalog)))), dict(leaves(target))
    assert {key: new.get(key, "absent") for key, each in before.items() if each not in ("", {}, [])} == {
        key: each for key, each in before.items() if each not in ("", {}, [])
    }
    assert {key: each for key, each in new.items() if key not in before and isinstance(each, str)} == {
        key: {"Open": "\u00d6ffnen", "x": "\u00fc"}[each]
        for key, each in leaves(source)
        if key not in before and each in ("Open", "x")
    }
    assert new["own", "empty"] == {}
    assert new["own", "no"] == []


def test_json_of_other_forms(tmp_path: Path) -> None:
    put(tmp_path / "en.json", '{"a": "Open"}')
    catalog = open_catalog(put(tmp_path / "de.json", '{\r\n  "list": ["x", "y"],\r\n  "b": "alt"\r\n}\r\n'))
    fill(catalog, Memory(), words)
    new = '{\r\n  "list": ["x", "y"],\r\n  "b": "alt",\r\n  "a": "Öffnen"\r\n}\r\n'
    assert bytes(catalog).decode() == new
    with pytest.raises(CorpusError, match=r"de\.json has the key 'b' twice; remove one"):
        open_catalog(put(tmp_path / "de.json", '{"b": "1", "b": "2"}'))
    with pytest.raises(CorpusError, match=r"de\.json cannot be read .*repair it, or the file of its source text"):
        open_catalog(put(tmp_path / "de.json", '{"b": '))


@pytest.mark.parametrize(
    ("name", "source", "target", "expected"),
    [
        ("fr", {"k": "file", "k_plural": "files"}, {}, {"k": "Datei", "k_plural": "Dateien"}),
        ("ja", {"k_one": "file", "k_other": "files"}, {}, {"k_other": "Dateien"}),
        (
            "cs",
            {"k_one": "file", "k_other": "files"},
            {"k_one": "s", "k_few": ""},
            {"k_one": "s", "k_few": "Dateien", "k_many": "Dateien", "k_other": "Dateien"},
        ),
        (
            "cs",  # many is for fractions alone, so nothing is missing
            {"k_one": "file", "k_other": "files"},
            {"k_one": "s", "k_few": "t", "k_other": "u"},
            {"k_one": "s", "k_few": "t", "k_other": "u"},
        ),
        (
            "ar",
            {"k_one": "x", "k_other": "{{count}} files"},
            {},
            {**dict.fromkeys(("k_zero", "k_two", "k_few", "k_many", "k_other"), "{{count}} Dateien"), "k_one": "ü"},
        ),
        (
            "ru",  # one is for 21, too
            {"k_one": "x", "k_other": "{{count}} files"},
            {},
            dict.fromkeys(("k_one", "k_few", "k_many", "k_other"), "{{count}} Dateien"),
        ),
        (
            "cs",
            {"k": "x", "k_plural": "{{count}} files"},
            {},
            {"k_0": "ü", "k_1": "{{count}} Dateien", "k_2": "{{count}} Dateien"},
        ),
        ("de", {"k": {"message": "Open", "description": "d"}}, {}, {"k": {"message": "Öffnen", "description": "d"}}),
        ("de", {"k": {"defaultMessage": "Open"}}, {}, {"k": {"defaultMessage": "Öffnen"}}),
    ],
)
def test_kinds_of_json(tmp_path: Path, name: str, source: object, target: object, expected: dict[str, object]) -> None:
    put(tmp_path / "en.json", json.dumps(source))
    catalog = open_catalog(put(tmp_path / f"{name}.json", json.dumps(target)))
    fill(catalog, Memory(), words)
    assert json.loads(bytes(catalog)) == expected


def test_flutter(tmp_path: Path) -> None:
    put(tmp_path / "app_en.arb", '{"@@locale": "en", "o": "Open", "@o": {"description": "d"}, "x": "x"}')
    path = put(tmp_path / "app_de.arb", json.dumps({"@@locale": "de", "x": "schon da"}, indent=2) + "\n")
    catalog = open_catalog(path)
    fill(catalog, Memory(), words)
    expected = {"@@locale": "de", "x": "schon da", "o": "Öffnen", "@o": {"description": "d"}}
    assert bytes(catalog).decode() == json.dumps(expected, indent=2, ensure_ascii=False) + "\n"


def test_pairs_of_files_are_training_text(tmp_path: Path) -> None:
    for code in ("en", "de"):
        put(tmp_path / code / "app.json", json.dumps({str(n): f"message {n} {code}" for n in range(40)}))
    source = Catalogs(train=str(tmp_path / "de"), val=5, test=5)
    assert (source.src_lang, source.tgt_lang) == ("en", "de")
    src, tgt = (path.read_text().splitlines() for path in source.files(tmp_path / "cache")["train"])
    assert len(src) == 30
    assert all(target == line.replace("en", "de") for line, target in zip(src, tgt, strict=True))
    put(tmp_path / "en" / "app.json", json.dumps({str(n): f"text {n} en" for n in range(40)}))
    changed = source.files(tmp_path / "cache")["train"][0]
    assert changed.read_text().startswith("text")
