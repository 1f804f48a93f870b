"""Token ids on disk."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softsearch.data.dataset import ParallelDataset, TokenStore
from softsearch.data.preparation.encode import id_type
from softsearch.text.vocabulary import BOS, EOS, PAD
from tests.unit.data.pairs import write_store


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sentences=st.lists(st.lists(st.integers(0, 99), max_size=8), max_size=8))
def test_what_is_written_is_read(tmp_path: Path, sentences: list[list[int]]) -> None:
    write_store(tmp_path / "train.src", sentences, vocab_size=100)
    store = TokenStore(tmp_path / "train.src", np.uint16)
    assert len(store) == len(sentences)
    assert [store[i].tolist() for i in range(len(store))] == sentences
    assert store.lengths().tolist() == [len(sentence) + 1 for sentence in sentences]


@pytest.mark.parametrize(("vocab_size", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.int32)])
def test_ids_take_as_few_bytes_as_the_vocabulary_allows(tmp_path: Path, vocab_size: int, dtype: type) -> None:
    write_store(tmp_path / "x", [[vocab_size - 1]], vocab_size)
    store = TokenStore(tmp_path / "x", id_type(vocab_size))
    assert id_type(vocab_size) == dtype
    assert (tmp_path / "x.ids").stat().st_size == np.dtype(dtype).itemsize
    assert store[0].tolist() == [vocab_size - 1]


def test_ids_stay_on_disk(tmp_path: Path) -> None:
    write_store(tmp_path / "x", [[4, 5]], vocab_size=10)
    assert isinstance(TokenStore(tmp_path / "x", np.uint16).ids, np.memmap)


def test_sides_and_splits_have_files_of_their_own(tmp_path: Path) -> None:
    for number, name in enumerate(("train.src", "train.tgt", "val.src", "val.tgt")):
        write_store(tmp_path / name, [[number]], vocab_size=10)
    names = ("train.src", "train.tgt", "val.src", "val.tgt")
    assert [TokenStore(tmp_path / name, np.uint16)[0].tolist() for name in names] == [[0], [1], [2], [3]]


@pytest.fixture
def dataset(tmp_path: Path) -> ParallelDataset:
    for side, sentences in (("src", [[4, 5], [6], [7, 8, 9]]), ("tgt", [[5], [], [6, 7]])):
        write_store(tmp_path / side, sentences, vocab_size=10)
    return ParallelDataset(TokenStore(tmp_path / "src", np.uint16), TokenStore(tmp_path / "tgt", np.uint16))


def test_an_item_is_a_padded_batch(dataset: ParallelDataset) -> None:
    batch = dataset.__getitems__([2, 1])
    assert len(dataset) == 3
    assert batch.src_tokens.tolist() == [[7, 8, 9, EOS], [6, EOS, PAD, PAD]]
    assert batch.tgt_tokens.tolist() == [[BOS, 6, 7, EOS], [BOS, EOS, PAD, PAD]]


def test_a_draw_of_a_later_epoch_is_the_same_pair(dataset: ParallelDataset) -> None:
    first, second = (dataset.__getitems__([2 + epoch, 1 + epoch]) for epoch in (0, 3 * 4))
    assert [side.tolist() for side in first] == [side.tolist() for side in second]


def test_workers_get_a_copy(dataset: ParallelDataset) -> None:
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.__getitems__([0]).src_tokens.tolist() == [[4, 5, EOS]]


def test_rows_choose_and_repeat_sentences(tmp_path: Path) -> None:
    write_store(tmp_path / "x", [[4], [5, 6], []], vocab_size=10)
    store = TokenStore(tmp_path / "x", np.uint16, np.array([2, 1, 1], dtype=np.int32))
    assert [store[i].tolist() for i in range(len(store))] == [[], [5, 6], [5, 6]]
    assert store.lengths().tolist() == [1, 3, 3]


def test_lengths_are_right_beyond_32_bits_of_offsets(tmp_path: Path) -> None:
    offsets = np.array([0, 5, 2**31 - 1, 2**31 + 4, 2**33, 2**33 + 7], dtype=np.int64)
    (tmp_path / "x.offsets").write_bytes(offsets.tobytes())
    (tmp_path / "x.ids").write_bytes(b"")
    lengths = TokenStore(tmp_path / "x", np.uint16).lengths()
    assert lengths[[0, 2, 4]].tolist() == [6, 6, 8]
    assert lengths.dtype == np.int32
