"""docs/localisation.md says what is so: the table of formats, and the counts of the example."""

import json
import re
from pathlib import Path

import pytest

from softsearch.extras.localise.fill import Written, fill
from softsearch.extras.localise.memory import Memory, memories_of
from softsearch.extras.localise.messages import found_files
from softsearch.extras.localise.opening import KEYED, WRITABLE, open_catalog

TS = """<!DOCTYPE TS>
<TS version="2.1" language="de"><context><name>x</name><message>
<source>a</source>
<translation type="unfinished"></translation></message></context></TS>
"""
NEW = {  # by row of the table: a catalog with one message to fill, and the file of its source text
    "PO of gettext": ("x.po", 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "a"\nmsgstr ""\n', ""),
    "Qt": ("x.ts", TS, ""),
    "XLIFF 1.2": ("x.xlf", '<xliff version="1.2"><file><trans-unit><source>a</source></trans-unit></file></xliff>', ""),
    "XLIFF 2.x": ("x.xlf", '<xliff version="2.0"><unit><segment><source>a</source></segment></unit></xliff>', ""),
    "Android": (
        "values-de/strings.xml",
        "<resources></resources>",
        '<resources><string name="k">a</string></resources>',
    ),
    "Java": ("app_de.properties", "", "k=a\n"),
    "Apple": ("de.lproj/L.strings", "", '"k" = "a";\n'),
    "JSON": ("de.json", "{}", json.dumps({"k": "a"})),
}
SOURCES = {
    "Android": "values/strings.xml",
    "Java": "app.properties",
    "Apple": "Base.lproj/L.strings",
    "JSON": "en.json",
}
MARKS = {"and a note": "<note", "a comment before the text": "softsearch: translated"}


@pytest.fixture
def page(repo_root: Path) -> str:
    return (repo_root / "docs" / "localisation.md").read_text(encoding="utf-8")


def rows(page: str) -> dict[str, list[str]]:
    """The table of formats: by name, the endings of files in it and the other columns."""
    found = {}
    for line in page.splitlines():
        if match := re.match(r"\| ([^|(`]+?) ?(\([^|]*\))? \|(.*)\|\Z", line):
            found[match[1]] = [match[2] or "", *(cell.strip() for cell in match[3].split("|"))]
    return found


def test_the_table_has_all_formats(page: str) -> None:
    endings = {f".{name}" for cells in rows(page).values() for name in re.findall(r"[`.](\w+)`", cells[0])}
    assert {*WRITABLE, *KEYED, ".tmx"} - endings == {".pot", ".sdlxliff", ".mxliff"}
    assert {name for name, cells in rows(page).items() if cells[1:2] == ["yes"]} == {*NEW, "TMX"}


@pytest.mark.parametrize("name", NEW)
def test_new_texts_have_the_mark_of_the_table(tmp_path: Path, page: str, name: str) -> None:
    file, text, source = NEW[name]
    (path := tmp_path / file).parent.mkdir(exist_ok=True)
    path.write_text(text)
    if source:
        (other := tmp_path / SOURCES[name]).parent.mkdir(exist_ok=True)
        other.write_text(source)
    catalog = open_catalog(path)
    assert fill(catalog, Memory(), lambda lines: [Written("b", 0.5, ()) for _ in lines]).translated == 1
    mark, written = rows(page)[name][3], bytes(catalog).decode()
    if "review.tsv" in mark:
        assert len(catalog.to_review) == 1
        return
    expected = [*re.findall("`(.*?)`", mark), *(found for words, found in MARKS.items() if words in mark)]
    assert expected
    assert [each for each in expected if each not in written] == []


def test_the_example_of_the_page_has_its_counts(repo_root: Path, page: str) -> None:
    folder = repo_root / "examples" / "catalogs"
    shown = {name.strip(): int(count) for name, count in re.findall(r"^  (\D+?)  +(\d+)$", page, re.MULTILINE)}
    catalog = open_catalog(folder / "new.po")
    memory = memories_of(found_files(str(folder / "de" / "**" / "*.po")), ["de"])["de"]
    done = fill(catalog, memory, lambda lines: [Written(line, 0.5, ()) for line in lines])
    assert done.counts() == shown
