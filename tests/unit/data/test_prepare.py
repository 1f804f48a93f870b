"""From files to token ids: once for each content, whole or not at all."""

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softsearch.data import prepare as prepare_module
from softsearch.data.batch import Batching, padding_efficiency
from softsearch.data.dataset import TokenStore
from softsearch.data.prepare import PreparedData, prepare
from softsearch.data.sources.multi30k import Multi30k
from softsearch.data.sources.parallel import Parallel
from softsearch.errors import CorpusError
from softsearch.text.tokenizer import TokenizerTrainer
from tests.unit.data.pairs import write_corpus

TRAINER = TokenizerTrainer(kind="char", vocab_size=60)


@pytest.fixture
def source(tmp_path: Path) -> Parallel:
    return write_corpus(tmp_path, test=5)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_ids_are_those_of_the_text(source: Parallel, cache: Path) -> None:
    prepared = prepare(source, TRAINER, cache)
    assert set(prepared.splits) == {"train", "val", "test"}
    for split, files in source.files(cache).items():
        dataset = prepared.dataset(split)
        sides = zip((dataset.src, dataset.tgt), (prepared.src_tokenizer, prepared.tgt_tokenizer), files, strict=True)
        for store, tokenizer, path in sides:
            lines = path.read_text(encoding="utf-8").splitlines()
            assert [tokenizer.decode(store[i].tolist()) for i in range(len(store))] == lines


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


def test_what_was_prepared_before_there_were_directions_is_found(source: Parallel, cache: Path) -> None:
    """The name of the folder is in checkpoints, and a resumed run insists on it."""
    files = source.files(cache)
    digest = hashlib.sha256(
        json.dumps([1, {"kind": "char", "vocab_size": 60, "joint": True}, ["train", "val", "test"]]).encode()
    )
    for path in (path for pair in files.values() for path in pair):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    assert prepare(source, TRAINER, cache).fingerprint == digest.hexdigest()[:16]


def test_training_drops_empty_pairs_and_the_rest_stays_aligned(tmp_path: Path, cache: Path) -> None:
    source = write_corpus(tmp_path)
    for split in ("train", "val"):
        for path, text in zip(source.files(cache)[split], ("a\n\ncat\n", "ein\nhund\nkatze\n"), strict=True):
            path.write_text(text)
    prepared = prepare(source, TRAINER, cache)
    assert [len(prepared.dataset(split)) for split in ("train", "val")] == [2, 3]
    assert [prepared.line_number("train", i) for i in range(2)] == [1, 3]


def test_the_same_content_is_prepared_once(
    source: Parallel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(source, TRAINER, cache)
    stamps = [path.stat().st_mtime_ns for path in sorted(first.folder.iterdir())]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = write_corpus(elsewhere, test=5)  # other files with the same bytes
    for path in copy.files(cache)["train"]:
        os.utime(path, (1, 1))
    monkeypatch.setattr(TokenizerTrainer, "train", lambda *_: pytest.fail("trained again"))
    again = prepare(copy, TRAINER, cache)
    assert again.folder == first.folder
    assert [path.stat().st_mtime_ns for path in sorted(first.folder.iterdir())] == stamps


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("side", [0, 1])
def test_one_changed_byte_is_another_corpus(source: Parallel, cache: Path, split: str, side: int) -> None:
    first = prepare(source, TRAINER, cache)
    path = source.files(cache)[split][side]
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # content decides, not time or size
    second = prepare(source, TRAINER, cache)
    assert second.fingerprint != first.fingerprint
    assert first.folder.is_dir()


def test_swapped_sides_are_another_corpus(source: Parallel, cache: Path) -> None:
    swapped = Parallel(train=source.train[::-1], val=source.val[::-1], test=(source.test or ())[::-1])
    assert prepare(swapped, TRAINER, cache).fingerprint != prepare(source, TRAINER, cache).fingerprint


def test_an_interrupted_preparation_leaves_nothing(
    source: Parallel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    write = TokenStore.write

    def interrupted(*args: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        write(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(TokenStore, "write", staticmethod(interrupted))
    with pytest.raises(KeyboardInterrupt):
        prepare(source, TRAINER, cache)
    assert list((cache / "prepared").iterdir()) == []
    monkeypatch.undo()
    assert len(prepare(source, TRAINER, cache).dataset("train")) == 60


def test_a_bad_corpus_leaves_nothing(source: Parallel, cache: Path) -> None:
    src, _ = source.files(cache)["train"]
    src.write_bytes(src.read_bytes() + b"one more\n")
    with pytest.raises(CorpusError):
        prepare(source, TRAINER, cache)
    assert list((cache / "prepared").iterdir()) == []


def test_the_slower_of_two_takes_what_the_faster_made(
    source: Parallel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = prepare_module._publish

    def overtaken(unfinished: Path, folder: Path) -> None:
        monkeypatch.setattr(prepare_module, "_publish", publish)
        prepare(source, TRAINER, cache)  # the faster one
        publish(unfinished, folder)

    monkeypatch.setattr(prepare_module, "_publish", overtaken)
    prepared = prepare(source, TRAINER, cache)
    assert list((cache / "prepared").iterdir()) == [prepared.folder]
    assert len(prepared.dataset("train")) == 60


def test_many_at_once_agree(source: Parallel, cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: prepare(source, TRAINER, cache), range(4)))
    assert {prepared.folder for prepared in found} == set((cache / "prepared").iterdir())


@pytest.mark.slow
def test_multi30k_has_little_padding(multi30k_dir: Path, tmp_path: Path) -> None:
    """The promise is more than 92 % real tokens, with the default tokenizer and batches."""
    source = Multi30k(root=str(multi30k_dir), variant="lc_tok", src_lang="en", tgt_lang="de")
    prepared: PreparedData = prepare(source, TokenizerTrainer(), tmp_path)
    dataset = prepared.dataset("train")
    src, tgt = dataset.src.lengths(), dataset.tgt.lengths()
    batches = Batching().cut(src, tgt)
    assert len(np.concatenate(batches)) == 29_000
    padded = sum(len(batch) * int(src[batch].max() + tgt[batch].max()) for batch in batches)
    assert (src.sum() + tgt.sum()) / padded > 0.92
    assert padding_efficiency(batches, tgt) > 0.98
    assert padding_efficiency(batches, src) > 0.9
