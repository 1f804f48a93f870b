"""What bad input gets: an error that names the file and says what to do, and nothing is written."""

import logging
from pathlib import Path

import pytest

from softsearch.errors import ConfigError, CorpusError
from softsearch.extras.localise import Catalogs
from softsearch.extras.localise.fill import Written, fill
from softsearch.extras.localise.memory import Memory, memories_of
from softsearch.extras.localise.opening import MAX_BYTES, open_catalog
from softsearch.runtime.cli import main

BUNDLE = "tests/golden/bundle"
HEADER = """msgid ""
msgstr ""
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""
ENTITIES = "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True))
LAUGHS = f'<!DOCTYPE x [<!ENTITY a "ha">{ENTITIES}]>'
XLIFF = "<xliff version='1.2'><file><trans-unit><source>&i;</source></trans-unit></file></xliff>"
UTF_16 = f'<?xml version="1.0" encoding="utf-16"?>{LAUGHS}'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.po", 'msgid "a\nmsgstr ""\n', r"x\.po cannot be read .*msgfmt -c"),
        ("x.po", f'{HEADER}msgidd "a"\nmsgstr ""\n', r"x\.po cannot be read .*line 7"),
        ("x.po", "no catalog", r"x\.po cannot be read .*line 1"),
        ("x.po", HEADER.replace("n != 1", "n ! 1"), "cannot be read .*plural form"),
        ("x.po", f'{HEADER}msgid "a"\nmsgstr "x"\n\nmsgid "a"\nmsgstr "x"\n', "has the message 'a' twice"),
        (
            "x.po",
            f'{HEADER}msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] "y"\nmsgstr[2] "z"\n',
            r"has 3 plural forms of 'a', its header says 2; correct Plural-Forms",
        ),
        (
            "x.po",
            f'{HEADER}msgid "\xfc"\nmsgstr ""\n'.encode("latin-1"),
            r"x\.po:7 is not in UTF-8, as its header says; convert it \(iconv -f ISO-8859-1",
        ),
        (
            "x.po",
            'msgid "\xfc"\nmsgstr ""\n'.encode("latin-1"),
            r"x\.po:1 is not in UTF-8, which it is without a charset",
        ),
        ("x.po", HEADER.encode("utf-16"), r"x\.po:1 is not in UTF-8, .*convert it \(iconv -f UTF-16 -t UTF-8 FILE\)"),
        ("x.po", HEADER.replace("UTF-8", "CHARSET"), r"an unknown encoding; it is a template: msginit -i x\.po "),
        ("x.po", HEADER.replace("UTF-8", "Klingon"), r"says charset=Klingon, an unknown encoding; .* charset=UTF-8"),
        (
            "x.po",
            'msgid ""\nmsgstr "Language: cs\\n"\n\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n',
            r"has plurals, but no Plural-Forms .*: Plural-Forms: nplurals=3; plural=\(n==1\)",
        ),
        ("x.xlf", "<xliff><file>", "cannot be read"),
        ("x.xlf", LAUGHS + XLIFF, "declares entities"),
        ("x.tmx", f"{LAUGHS}<tmx/>", "declares entities"),
        ("x.ts", f"{LAUGHS}<TS/>", "declares entities"),
        ("x.xlf", (UTF_16 + XLIFF).encode("utf-16"), "cannot be read"),
        ("x.ts", f"{UTF_16}<TS><context><name>&i;</name></context></TS>".encode("utf-16"), "cannot be read"),
        ("x.xlf", f"<xliff>{'<g>' * 5000}{'</g>' * 5000}</xliff>", "cannot be read .*depth"),
        ("x.ts", "<TS><context>", "cannot be read"),
        ("x.txt", "", "does not have the name of a catalog"),
    ],
)
def test_damaged_catalogs_are_named(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(CorpusError, match=message):
        open_catalog(tmp_path / name).check_messages(tmp_path / name)


def test_what_programs_refuse_is_read_for_training(tmp_path: Path) -> None:
    plural = 'msgid "c"\nmsgid_plural "d"\nmsgstr[0] "x"\nmsgstr[1] "y"\nmsgstr[2] "z"\n'
    (tmp_path / "x.po").write_text(f'{HEADER}msgid "a"\nmsgstr "b"\n\nmsgid "a"\nmsgstr "b"\n\n{plural}')
    assert open_catalog(tmp_path / "x.po").pairs() == [("a", "b"), ("a", "b"), ("c", "x"), ("d", "z")]


@pytest.mark.parametrize(
    ("name", "target", "source", "message"),
    [
        ("de.json", "{}", '{"a":' * 100_000, r"de\.json cannot be read .*repair it, or the file of its source text"),
        ("de.json", "{}", '{"a": "1", "a": "2"}', r"en\.json has the key 'a' twice; remove one"),
        ("de.json", "{}", "[1", r"de\.json cannot be read"),
        ("de.properties", "a=1\na=2\n", "a=1\n", r"de\.properties has the key 'a' twice"),
        ("de.strings", '"a" = "1";\n', '"a" = "1";\n"a" = "2";\n', r"en\.strings has the key 'a' twice"),
        ("de.strings", '"a" "b";\n= "c";\n', '"a" = "1";\n', r"de\.strings has a text without a key: 'c'; write it on"),
        (
            "de.xml",
            "<resources/>",
            '<resources><string name="a">1</string><string name="a">2</string></resources>',
            "twice",
        ),
        ("de.xml", "<resources/>", "<html/>", r"en\.xml has no <resources> in UTF-8"),
        ("de.xml", "<resources/>", f"{LAUGHS}<resources/>", r"en\.xml declares entities"),
        ("de.xml", f"{LAUGHS}<resources/>", "<resources/>", r"de\.xml declares entities"),
        ("de.xml", "<resources><string>", "<resources/>", "cannot be read"),
    ],
)
def test_damaged_files_of_one_language_are_named(
    tmp_path: Path, name: str, target: str, source: str, message: str
) -> None:
    (path := tmp_path / name).write_text(target)
    (tmp_path / name.replace("de", "en")).write_text(source)
    with pytest.raises(CorpusError, match=message):
        open_catalog(path)


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x.po").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(CorpusError, match=r"x\.po has 268,435,457 bytes, expected at most 268,435,456; divide it"):
        open_catalog(tmp_path / "x.po")


def of_french(path: Path) -> Path:
    languages = 'source-language="fr" target-language="de"'
    unit = "<trans-unit><source>deux</source><target>zwei</target></trans-unit>"
    path.write_text(f'<xliff version="1.2"><file {languages}>{unit}</file></xliff>')
    return path


def test_another_source_language_is_refused(
    tmp_path: Path, repo_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = of_french(tmp_path / "x.xlf")
    assert main(["localise", str(repo_root / BUNDLE), str(path), "--dry-run"]) == 2
    assert "x.xlf has text in 'fr', expected 'en'; choose another bundle" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="has text in 'fr', expected 'en'"):
        memories_of([path], ["de"], "en")
    assert memories_of([path], ["de"])["de"].find("deux") is not None


def translated(path: Path, *texts: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    rows = (f'msgid "message {path.stem} {number}"\nmsgstr "{text}"\n' for number, text in enumerate(texts))
    path.write_text(HEADER + "\n".join(rows), encoding="utf-8")
    return path


def test_catalogs_in_another_script_than_their_header_says(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    japanese = [f"\u65e5\u672c\u8a9e\u306e{chr(0x3042 + number)}" for number in range(60)]
    german = [f"Meldung mit der Nummer {number}" for number in range(60)]
    translated(tmp_path / "de" / "ja.po", *japanese)
    for name in ("a", "b"):
        translated(tmp_path / "de" / f"{name}.po", *german)
    Catalogs(train=str(tmp_path / "de"), val=5, test=5).files(tmp_path / "cache")
    assert f"no letters of 'de' in 1 catalogs: {tmp_path / 'de' / 'ja.po'}" in caplog.text
    for name in ("a", "b"):
        (tmp_path / "de" / f"{name}.po").unlink()
    with pytest.raises(
        CorpusError, match=r"ja\.po says that it is in 'de', but 300 of 300 letters of the translations"
    ):
        Catalogs(train=str(tmp_path / "de"), val=5, test=5).files(tmp_path / "cache")


def test_what_lacks_a_term_stays_untranslated(
    repo_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.po").write_text(f'{HEADER}msgid "two"\nmsgstr ""\n\nmsgid "lost"\nmsgstr ""\n')
    (tmp_path / "terms.tsv").write_text("two\t\u65e5\nlost\tneun\n")  # a character that the model cannot write
    command = ["localise", str(repo_root / BUNDLE), str(tmp_path / "x.po"), "--glossary", str(tmp_path / "terms.tsv")]
    assert main([*command, "--out", str(tmp_path / "new.po")]) == 0
    assert "'two': it lacks the glossary's word for two" in capsys.readouterr().out
    filled = {entry.sources[0]: entry.targets[0] for entry in open_catalog(tmp_path / "new.po").entries}
    assert filled["two"] == ""
    assert "neun" in filled["lost"]


def test_the_sign_at_the_end_is_the_messages_whatever_a_model_writes(tmp_path: Path) -> None:
    (tmp_path / "x.po").write_text(f'{HEADER}msgid "Open it"\nmsgstr ""\n\nmsgid "Why?"\nmsgstr ""\n')
    catalog = open_catalog(tmp_path / "x.po")
    written = {"Open it": "\u00d6ffnen?.", "Why?": "Warum. ..."}
    assert fill(catalog, Memory(), lambda lines: [Written(written[line], 0.5, ()) for line in lines]).left == []
    assert [entry.unit.target for entry in catalog.entries] == ["\u00d6ffnen", "Warum?"]


def test_a_memory_of_no_language_gets_advice_that_the_command_takes(tmp_path: Path) -> None:
    (path := tmp_path / "new.po").write_text('msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n')
    for unnamed, end in ((None, "write it into the file"), ("", "write it into the file, or give --tgt")):
        with pytest.raises(ConfigError, match=f"names no language, expected 'de' or 'fr'; {end}$"):
            memories_of([path], ["de", "fr"], unnamed=unnamed)
