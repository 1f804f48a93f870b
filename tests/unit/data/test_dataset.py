"""Token ids on disk, in padded batches, and in segmentations drawn anew."""

import os
import pickle
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softsearch.data.dataset import MAX_GROWTH, MixedRows, ParallelDataset, Resampler, TokenStore, pad
from softsearch.data.preparation.encode import id_type
from softsearch.text.subword_sampling import SubwordSampler
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, PAD
from tests.support.pairs import write_store

LINES = ["one small red house", "two small houses", "three red cars and one small car", "ein kleines rotes Haus"] * 5
ROOT = Path(__file__).resolve().parents[3]
BOTH: tuple[Kind, ...] = ("bpe", "unigram")
Pair = tuple[np.ndarray, np.ndarray]


def test_pad_puts_specials_around_the_ids() -> None:
    sentences = [np.array([7, 8, 9], dtype=np.uint16), np.array([], dtype=np.uint16)]
    assert pad(sentences).tolist() == [[7, 8, 9, EOS], [EOS, PAD, PAD, PAD]]
    assert pad(sentences, bos=True).tolist() == [[BOS, 7, 8, 9, EOS], [BOS, EOS, PAD, PAD, PAD]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sentences=st.lists(st.lists(st.integers(0, 99), max_size=8), max_size=8))
def test_what_is_written_is_read(tmp_path: Path, sentences: list[list[int]]) -> None:
    write_store(tmp_path / "train.src", sentences, vocab_size=100)
    store = TokenStore.of_files([tmp_path / "train.src"], np.uint16)
    assert len(store) == len(sentences)
    assert [store[i].tolist() for i in range(len(store))] == sentences
    assert store.lengths().tolist() == [len(sentence) + 1 for sentence in sentences]


@pytest.mark.parametrize(("vocab_size", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.int32)])
def test_ids_take_as_few_bytes_as_the_vocabulary_allows(tmp_path: Path, vocab_size: int, dtype: type) -> None:
    write_store(tmp_path / "x", [[vocab_size - 1]], vocab_size)
    store = TokenStore.of_files([tmp_path / "x"], id_type(vocab_size))
    assert id_type(vocab_size) == dtype
    assert (tmp_path / "x.ids").stat().st_size == np.dtype(dtype).itemsize
    assert store[0].tolist() == [vocab_size - 1]


def test_ids_stay_on_disk(tmp_path: Path) -> None:
    write_store(tmp_path / "x", [[4, 5]], vocab_size=10)
    assert isinstance(TokenStore.of_files([tmp_path / "x"], np.uint16)[0], np.memmap)


def test_sides_and_splits_have_files_of_their_own(tmp_path: Path) -> None:
    for number, name in enumerate(("train.src", "train.tgt", "val.src", "val.tgt")):
        write_store(tmp_path / name, [[number]], vocab_size=10)
    names = ("train.src", "train.tgt", "val.src", "val.tgt")
    assert [TokenStore.of_files([tmp_path / name], np.uint16)[0].tolist() for name in names] == [[0], [1], [2], [3]]


@pytest.fixture
def dataset(tmp_path: Path) -> ParallelDataset:
    for side, sentences in (("src", [[4, 5], [6], [7, 8, 9]]), ("tgt", [[5], [], [6, 7]])):
        write_store(tmp_path / side, sentences, vocab_size=10)
    return ParallelDataset(
        TokenStore.of_files([tmp_path / "src"], np.uint16), TokenStore.of_files([tmp_path / "tgt"], np.uint16)
    )


def test_an_item_is_a_padded_batch(dataset: ParallelDataset) -> None:
    batch = dataset.__getitems__([2, 1])
    assert len(dataset) == 3
    assert batch.src_tokens.tolist() == [[7, 8, 9, EOS], [6, EOS, PAD, PAD]]
    assert batch.tgt_tokens.tolist() == [[BOS, 6, 7, EOS], [BOS, EOS, PAD, PAD]]


def test_a_draw_of_a_later_epoch_is_the_same_pair(dataset: ParallelDataset) -> None:
    first, second = (dataset.__getitems__([2 + epoch, 1 + epoch]) for epoch in (0, 3 * 4))
    assert [side.tolist() for side in first[:2]] == [side.tolist() for side in second[:2]]


def test_workers_get_a_copy(dataset: ParallelDataset) -> None:
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.__getitems__([0]).src_tokens.tolist() == [[4, 5, EOS]]


def test_rows_choose_and_repeat_sentences(tmp_path: Path) -> None:
    write_store(tmp_path / "x", [[4], [5, 6], []], vocab_size=10)
    store = TokenStore.of_files([tmp_path / "x"], np.uint16, MixedRows([2, 1], [0.5, 2]))
    assert [store[i].tolist() for i in range(len(store))] == [[4], [], []]
    assert store.lengths().tolist() == [2, 1, 1]
    assert store.lengths(np.array([2, 0])).tolist() == [1, 2]


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0.01, 5)), min_size=1, max_size=4))
def test_mixed_rows_are_those_of_one_list(corpora: list[tuple[int, float]]) -> None:
    """As they were first listed; old runs resume by them."""
    sizes, repeats = zip(*corpora, strict=True)
    listed, begin = [], 0
    for size, repeat in corpora:
        indices = np.arange(max(1, int(size * repeat)))
        listed += (begin + np.minimum(indices / repeat, size - 1).astype(np.int64)).tolist()
        begin += size
    rows = MixedRows(sizes, repeats)
    assert len(rows) == len(listed)
    assert rows[np.arange(len(rows))].tolist() == [int(rows[i]) for i in range(len(rows))] == listed


