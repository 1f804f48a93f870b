"""Messages as training text: symbols for what is not language, accelerators off, one of each, none in two splits."""

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.data.parts import UnreadPath
from softsearch.errors import ConfigError, CorpusError
from softsearch.extras.localise import Catalogs
from softsearch.extras.localise.accelerators import markers_of, put_on, take_off
from softsearch.extras.localise.catalog import nearest_code
from softsearch.extras.localise.checks import problems
from softsearch.extras.localise.messages import expanded, found_files, read_messages
from softsearch.extras.localise.spans import unmask
from softsearch.text.symbols import MOST, SYMBOLS, mask, mask_pair

PIECES = ["%s", "%1$s", "{name}", "%PRODUCTNAME", "<b>", "</b>", '<link href="a/b">', "$(ARG1)", "--force", "&lt;"]
WORDS = st.sampled_from(["open", "file", "Öffnen", "5", "the", "(two)", *PIECES])


@given(st.lists(WORDS, max_size=12))
def test_masks_are_undone(words: list[str]) -> None:
    masked = mask(text := " ".join(words))
    assert unmask(masked.text, masked.spans) == text
    assert [piece for piece in PIECES if piece in masked.text] == []
    assert [*masked.spans] == [word for word in words if word in PIECES]


def test_spans_of_both_sides_have_the_same_numbers() -> None:
    assert mask_pair("Copy %s to %d", "%d: Kopie von %s") == ("Copy <1> to <2>", "<2>: Kopie von <1>")
    assert mask_pair("Copy %1 to %2", "Kopioi %1:n %2:s") == ("Copy <1> to <2>", "Kopioi <1>:n <2>:s")
    assert mask_pair("%1:s and %2", "%1 und %2") is None
    assert mask_pair("%s and %s", "%s und %s") == ("<1> and <2>", "<1> und <2>")
    assert mask_pair("<b>5</b> files", "<b>5</b> Dateien") == ("<1>5<2> files", "<1>5<2> Dateien")
    named, other = '<xliff:g id="n" example="5">%d</xliff:g>', '<xliff:g id="N_0">%d</xliff:g>'  # as Android's own
    assert mask_pair(f"Copy {named}", f"{other} kopieren") == ("Copy <1>", "<1> kopieren")
    assert problems(f"Copy {named}", f"{other} kopieren") == []
    assert mask_pair(f"Copy {named}", f"{other.replace('%d', '%s')} kopieren") is None
    assert mask_pair("%s of %s", "%2$s の %1$s") == ("<1> of <2>", "<2> の <1>")
    assert mask_pair("Open /tmp/a", "Das /tmp/a-Verzeichnis") == ("Open <1>", "Das <1>-Verzeichnis")
    assert mask_pair("/tmp/a or /tmp/a-b", "/tmp/a-b oder /tmp/a-Datei") == ("<1> or <2>", "<2> oder <1>-Datei")
    assert mask_pair("Two notes.txt", "Die notes.txt-Dateien") == ("Two <1>", "Die <1>-Dateien")
    assert mask_pair("Open /tmp/a", "/tmp/a-1 /tmp/a") is None
    for target in ("Kopie", "Kopie %d", "Kopie %s %s"):
        assert mask_pair("Copy %s", target) is None
    assert mask_pair("%s " * (MOST + 1), "%s " * (MOST + 1)) is None


@pytest.mark.parametrize("translation", ["<1>", "<1> <2> <2>", "<1> <3>", "<2> <2>", ""])
def test_a_translation_has_each_symbol_once(translation: str) -> None:
    assert unmask(translation, ("%s", "%d")) is None
    assert unmask("<2>, <1>", ("%s", "%d")) == "%2$d, %1$s"
    assert unmask("<2>, <1>", ("{}", "{}")) is None  # which would be values in each other's place


@pytest.mark.parametrize(
    ("text", "marker", "letter", "expected"),
    [
        ("Datei", "~", "F", "~Datei"),
        ("Ansicht", "_", "h", "Ansic_ht"),
        ("Neue Datei", "&", "d", "Neue &Datei"),
        ("ファイル", "~", "f", "ファイル(~F)"),
        ("ファイル…", "_", "f", "ファイル(_F)…"),
        ("Файл", "&", "F", "&Файл"),
        ("%s speichern", "_", "s", "%s _speichern"),
        ("5 × 7", "_", "B", "_5 × 7"),
        ("Das ist der Name von sieben Dateien", "_", "z", "_Das ist der Name von sieben Dateien"),
    ],
)
def test_accelerators_are_put_on_and_taken_off(text: str, marker: str, letter: str, expected: str) -> None:
    assert put_on(text, marker, letter) == expected
    assert take_off(expected, marker).text == text


def test_an_accelerator_is_one_that_its_menu_does_not_use() -> None:
    assert put_on("Datei", "~", "F", {"d"}) == "D~atei"
    assert put_on("Neue Datei", "~", "N", {"n"}) == "Neue ~Datei"
    assert put_on("aa", "~", "a", {"a"}) == "~aa"  # there is no other


