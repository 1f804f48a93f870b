"""Branches of ICU's plurals and selects are text of their own; all else of them stays."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from softsearch.extras.localise import icu
from softsearch.extras.localise.checks import problems
from softsearch.extras.localise.fill import Written, fill
from softsearch.extras.localise.memory import Memory
from softsearch.extras.localise.messages import read_messages
from softsearch.extras.localise.opening import open_catalog, read_catalog

FILES = "{n, plural, one {# file} other {# files}}"
NESTED = "{who, select, her {Her {n, plural, =0 {lists} other {# lists in {dir}}}} other {a '{b}' list}}"
PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"
"""


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("Open {name}", ["Open {name}"]),
        (FILES, ["{icu1}", "{icu0} file", "{icu0} files"]),
        (
            f"Has {FILES} or {NESTED}.",
            [
                "Has {icu1} or {icu2}.",
                *("{icu0} file", "{icu0} files"),
                *("Her {icu1}", "lists", "{icu0} lists in {dir}", "a '{b}' list"),
            ],
        ),
        ("{n, plural,\n  offset:1 one{a}\n  other{b}\n}", ["{icu1}", "a", "b"]),
        ("{n, plural, one {a} other {b}", ["{n, plural, one {a} other {b}"]),
        ("{n, plural, }", ["{n, plural, }"]),
        ("it is '{n, plural, one {a}}'", ["it is '{n, plural, one {a}}'"]),
        ("C# {n, select, a {C#} other {D}}", ["C# {icu1}", "C#", "D"]),
    ],
)
def test_texts_are_read_and_written(text: str, texts: list[str]) -> None:
    message = icu.read(text)
    assert list(icu.texts(message)) == texts
    assert icu.written(message, lambda each: each) == text


def test_branches_are_pairs() -> None:
    target = "{n, plural, one {# Datei} few {# Dateis} other {# Dateien}}"
    assert icu.pairs(icu.read(FILES), icu.read(target)) == [
        ("{icu1}", "{icu1}"),
        ("{icu0} file", "{icu0} Datei"),
        ("{icu0} files", "{icu0} Dateis"),
        ("{icu0} files", "{icu0} Dateien"),
    ]
    two = f"{{g, select, other {{a}}}} of {FILES}"
    other_order = "{n, plural, other {#}} von {g, select, other {b}}"
    found = icu.pairs(icu.read(two), icu.read(other_order))
    assert found is not None
    assert found[0] == ("{icu1} of {icu2}", "{icu2} von {icu1}")
    for wrong in ("no plural", FILES.replace("{n,", "{m,"), FILES.replace("plural", "select"), FILES * 2):
        assert icu.pairs(icu.read(FILES), icu.read(wrong)) is None
    assert icu.pairs(icu.read("{n, plural, one {a}}"), icu.read("{n, plural, few {a}}")) is None


def po(path: Path, source: str, target: str) -> Path:
    path.write_text(f'{PO}\nmsgid "{source}"\nmsgstr "{target}"\n', encoding="utf-8")
    return path


