"""From files to token ids: once for each content, whole or not at all."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.data.corpora.multi30k import Multi30k
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.preparation import steps, text_parts
from softsearch.data.preparation.prepare import prepare, text_problems
from softsearch.data.preparation.prepared import PreparedData
from softsearch.data.sampler import Batching, count_tokens
from softsearch.data.sentencepiece_file import with_folding
from softsearch.data.tokenizer_files import from_files
from softsearch.errors import CorpusError
from softsearch.text import corpus as corpus_module
from softsearch.text.filters import Filters
from softsearch.text.tokenizer import TokenizerTrainer
from tests.support.pairs import TRAINER, files_of, ids_of, write_corpus, write_pair

LANGS = {"src_lang": "xx", "tgt_lang": "yy"}


def test_ids_are_those_of_the_text(source: Parallel, cache: Path) -> None:
    prepared = prepare(source, TRAINER, cache)
    assert set(prepared.splits) == {"train", "val", "test"}
    for split, files in source.files(cache).items():
        dataset = prepared.dataset(split)
        sides = zip((dataset.src, dataset.tgt), (prepared.src_tokenizer, prepared.tgt_tokenizer), files, strict=True)
        for store, tokenizer, path in sides:
            lines = path.read_text(encoding="utf-8").splitlines()
            assert [tokenizer.decode(store[i].tolist()) for i in range(len(store))] == lines


def test_text_of_another_form_is_named_by_split(tmp_path: Path) -> None:
    tokenizer, _ = TRAINER.train(["the cat"], ["die katze"])
    lines = {"train": "the c@@ at\n" * 20, "val": "the cat\n" * 20, "test": "the  c@@ at\n" * 20}
    for split, text in lines.items():
        for side in ("en", "de"):
            (tmp_path / f"{split}.{side}").write_text(text)
    files: Any = {split: [tmp_path / f"{split}.en", tmp_path / f"{split}.de"] for split in lines}
    split, spaces = text_problems(Parallel(**files), tokenizer, tmp_path)
    places = [f"data.{name} ({name}.{side})" for name in ("train", "test") for side in ("en", "de")]
    assert split.startswith(f"{', '.join(places)}: words are split with '@@ ', as by subword-nmt; set tokenizer=")
    assert spaces.startswith("data.test (test.de): of 20 references 20 have white space other than")
    assert text_problems(Parallel(**{**files, "test": None, "train": files["val"]}), tokenizer, tmp_path) == []


def test_one_vocabulary_or_one_for_each_side(source: Parallel, cache: Path) -> None:
    joint = prepare(source, TRAINER, cache)
    assert joint.src_tokenizer is joint.tgt_tokenizer
    separate = prepare(source, TokenizerTrainer(kind="char", vocab_size=60, joint=False), cache)
    assert separate.src_tokenizer.fingerprint != separate.tgt_tokenizer.fingerprint
    assert separate.fingerprint != joint.fingerprint


@pytest.mark.parametrize("joint", [True, False])
def test_reversed_sides(source: Parallel, cache: Path, joint: bool) -> None:
    trainer = replace(TRAINER, joint=joint)
    plain = prepare(source, trainer, cache)
    found = {}
    for reverse_source in (False, True):
        for target_direction in ("l2r", "r2l"):
            turned = replace(source, reverse_source=reverse_source, target_direction=target_direction)
            prepared = prepare(turned, trainer, cache)
            found[prepared.fingerprint] = prepared
            assert (prepared.src_tokenizer.reverse, prepared.tgt_tokenizer.reverse) == turned.reversed_sides
            assert prepared.src_tokenizer.model == plain.src_tokenizer.model
            assert (prepared.src_tokenizer is prepared.tgt_tokenizer) == (
                joint and turned.reversed_sides in ((False, False), (True, True))
            )
            for split in prepared.splits:
                here, there = prepared.dataset(split), plain.dataset(split)
                for side, reverse in zip(("src", "tgt"), turned.reversed_sides, strict=True):
                    ids, straight = getattr(here, side)[0].tolist(), getattr(there, side)[0].tolist()
                    assert ids == (straight[::-1] if reverse else straight)
    assert len(found) == 4
    assert plain.fingerprint in found


def test_training_drops_empty_pairs_and_the_rest_stays_aligned(tmp_path: Path, cache: Path) -> None:
    source = write_corpus(tmp_path)
    for split in ("train", "val"):
        for path, text in zip(source.files(cache)[split], ("a\n\ncat\n", "ein\nhund\nkatze\n"), strict=True):
            path.write_text(text)
    prepared = prepare(source, TRAINER, cache)
    assert [len(prepared.dataset(split)) for split in ("train", "val")] == [2, 3]
    assert [prepared.locate("train", i) for i in range(2)] == [(0, 1), (0, 3)]


def test_files_do_not_depend_on_processes(source: Parallel, cache: Path, tmp_path: Path) -> None:
    prepare(source, TRAINER, cache)
    prepare(source, TRAINER, tmp_path / "two", processes=2)
    assert len(files_of(cache)) > 30
    assert files_of(tmp_path / "two") == files_of(cache)


def test_data_are_the_same_in_small_parts(
    source: Parallel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = prepare(source, TRAINER, cache)
    monkeypatch.setattr(corpus_module, "_CHUNK_PAIRS", 7)
    monkeypatch.setattr(text_parts, "PART_LINES", 10)
    parts = prepare(source, TRAINER, tmp_path / "parts")
    assert parts.fingerprint == whole.fingerprint
    assert len([*(tmp_path / "parts" / "parts").glob("ids-*")]) == 5 + 1 + 1
    assert parts.src_tokenizer.model == whole.src_tokenizer.model
    assert {**parts.report(), "corpora": 0} == {**whole.report(), "corpora": 0}
    for split in whole.splits:
        one, other = whole.dataset(split), parts.dataset(split)
        assert [ids_of(one, i) for i in range(len(one))] == [ids_of(other, i) for i in range(len(other))]
        assert one.src.lengths().tolist() == other.src.lengths().tolist()
        assert one.tgt.lengths(np.arange(1, 5)).tolist() == other.tgt.lengths(np.arange(1, 5)).tolist()
        assert [whole.locate(split, i) for i in range(len(one))] == [parts.locate(split, i) for i in range(len(one))]


def test_ids_are_the_text_in_pieces(source: Parallel, cache: Path) -> None:
    prepared = prepare(source, TRAINER, cache)
    sides = [path.read_text(encoding="utf-8").splitlines() for path in source.files(cache)["train"]]
    assert with_folding(TRAINER.train(*sides)[0].model) == prepared.src_tokenizer.model
    dataset, encode = prepared.dataset("train"), prepared.src_tokenizer.encode
    assert [ids_of(dataset, i) for i in range(60)] == [(encode(s), encode(t)) for s, t in zip(*sides, strict=True)]
    assert [prepared.locate("train", i) for i in range(60)] == [(0, i) for i in range(1, 61)]


def mixed(folder: Path, **options: object) -> Parallel:
    """Two corpora of 6 and 2 pairs."""
    pairs = [write_pair(folder, "big", 6, seed=1), write_pair(folder, "small", 2, seed=5)]
    return Parallel(train=pairs, val=write_pair(folder, "val", 3, seed=2), **options)  # type: ignore[arg-type]


def test_several_corpora_follow_each_other(tmp_path: Path, cache: Path) -> None:
    source = mixed(tmp_path)
    prepared = prepare(source, TRAINER, cache)
    text = [line for src, _ in source.train_files(cache) for line in src.read_text(encoding="utf-8").splitlines()]
    dataset = prepared.dataset("train")
    assert [prepared.src_tokenizer.decode(dataset.src[i].tolist()) for i in range(len(dataset))] == text
    assert [prepared.locate("train", i) for i in range(8)] == [*((0, n) for n in range(1, 7)), (1, 1), (1, 2)]
    assert prepared.locate("val", 2) == (0, 3)


MIXES = [
    ({"weights": [1, 3]}, [0, 1, 2, 3, 4, 5, 6, 6, 6, 7, 7, 7]),
    ({"weights": [0.5, 1.5]}, [0, 2, 4, 6, 6, 7]),
    ({"weights": [2.5, 1]}, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 7]),
    ({"temperature": 1}, [*range(8)]),
    ({"temperature": 1e9}, [0, 1, 2, 3, 4, 5, 6, 6, 6, 7, 7]),  # as many of both, but for rounding
]


@pytest.mark.parametrize(("options", "expected"), MIXES)
def test_weights_and_temperature_repeat_pairs(
    tmp_path: Path, cache: Path, options: dict[str, object], expected: list[int]
) -> None:
    plain, prepared = prepare(mixed(tmp_path), TRAINER, cache), prepare(mixed(tmp_path, **options), TRAINER, cache)
    assert prepared.folder == plain.folder  # nothing is encoded again
    assert (prepared.fingerprint == plain.fingerprint) == (expected == [*range(8)])
    everything, found = plain.dataset("train"), prepared.dataset("train")
    assert [(found.src[i].tolist(), found.tgt[i].tolist()) for i in range(len(found))] == [
        (everything.src[i].tolist(), everything.tgt[i].tolist()) for i in expected
    ]
    assert found.src.lengths().tolist() == everything.src.lengths()[expected].tolist()
    assert [prepared.locate("train", i) for i in range(len(found))] == [plain.locate("train", i) for i in expected]
    assert len(prepared.dataset("val")) == 3


def test_filters_drop_count_and_make_another_corpus(tmp_path: Path, cache: Path) -> None:
    source = mixed(tmp_path)
    small = source.train_files(cache)[1][0]
    for path, lines in zip(
        (*source.train_files(cache)[0], *source.train_files(cache)[1]),
        (
            ["a", "a", "dog", "", "b", "no"],
            ["ein", "ein", "dog", "x", "eine lange", "ja"],
            ["a", "new"],
            ["ein", "neu"],
        ),
        strict=True,
    ):
        path.write_text("".join(f"{line}\n" for line in lines))
    small.write_bytes(small.read_bytes() + b"\xff\n")
    small.with_suffix(".de").write_bytes(small.with_suffix(".de").read_bytes() + b"drei\n")
    with pytest.raises(CorpusError, match=r"small\.en:3:1 is not UTF-8"):
        prepare(source, TRAINER, cache)
    filtered = replace(source, filters=Filters(on_error="skip", identical=True, max_ratio=5, duplicates=True))
    prepared = prepare(filtered, TRAINER, cache)
    dataset = prepared.dataset("train")
    decode = prepared.src_tokenizer.decode
    assert [decode(dataset.src[i].tolist()) for i in range(len(dataset))] == ["a", "no", "new"]
    assert [prepared.locate("train", i) for i in range(3)] == [(0, 1), (0, 6), (1, 2)]
    reports = prepared.report()["corpora"]["train"]
    figures = ("lines", "kept", "empty", "invalid", "untranslated", "unequal", "repeated")
    assert [[report[figure] for figure in figures] for report in reports] == [
        [6, 2, 1, 0, 1, 1, 1],
        [3, 1, 0, 1, 0, 0, 1],
    ]


def test_pairs_of_the_test_set_in_training_are_reported(
    tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault: validation or test pairs in the training data. Effect: a warning with their number."""
    source = write_corpus(tmp_path, val=3, test=4)
    for side, texts in enumerate((["x", "y", "z", "x"], ["u", "v", "w", "u"])):
        train, test = (source.files(cache)[split][side] for split in ("train", "test"))
        test.write_text("".join(f"{text}\n" for text in texts))
        train.write_text(train.read_text(encoding="utf-8") + f"{texts[0]}\n" + ("y\n" if side == 0 else "other\n"))
    prepared = prepare(source, TRAINER, cache)
    assert prepared.report()["also_in_training"]["test"] == 2
    assert "2 of the 4 pairs of test are also in the training data" in caplog.text