def test_markers_are_those_of_source_and_translation() -> None:
    pairs = [("~File", "~Datei"), ("_Open", "_Öffnen"), ("a & b", "a & b"), ("my_name", "mein Name")]
    assert markers_of(pairs) == "_~"
    assert markers_of([("File", "Datei")], ["_New", "my_name"], "~") == "_~"
    assert take_off("Terms & ~Conditions", "&~").text == "Terms & Conditions"
    assert take_off("Allow all && &Future", "&") == ("Allow all && Future", "&", "F")
    assert take_off("R&&D", "&").marker == ""
    assert take_off("a &lt; b &amp; c", "&").marker == ""
    assert take_off("snake_case_name", "_").marker == ""
    assert take_off("at most {{ max_width }}", "_").marker == ""
    assert take_off("_Open %(file_name)s", "_").marker == ""  # one of both, and nobody knows
    assert markers_of([("at most {max_width}", "maximal {max_width}")] * 9) == ""
    assert markers_of([("see lo_list", "siehe lo_list"), ("HIDE_IT now", "jetzt HIDE_IT")] * 9) == ""
    assert markers_of([("_Sol_ver", "_Sol_ver"), ("_OK", "_OK")]) == "_"
    text = "write a large object to a file, same as lo_list"  # an accelerator is inside a word of short texts alone
    assert take_off(text, "_") == (text, "", "")
    assert take_off("_Write a large object to a file", "_").letter == "W"


HEADER = r"""msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"
"""


def po(path: Path, *messages: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEADER, *messages]), encoding="utf-8")
    return path


def test_messages_are_read_once_and_others_are_counted(tmp_path: Path) -> None:
    one = po(
        tmp_path / "a" / "one.po",
        'msgctxt "menu"\nmsgid "_Open"\nmsgstr "_Öffnen"\n',
        'msgctxt "button"\nmsgid "Open"\nmsgstr "Öffnen"\n',
        'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"\n',
        '#, fuzzy\nmsgid "New"\nmsgstr "Alt"\n',
        'msgid "OK"\nmsgstr "OK"\n',
        'msgid "Empty"\nmsgstr ""\n',
        'msgid "Copy %s"\nmsgstr "Kopieren"\n',
        '#~ msgid "gone"\n#~ msgstr "weg"\n',
    )
    two = po(tmp_path / "a" / "two.po", 'msgid "Open"\nmsgstr "Öffnen"\n', 'msgid "Close"\nmsgstr "Schließen"\n')
    messages = read_messages(found_files([str(tmp_path / "a")]))
    assert (messages.src_lang, messages.tgt_lang) == ("", "de")
    assert messages.pairs == [
        ("Open", "Öffnen", 0),
        ("<1> file", "<1> Datei", 0),
        ("<1> files", "<1> Dateien", 0),
        ("Close", "Schließen", 1),
    ]
    assert messages.left_out == {
        "repeated": 2, "fuzzy": 1, "same text on both sides": 1, "untranslated": 1,
        "obsolete, empty or not to be translated": 1, "other placeholders or tags than the source": 1,
    }  # fmt: skip
    assert found_files([str(tmp_path / "**" / "*.po"), str(one)]) == [one, two]
    with pytest.raises(CorpusError, match="names no catalog"):
        found_files(str(tmp_path / "*.xlf"))
    two.write_text(two.read_text().replace("Language: de", "Language: fr"))
    with pytest.raises(ConfigError, match=r"two\.po says that its tgt_lang is 'fr'"):
        read_messages([one, two])


def catalogs(folder: Path) -> str:
    """Twenty catalogs, which have some messages in common, in other case or spacing."""
    for number in range(20):
        own = [f'msgid "Message {number} {i}"\nmsgstr "Meldung {number} {i}"\n' for i in range(10)]
        common = [
            f'msgid "{"SHARED" if number % 2 else "Shared"} {i}"\nmsgstr "Gemeinsam {i}"\n'
            for i in range(number, number + 3)
        ]
        po(folder / f"{number}.po", *own, *common)
    return str(folder / "*.po")