def test_branches_are_training_text(tmp_path: Path) -> None:
    german = f"Hat {FILES.replace('file', 'Datei')}"
    messages = read_messages([po(tmp_path / "a.po", f"Has {FILES}", german)])
    assert [pair[:2] for pair in messages.pairs] == [
        ("Has <1>", "Hat <1>"),
        ("<1> file", "<1> Datei"),
        ("<1> files", "<1> Dateis"),
    ]
    messages = read_messages([po(tmp_path / "a.po", f"Has {FILES}", "Hat Dateien")])
    assert messages.left_out == {"other plurals or selects than the source": 1}


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("de", FILES, FILES),
        ("cs", FILES, "{n, plural, one {# file} few {# files} many {# files} other {# files}}"),
        ("ja", FILES, "{n, plural, other {# files}}"),
        ("ar", "{n,plural,one{a}other{#}}", "{n,plural,zero{#}one{a}two{#}few{#}many{#}other{#}}"),
        ("cs", "{n, plural, =1{a} other{b}}", "{n, plural, =1{a} few{b} many{b} other{b}}"),
        (
            "cs",
            "{n, plural,\n offset:1\n =0 {a}\n one {b}\n other {c}\n}",
            "{n, plural,\n offset:1\n =0 {a}\n one {b}\n few {c}\n many {c}\n other {c}\n}",
        ),
        (  # one is for 21, too, so its text needs the number
            "ru",
            "{n, plural, one {a} other {{n, number}}}",
            "{n, plural, one {{n, number}} few {{n, number}} many {{n, number}} other {{n, number}}}",
        ),
        ("ru", "{n, plural, one {a} other {b}}", "{n, plural, one {a} few {b} many {b} other {b}}"),
        ("cs", "{n, selectordinal, one {#st} two {#nd} few {#rd} other {#th}}", "{n, selectordinal, other {#th}}"),
        (
            "ja",
            "{g, select, her {{n, plural, one {x} other {#}}} other {y}}",
            "{g, select, her {{n, plural, other {#}}} other {y}}",
        ),
    ],
)
def test_languages_have_the_branches_that_they_need(code: str, text: str, expected: str) -> None:
    assert icu.in_language(text, "en", code) == expected
    assert icu.in_language(text, "en", "en") == text


WORDS = {"{icu0} file": "{icu0} Datei", "{icu0} files": "{icu0} Dateien", "Has {icu1}.": "Hat {icu1}."}


def words(lines: Sequence[str]) -> list[Written]:
    return [Written(WORDS[line], 0.5, []) for line in lines]


def test_branches_are_translated(tmp_path: Path) -> None:
    for source, target in ((FILES, FILES), (f"Has {FILES}.", f"Hat {FILES}.")):
        catalog = open_catalog(po(tmp_path / "a.po", source, ""))
        assert fill(catalog, Memory(), words).left == []
        written = read_catalog(bytes(catalog), Path("a.po")).entries[0].targets[0]
        assert written == target.replace("files", "Dateien").replace("file", "Datei")


def test_branches_of_the_language_are_translated(tmp_path: Path) -> None:
    memory = Memory()
    memory.add(
        open_catalog(po(tmp_path / "a.po", "{m, plural, one {a} other {#}}", "{m, plural, one {b} other {# x}}")), "a"
    )
    for code, source, target in (
        ("cs", FILES, "{n, plural, one {# Datei} few {# Dateien} many {# Dateien} other {# Dateien}}"),
        ("ja", FILES, "{n, plural, other {# Dateien}}"),
        ("ru", "{m, plural, one {a} other {#}}", "{m, plural, one {b} other {# x}}"),  # as people translated it
    ):
        path = po(tmp_path / "a.po", source, "")
        path.write_text(path.read_text().replace("Content", f"Language: {code}\\nContent"), encoding="utf-8")
        catalog = open_catalog(path)
        assert fill(catalog, memory, words).left == []
        assert read_catalog(bytes(catalog), Path("a.po")).entries[0].targets == (target,)


def test_what_breaks_a_plural_is_found() -> None:
    good = "Hat {n, plural, one {# Datei} few {# Dateien} other {# Dateien}}."
    assert problems(f"Has {FILES}.", good) == []
    assert problems(f"Has {FILES}.", good.replace("# Datei}", "Datei}")) == ["it lacks {icu0}"]
    assert problems(f"Has {FILES}.", "Hat Dateien.") == ["its plurals or selects are not those of the message"]
    assert problems(f"Has {FILES}.", good.removesuffix(".")) == ["it ends with no sign, the message with ."]


def test_what_is_not_language_is_not_asked_of_the_model(tmp_path: Path) -> None:
    catalog = open_catalog(po(tmp_path / "a.po", "%s: 100%", ""))
    fill(catalog, Memory(), lambda lines: [Written("?", None, ()) for _ in lines])
    assert read_catalog(bytes(catalog), Path("a.po")).entries[0].targets == ("%s: 100%",)
