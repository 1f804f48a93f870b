"""Corpora that are shuffled or shifted are noticed; those that are parallel, or say too little, are not."""

import random
from pathlib import Path

import pytest
from babel import Locale

from softsearch.data.corpora.multi30k import Multi30k
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.spellout import Spellout
from softsearch.data.preparation.parallelism import Mismatch, mismatches
from softsearch.data.preparation.prepare import prepare
from softsearch.text.corpus import read_lines
from softsearch.text.tokenizer import TokenizerTrainer

Side = list[str]


def found(src: Side, tgt: Side) -> list[Mismatch]:
    return mismatches(src, tgt, range(1, len(src) + 1))


def shuffled(lines: Side) -> Side:
    return random.Random(1).sample(lines, len(lines))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    files = Spellout(train_size=4000, val_size=1, test_size=1).files(tmp_path_factory.mktemp("cache"))["train"]
    src, tgt = (file.read_text(encoding="utf-8").splitlines() for file in files)
    return src, tgt


@pytest.mark.parametrize("size", [50, 100, 250, 300, 400, 999, 1000, 2500, 4000])
def test_a_parallel_corpus_is_fine(corpus: tuple[Side, Side], size: int) -> None:
    for begin in range(0, 4000 - size + 1, size):
        src, tgt = (side[begin : begin + size] for side in corpus)
        assert found(src, tgt) == []
        assert found([line.upper().replace(" ", "") for line in src], tgt) == []


@pytest.mark.parametrize("size", [400, 1000, 4000])
def test_a_shuffled_corpus_is_noticed(corpus: tuple[Side, Side], size: int) -> None:
    src, tgt = (side[:size] for side in corpus)
    first, *_ = found(src, shuffled(tgt))
    assert first.shift is None
    assert "better than by chance" in str(first)


@pytest.mark.parametrize("size", [400, 1000, 4000])
@pytest.mark.parametrize("shift", [1, -1, 3])
def test_a_corpus_shifted_from_the_middle_on_is_named_with_its_shift(
    corpus: tuple[Side, Side], size: int, shift: int
) -> None:
    src, tgt = (side[:size] for side in corpus)
    half = size // 2
    moved = tgt[:half] + (["one line more"] * shift + tgt[half:-shift] if shift > 0 else tgt[half - shift :])
    found_in = found(src[: len(moved)], moved)
    assert found_in
    assert {mismatch.shift for mismatch in found_in} == {shift}
    assert found_in[0].first >= half - size // 8
    assert found_in[-1].last == len(moved)
    sign = "+" if shift > 0 else "-"
    assert f"source line n matches target line n {sign} {abs(shift)}" in str(found_in[0])


def test_text_that_says_too_little_is_left_alone() -> None:
    names = [Locale(language).languages for language in ("en", "ja")]
    codes = sorted(names[0].keys() & names[1].keys())
    words = [[side[code].split()[0] for code in codes] for side in names]
    for src, tgt in (
        words,
        (words[0], shuffled(words[1])),
        (["a man walks home"] * 1000, ["ein Mann geht heim"] * 1000),
        ([str(number) for number in range(5000)], shuffled([str(number) for number in range(5000)])),
        (["x y z a b c d"] * 300, [f"{'eins ' * (number % 9)}" for number in range(300)]),
        (["yes", "no, not at all, my friend"] * 500, ["ja", "nein, gar nicht, mein Freund"] * 500),
    ):
        assert found(src, tgt) == []


def test_real_corpora_are_fine_and_broken_ones_are_not(multi30k_dir: Path) -> None:
    files = Multi30k(root=multi30k_dir, variant="raw").files(multi30k_dir)["train"]
    src, tgt = (list(read_lines(file)) for file in files)
    for begin in range(0, len(src), 4096):
        part = slice(begin, begin + 4096)
        assert found(src[part], tgt[part]) == []
        assert len(found(src[part], shuffled(tgt[part]))) >= len(src[part]) // 1100


def test_the_report_and_a_warning_name_the_stretch(
    corpus: tuple[Side, Side], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    src, tgt = corpus
    moved = tgt[:2000] + tgt[2001:]
    for name, lines in (("a.en", src[:-1]), ("a.de", moved), ("b.en", src[:300]), ("b.de", tgt[:300])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    names = [[tmp_path / f"{name}.{language}" for language in ("en", "de")] for name in "ab"]
    prepared = prepare(
        Parallel(train=names[0], val=names[1]), TokenizerTrainer(kind="char", vocab_size=60), tmp_path / "cache"
    )
    assert "a.de do not seem to be parallel: lines 2,0" in caplog.text
    assert "source line n matches target line n - 1, and 1 more stretches" in caplog.text
    report = prepared.report()["corpora"]
    assert [mismatch["shift"] for mismatch in report["train"][0]["mismatches"]] == [-1, -1]
    assert report["val"][0]["mismatches"] == []