@pytest.mark.parametrize("swapped", ["val", "test", "train"])
def test_swapped_sides_are_noticed_by_their_words(
    tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture, swapped: str
) -> None:
    """Fault: source and target are swapped. Effect: a warning."""
    files = {name: write_pair(tmp_path, name, 8, seed) for seed, name in enumerate(("a", "train", "val", "test"))}
    prepare(Parallel(train=[files["a"], files["train"]], val=files["val"], test=files["test"], **LANGS), TRAINER, cache)
    assert "look swapped" not in caplog.text
    src, tgt = files[swapped]
    src.write_bytes(src.read_bytes() + b"now\n")  # else the folder is there already
    tgt.write_bytes(tgt.read_bytes() + b"jetzt\n")
    files[swapped] = tgt, src
    prepare(Parallel(train=[files["a"], files["train"]], val=files["val"], test=files["test"], **LANGS), TRAINER, cache)
    name = "data.train[1]" if swapped == "train" else f"data.{swapped}"
    assert f"source and target of {name} look swapped" in caplog.text


def test_large_corpora_train_tokenizers_on_a_sample(
    source: Parallel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "SAMPLE", 20)
    monkeypatch.setattr(steps, "SAMPLE_PER_ENTRY", 0)
    sides = [path.read_text(encoding="utf-8").splitlines()[2::3] for path in source.files(cache)["train"]]
    assert prepare(source, TRAINER, cache).src_tokenizer.model == with_folding(TRAINER.train(*sides)[0].model)