def test_lengths_are_right_beyond_32_bits_of_offsets(tmp_path: Path) -> None:
    offsets = np.array([0, 5, 2**31 - 1, 2**31 + 4, 2**33, 2**33 + 7], dtype=np.int64)
    (tmp_path / "x.offsets").write_bytes(offsets.tobytes())
    (tmp_path / "x.ids").write_bytes(b"")
    lengths = TokenStore.of_files([tmp_path / "x"], np.uint16).lengths()
    assert lengths[[0, 2, 4]].tolist() == [6, 6, 8]
    assert lengths.dtype == np.int32


@pytest.fixture(scope="module", params=BOTH)
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


@cache
def tokenizers(kind: Kind) -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    straight = train_tokenizer(LINES, kind=kind, vocab_size={"bpe": 70, "unigram": 36}[kind])
    return straight, SentencePieceTokenizer(straight.model, reverse=True)


def make(kind: Kind, seed: int = 1, tokens: int = 1000) -> Resampler:
    src, tgt = (SubwordSampler(tokenizer, kind, 0.3) for tokenizer in tokenizers(kind))
    return Resampler((src, tgt), tokens=tokens, seed=seed)


def pairs(kind: Kind) -> list[Pair]:
    src, tgt = tokenizers(kind)
    return [
        (np.array(src.encode(line), dtype=np.uint16), np.array(tgt.encode(other), dtype=np.uint16))
        for line, other in pairwise(LINES[:5])
    ]


def ids(found: list[Pair]) -> list[list[list[int]]]:
    return [[side.tolist() for side in pair] for pair in found]


def test_the_text_stays(kind: Kind) -> None:
    resampler = make(kind)
    whole = pairs(kind)
    for epoch in range(20):
        for before, after in zip(whole, resampler([4 * epoch + i for i in range(4)], whole), strict=True):
            for side, model in enumerate(tokenizers(kind)):
                assert model.decode(after[side].tolist()) == model.decode(before[side].tolist())
                assert after[side].dtype == before[side].dtype


def test_a_draw_depends_on_nothing_but_its_number_and_the_seed(kind: Kind) -> None:
    resampler = make(kind)
    whole = pairs(kind)
    together = ids(resampler([0, 1, 2, 3], whole))
    backwards = ids(make(kind)([3, 2, 1, 0], whole[::-1]))[::-1]
    copy = pickle.loads(pickle.dumps(resampler))
    alone = [ids(copy([i], whole[i : i + 1]))[0] for i in (2, 0, 3, 1)]
    assert together == backwards == [alone[i] for i in (1, 3, 0, 2)]


def test_epochs_seeds_and_sides_differ(kind: Kind) -> None:
    resampler = make(kind)
    whole = pairs(kind)
    epochs = [ids(resampler([4 * epoch + i for i in range(4)], whole)) for epoch in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert ids(make(kind, seed=2)([0, 1, 2, 3], whole)) != epochs[0]
    for side in (0, 1):
        assert [pair[side] for pair in epochs[0]] != [pair[side] for pair in epochs[1]]


def test_a_batch_stays_within_twice_the_budget(kind: Kind) -> None:
    """The samples that fit are taken, and for the others the segmentation that the batch was cut by."""
    free = make(kind)
    whole = pairs(kind)
    fitting, kept = 0, 0
    width = max(len(side) + 1 for pair in whole for side in pair)
    for budget in (4 * width // MAX_GROWTH, 4 * width):
        capped = make(kind, tokens=budget)
        for epoch in range(20):
            draws = [4 * epoch + i for i in range(4)]
            for one, other, before in zip(free(draws, whole), capped(draws, whole), whole, strict=True):
                for side in (0, 1):
                    fits = 4 * (len(one[side]) + 1) <= MAX_GROWTH * budget
                    assert other[side].tolist() == (one if fits else before)[side].tolist()
                    fitting, kept = fitting + fits, kept + (not fits)
    assert fitting
    assert kept


def test_another_process_draws_the_same() -> None:
    """What is drawn may not depend on hashes, addresses or salts of the process: a resumed run is another one."""
    program = (
        "import tests.unit.data.test_dataset as t; print([t.ids(t.make(k)(range(4), t.pairs(k))) for k in t.BOTH])"
    )
    command = [sys.executable, "-c", program]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1",
    }
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment).stdout
    assert found == f"{[ids(make(k)(range(4), pairs(k))) for k in BOTH]}\n"
