"""Cleaned text in parts: each is made once, whoever makes it, and together they are the text."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softsearch.data.preparation import text_parts
from softsearch.data.preparation.cleaned_text import CleanedText
from softsearch.data.preparation.text_parts import EVERYTHING, RawCorpus, Share, make_text_parts
from softsearch.text import corpus as corpus_module
from softsearch.text.filters import Cleaner, Filters

LINES = ["a", "b", "a", "", "c", "d", "b", "e"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "_CHUNK_PAIRS", 2)
    monkeypatch.setattr(text_parts, "PART_LINES", 3)  # so that parts have two chunks


def raw(folder: Path, lines: list[str], name: str = "x", **options: Any) -> RawCorpus:
    paths = [folder / f"{name}.{side}" for side in "st"]
    for path in paths:
        path.write_text("".join(f"{path.suffix[1:] if line else ''}{line}\n" for line in lines))
    src, tgt = paths
    return RawCorpus("train", Cleaner(src=src, tgt=tgt, filters=Filters(**options)), ("-".join(lines), name))


def make(corpora: list[RawCorpus], folder: Path, share: Share = EVERYTHING) -> int:
    return make_text_parts(corpora, folder, processes=1, progress=lambda _: None, share=share)


def contents(text: CleanedText) -> list[tuple[str, str, int]]:
    return [
        (s.decode(), t.decode(), n) for *sides, lines in text.chunks() for s, t, n in zip(*sides, lines, strict=True)
    ]


def test_parts_are_the_text(tmp_path: Path) -> None:
    corpora = [raw(tmp_path, LINES), raw(tmp_path, ["e", "f"], "y")]
    assert make(corpora, tmp_path) == 3
    assert make(corpora, tmp_path) == 0
    parts = [[*corpus.parts(tmp_path)] for corpus in corpora]
    assert [[(part.pairs, part.is_last) for part in each] for each in parts] == [[(3, False), (4, True)], [(2, True)]]
    whole = [(f"s{line}", f"t{line}", number) for number, line in enumerate(LINES, 1) if line]
    everything = CleanedText(parts, tmp_path)
    assert contents(everything) == [*whole, ("se", "te", 1), ("sf", "tf", 2)]
    assert everything.sizes() == [7, 2]
    assert [counts["lines"] for counts in everything.counts] == [8, 2]
    distinct = CleanedText(parts, tmp_path, Filters(duplicates=True))
    assert [pair[0] for pair in contents(distinct)] == ["sa", "sb", "sc", "sd", "se", "sf"]
    assert distinct.sizes() == [5, 1]
    assert [counts["repeated"] for counts in distinct.counts] == [2, 1]


@pytest.mark.parametrize("most", range(1, 9))
def test_a_sample_is_spread_evenly(tmp_path: Path, most: int) -> None:
    corpus = raw(tmp_path, LINES)
    make([corpus], tmp_path)
    text = CleanedText([[*corpus.parts(tmp_path)]], tmp_path)
    sample = list(text.sample(0, most))
    assert len(sample) == min(most, 7)
    rest = iter([pair[0] for pair in contents(text)])
    assert all(line in rest for line in sample)  # in order
    first_half = sum(n <= 4 for *_, n in contents(text)[:: max(1, 7 // most)][:most])
    assert abs(len([line for line in sample if line in ("sa", "sb")]) - first_half) <= 3


@pytest.mark.parametrize("hosts", [1, 2, 3, 5])
def test_the_shares_of_all_hosts_are_all_parts_once(tmp_path: Path, hosts: int) -> None:
    corpora = [raw(tmp_path, LINES * 4), raw(tmp_path, ["e"], "y"), raw(tmp_path, LINES, "z")]
    made = [make(corpora, tmp_path / "cache", Share(number, hosts)) for number in range(1, hosts + 1)]
    assert sum(made) == 8 + 1 + 2
    assert all(made)
    assert make(corpora, tmp_path / "cache") == 0
    own = [
        part.folder.name
        for number in range(1, hosts + 1)
        for place, corpus in enumerate(corpora)
        for part in Share(number, hosts).made(place, corpus, tmp_path / "cache")
    ]
    assert len(own) == len({*own}) == 11


def test_a_host_whose_parts_are_made_reads_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while parts of others are missing; it reads as far as its own last missing part."""
    corpus, cache, read = raw(tmp_path, LINES * 4), tmp_path / "cache", list[int]()
    reading = text_parts.read_raw
    monkeypatch.setattr(
        text_parts, "read_raw", lambda *files: (read.append(chunk.number) or chunk for chunk in reading(*files))
    )
    assert make([corpus], cache, Share(1, 3)) == 3
    assert len(read) == 16
    read.clear()
    assert make([corpus], cache, Share(1, 3)) == 0
    assert read == []
    shutil.rmtree(corpus.folder(cache, 3))
    assert make([corpus], cache, Share(1, 3)) == 1
    assert len(read) == 10  # four parts of two chunks, one more that shows the end, and one ahead
    assert make([corpus], cache) == 5


def test_a_killed_host_loses_the_part_that_it_was_making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a process ends in its third part. Effect: the first two stay, and are not cleaned again."""
    corpus, seen = raw(tmp_path, LINES * 4), Counter[tuple[int, int]]()
    clean = text_parts.clean_pairs

    def counting(*given: Any) -> Any:
        place = given[1][0]
        seen[place] += 1
        if place == (0, 2) and seen[place] == 2 and (0, 3) not in seen:
            raise KeyboardInterrupt
        return clean(*given)

    monkeypatch.setattr(text_parts, "clean_pairs", counting)
    with pytest.raises(KeyboardInterrupt):
        make([corpus], tmp_path / "cache")
    assert len([*corpus.parts(tmp_path / "cache")]) == 2
    before = {path: path.stat().st_ino for path in (tmp_path / "cache").rglob("part.json")}
    seen.clear()
    seen[0, 3] = 0  # no fault from now on
    assert make([corpus], tmp_path / "cache") == 6
    assert (seen[0, 0], seen[0, 1], seen[0, 2]) == (0, 0, 2)
    assert all(path.stat().st_ino == inode for path, inode in before.items())


def test_filters_between_pairs_need_no_new_parts(tmp_path: Path) -> None:
    plain, distinct, other = (
        raw(tmp_path, LINES, **o) for o in ({}, {"duplicates": True, "max_length_z": 3.0}, {"max_ratio": 2.0})
    )
    names: Iterator[str] = (corpus.folder(tmp_path, 0).name for corpus in (plain, distinct, other))
    first, second, third = names
    assert first == second != third