def test_progress_is_told(source: Parallel, cache: Path) -> None:
    told = []
    prepare(source, TRAINER, cache, progress=lambda *what: told.append(what))
    assert told[-1] == ("encoding", 73, 73)
    assert ("reading", 73, None) in told


def test_a_file_that_cannot_be_read_is_named(source: Parallel, cache: Path) -> None:
    src, _ = source.files(cache)["train"]
    src.unlink()
    src.symlink_to("/proc/self/mem")  # a file that answers with an input/output error
    with pytest.raises(CorpusError, match=rf"{src} cannot be read \(.*\); check the file and its permissions"):
        prepare(source, TRAINER, cache)


FILTERED = [
    ({"duplicates": True, "identical": True}, "same", "0 of 60 pairs kept; 60 dropped for the same text on both sides"),
    ({"duplicates": True, "max_ratio": 1.01}, "longer and longer", "60 dropped for unequal lengths"),
    ({"duplicates": True}, " ", "0 of 60 pairs kept; 60 with an empty side"),
]


@pytest.mark.parametrize(("filters", "text", "counts"), FILTERED)
def test_a_corpus_of_which_nothing_is_left(
    source: Parallel, cache: Path, filters: dict[str, Any], text: str, counts: str
) -> None:
    for path, line in zip(source.files(cache)["train"], ("same", text), strict=True):
        path.write_text(f"{line}\n" * 60)
    with pytest.raises(CorpusError, match=f"no usable pair in .*{counts}.* check the files and the filters"):
        prepare(replace(source, filters=Filters(**filters)), TRAINER, cache)


