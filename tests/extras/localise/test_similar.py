"""Neural fuzzy repair: the most similar other message, and where its translation stands."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import ConfigError
from softsearch.extras.localise import Catalogs
from softsearch.extras.localise.memory import Memory, memories_of
from softsearch.extras.localise.similar import Similar, Texts, most_similar, with_matches
from softsearch.text import read_lines
from softsearch.text.parts import MATCH

TEXTS = st.lists(st.text(alphabet="abc ", max_size=9), max_size=8)


def ratio(one: str, other: str) -> float:
    """200 c / (a + b), with the longest common subsequence by its recurrence."""
    row = [0] * (len(other) + 1)
    for a in one:
        before = row
        row = [0]
        for place, b in enumerate(other):
            row.append(before[place] + 1 if a == b else max(before[place + 1], row[place]))
    return 200 * row[-1] / (len(one) + len(other)) if one or other else 100.0


@pytest.mark.parametrize("other", [False, True])
@given(queries=TEXTS, texts=TEXTS)
def test_the_most_similar_text_is_that_of_the_definition(other: bool, queries: list[str], texts: list[str]) -> None:
    for query, found in zip(queries, most_similar(queries, Texts(texts), other=other), strict=True):
        ratios = [0 if other and text == query else ratio(query, text) for text in texts]
        best = max(ratios, default=0)
        if best < 50:
            assert found is None
        else:
            assert found is not None
            assert found.similarity == pytest.approx(best, abs=1e-4)
            assert ratios[found.place] == pytest.approx(best, abs=1e-9)


def test_every_text_has_a_nearest_one_if_asked() -> None:
    assert most_similar(["xyz", "ab"], Texts(["aq", "b"]), least=0.0)[1] == Similar(1, pytest.approx(200 / 3))
    assert most_similar(["ab"], Texts()) == [None]


def test_a_match_stands_before_its_source_and_is_never_the_message_itself() -> None:
    memory = Texts(["Save the file <1>", "Save file <1>"]), ["Datei <1> sichern", "<1> sichern", "Maßstab"]
    memory[0].add(["Zoom"])
    assert with_matches(["Save the file <1>", "Zoom"], *memory, other=True) == [
        "<1> sichern <0> Save the file <1>",
        "Zoom",
    ]
    assert with_matches(["Save the file <1>"], *memory) == ["Datei <1> sichern <0> Save the file <1>"]


@pytest.mark.parametrize("split_by", ["message", "file"])
def test_matches_are_from_the_training_text(repo_root: Path, tmp_path: Path, split_by: str) -> None:
    options = {"train": str(repo_root / "examples" / "catalogs" / "de"), "val": 4, "test": None, "split_by": split_by}
    plain = Catalogs(**options).files(tmp_path)  # type: ignore[arg-type]
    source = Catalogs(**options, memory=True)  # type: ignore[arg-type]
    found = source.files(tmp_path)
    assert MATCH in source.tags
    assert MATCH not in Catalogs(**options).tags  # type: ignore[arg-type]
    training = [*zip(*(list(read_lines(file)) for file in plain["train"]), strict=True)]
    for split, files in found.items():
        pairs = [*zip(*map(read_lines, files), strict=True)]
        own = [(line.rpartition(f" {MATCH} ")[2], target) for line, target in pairs]
        given = [*zip(*map(read_lines, plain[split]), strict=True)]
        matched = [number for number, (line, _) in enumerate(pairs) if MATCH in line]
        assert own == given + [given[number] for number in matched if split == "train"]
        assert matched
        for number in matched:
            match, _, source = pairs[number][0].partition(f" {MATCH} ")
            assert [text for text, target in training if target == match and text != source], pairs[number]


def test_matches_are_of_the_same_language(repo_root: Path, tmp_path: Path) -> None:
    for code in ("de", "fr"):
        (tmp_path / code).mkdir()
        for path in (repo_root / "examples" / "catalogs" / "de").iterdir():
            text = path.read_text(encoding="utf-8").replace("Language: de", f"Language: {code}")
            french = re.sub(r'^(msgstr\S*) "(?!")', r'\1 "Fr ', text, flags=re.MULTILINE)
            (tmp_path / code / path.name).write_text(french if code == "fr" else text, encoding="utf-8")
    source = Catalogs(train=f"{tmp_path}/{{de,fr}}", val=4, test=None, memory=True)
    files, train = source.files(tmp_path), source.train_files(tmp_path)
    assert files["train"] == train[0]
    for tag, (src, _) in zip(("<2de> ", "<2fr> "), train, strict=True):
        lines = [line for line in read_lines(src) if MATCH in line]
        assert lines
        assert all(line.startswith(tag) and line.startswith("<2fr> Fr ") == (tag == "<2fr> ") for line in lines)
    assert {line[:6] for line in read_lines(files["val"][0])} == {"<2de> ", "<2fr> "}


@given(first=TEXTS, own=TEXTS, queries=TEXTS)
def test_a_memory_behind_another_one_is_one_memory_of_both(
    first: list[str], own: list[str], queries: list[str]
) -> None:
    def catalog(texts: list[str], name: str) -> Any:
        pairs = [(text, f"{name} {number}") for number, text in enumerate(texts) if text.strip()]
        return SimpleNamespace(pairs=lambda: pairs, marker=None)

    both, below = Memory(), Memory()
    for memory, texts, name in ((both, first, "first"), (both, own, "own"), (below, first, "first")):
        memory.add(catalog(texts, name), name)
    above = Memory(below)
    above.add(catalog(own, "own"), "own")
    assert above.with_similar(queries) == both.with_similar(queries)
    assert [above.find(text) for text in queries + own] == [both.find(text) for text in queries + own]
    alone = Memory()
    alone.add(catalog(first, "first"), "first")
    assert below.with_similar(queries) == alone.with_similar(queries)  # it is not changed


def test_a_memory_of_catalogs_gives_matches_with_symbols(tmp_path: Path) -> None:
    header = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    (tmp_path / "a.po").write_text(
        f'{header}msgid "Delete _file %s"\nmsgstr "Datei %s _löschen"\n\nmsgid "_Undo"\nmsgstr "_Zurück"\n',
        encoding="utf-8",
    )
    memory = memories_of([tmp_path / "a.po"], ["de"])["de"]
    assert memory.with_similar(["Delete files <1>", "Quit"]) == ["Datei <1> löschen <0> Delete files <1>", "Quit"]
    assert most_similar(["Undone", "Undo it", "Undo it x"], Texts(["Undo"]), least=0.0) == [
        Similar(0, pytest.approx(ratio)) for ratio in (80, 100 * 8 / 11, 100 * 8 / 13)
    ]
    assert memory.with_similar(["Undone", "Undo it", "Undo it x"]) == [
        "Zurück <0> Undone",
        "Zurück <0> Undo it",
        "Undo it x",
    ]


def test_links_are_refused_beside_matches(repo_root: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.memory=true puts other text before the source"):
        Catalogs(train=str(repo_root / "examples" / "catalogs" / "de"), memory=True, links="auto")