@pytest.mark.parametrize("split_by", ["message", "file"])
def test_no_message_is_in_two_splits(tmp_path: Path, split_by: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    source = Catalogs(train=catalogs(tmp_path / "po"), val=20, test=0.1, split_by=split_by)  # type: ignore[arg-type]
    assert (source.src_lang, source.tgt_lang, source.tags) == ("en", "de", SYMBOLS)
    files = source.files(tmp_path / "cache")
    assert {*files} == {"train", "val", "test"}
    texts = {split: [path.read_text().casefold().splitlines() for path in pair] for split, pair in files.items()}
    for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
        for side in (0, 1):
            assert not {*texts[one][side]} & {*texts[other][side]}
    assert 15 <= len(texts["val"][0]) <= 33
    assert len(texts["train"][0]) > 150
    assert source.files(tmp_path / "cache") == files
    if split_by == "file":
        names = [line.split()[1] for line in texts["val"][0] if line.startswith("message")]
        assert len({*names}) == 2  # whole catalogs of ten
        assert "in training, too" in caplog.text
        with pytest.raises(CorpusError, match=r"data\.val=900 with data\.split_by=file leaves no catalog of 20"):
            Catalogs(train=source.train, val=900, split_by="file").files(tmp_path / "cache")


def test_the_log_has_a_table_of_languages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rows = ['msgid "{0} a"\nmsgstr "{0} b"\n'.format(f"text {number}") for number in range(30)]
    po(tmp_path / "de" / "a.po", *rows, 'msgid "OK"\nmsgstr "OK"\n')
    french = po(tmp_path / "fr" / "a.po", *rows[:20])
    french.write_text(french.read_text().replace("Language: de", "Language: fr"))
    Catalogs(train=f"{tmp_path}/{{de,fr}}", val=2, test=2).files(tmp_path / "cache")
    table = [record.getMessage() for record in caplog.records if "messages by language" in record.getMessage()]
    assert [line.split() for line in table[0].splitlines()] == [
        ["train:", "messages", "by", "language"],
        ["de", "fr"],
        ["catalogs", "1", "1"],
        ["train", "30", "20"],
        ["left", "out:", "same", "text", "on", "both", "sides", "1", "0"],
    ]


@pytest.mark.parametrize("split_by", ["message", "file"])
def test_no_message_is_in_two_splits_of_several_languages(tmp_path: Path, split_by: str) -> None:
    for code in ("de", "fr", "pt_BR"):
        catalogs(tmp_path / code)
        for path in (tmp_path / code).iterdir():
            path.write_text(
                path.read_text().replace("Language: de", f"Language: {code}").replace("Meldung", f"Meldung {code}")
            )
    patterns = str(tmp_path / "{de,fr,pt_BR}" / "*.po")
    source = Catalogs(train=patterns, val=20, test=20, split_by=split_by)  # type: ignore[arg-type]
    assert (source.tgt_lang, source.tags[:4]) == ("de+fr+pt-BR", ("<2de>", "<2fr>", "<2pt-BR>", "<1>"))
    files = source.files(tmp_path / "cache")
    assert [len(src.read_text().splitlines()) > 100 for src, _ in source.train_files(tmp_path / "cache")] == [True] * 3
    splits = {"train": source.train_files(tmp_path / "cache"), **{s: [files[s]] for s in ("val", "test")}}
    texts: dict[str, set[str]] = {}
    for split, pairs in splits.items():
        lines = [line for src, _ in pairs for line in src.read_text().casefold().splitlines()]
        assert {line.split()[0] for line in lines} == {"<2de>", "<2fr>", "<2pt-br>"}
        assert split == "train" or 45 <= len(lines) <= 100
        texts[split] = {line.split(maxsplit=1)[1] for line in lines}
    assert not texts["train"] & texts["val"] | texts["train"] & texts["test"] | texts["val"] & texts["test"]
    assert len(Catalogs(train=patterns, temperature=5).repeats([10, 20, 30])) == 3
    with pytest.raises(ConfigError, match=r"fr/0\.po says .* give each language its pattern: data\.train='\{de,fr\}"):
        Catalogs(train=[str(tmp_path / "??" / "*.po")], val=20, test=20).files(tmp_path / "cache")
    with pytest.raises(ConfigError, match=r"data\.val: .*'pt-BR', expected one of de, fr"):
        Catalogs(train=str(tmp_path / "{de,fr}"), val=str(tmp_path / "pt_BR")).files(tmp_path / "cache")


def test_one_language_has_one_code(tmp_path: Path) -> None:
    de, de_de = po(tmp_path / "a.po", 'msgid "a"\nmsgstr "b"\n'), po(tmp_path / "b.po", 'msgid "c"\nmsgstr "d"\n')
    de_de.write_text(de_de.read_text().replace("Language: de", "Language: de_DE"))
    assert Catalogs(train=[str(de), str(de_de)]).tgt_lang == "de"
    codes = ["pt-PT", "pt-BR", "zh-Hans"]
    asked = ("pt", "pt_BR", "pt_AO", "zh_CN", "fr")
    assert [nearest_code(each, codes) for each in asked] == ["pt-PT", "pt-BR", "pt-PT", "zh-Hans", ""]


def test_braces_are_patterns() -> None:
    assert expanded("{de,fr, pt_BR}/{a,b}.po") == [
        f"{code}/{name}.po" for code in ("de", "fr", "pt_BR") for name in "ab"
    ]
    assert expanded("x/{de}.po") == ["x/{de}.po"]


def test_files_that_only_a_checkpoint_names_are_not_read(tmp_path: Path) -> None:
    named = UnreadPath(catalogs(tmp_path / "po"))
    for train in (named, [named]):
        source = Catalogs(train=train)
        assert source.tgt_lang == ""
        with pytest.raises(CorpusError, match="was not read"):
            source.files(tmp_path / "cache")