def test_a_corpus_that_holds_nothing_new(tmp_path: Path, cache: Path) -> None:
    pair = write_pair(tmp_path, "train", 6)
    source = Parallel(train=[pair, pair], val=write_pair(tmp_path, "val", 3), filters=Filters(duplicates=True))
    with pytest.raises(CorpusError, match=r"no usable pair in .* 0 of 6 pairs kept; 6 dropped as duplicates"):
        prepare(source, TRAINER, cache)


def test_multi30k_has_little_padding(multi30k_dir: Path, tmp_path: Path) -> None:
    """The promise is more than 92 % real tokens, with the default tokenizer and batches."""
    source = Multi30k(root=str(multi30k_dir), variant="lc_tok", src_lang="en", tgt_lang="de")
    prepared: PreparedData = prepare(source, TokenizerTrainer(), tmp_path)
    dataset = prepared.dataset("train")
    src, tgt = dataset.src.lengths(), dataset.tgt.lengths()
    batches = Batching().cut(src, tgt)
    assert len(np.concatenate(batches)) == 29_000
    real, padded = np.transpose([count_tokens(batches, lengths[np.concatenate(batches)]) for lengths in (src, tgt)])
    assert real.sum() / padded.sum() > 0.92
    assert (real / padded > (0.9, 0.98)).all()


@pytest.mark.parametrize(("words", "share"), [("ein\nzwei\n", ""), ("a b".replace(" ", "\n"), "100 %")])
def test_a_vocabulary_of_other_words_is_warned_about(
    tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture, words: str, share: str
) -> None:
    (tmp_path / "words").write_text(words)
    for language in ("en", "de"):
        (tmp_path / f"x.{language}").write_text("ein zwei\n" * 9)
    files = (tmp_path / "x.en", tmp_path / "x.de")
    with caplog.at_level(logging.WARNING):
        prepare(
            Parallel(train=files, val=files),
            from_files(TokenizerTrainer(kind="word", vocabulary=tmp_path / "words")),
            cache,
        )
    warned = [line for line in caplog.messages if line.startswith("the vocabulary lacks")]
    assert len(warned) == (2 if share else 0)
    assert all(f"lacks {share} of the words in the" in line for line in warned)
