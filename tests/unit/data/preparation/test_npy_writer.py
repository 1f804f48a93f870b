"""Files written piece by piece are those that NumPy writes at once."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softsearch.data.preparation.npy_writer import array_writer, flat, token_writer


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.integers(0, 2**15), max_size=5), max_size=5), st.sampled_from([np.uint16, np.int32, np.int64])
)
def test_bytes_are_those_of_numpy_save(tmp_path: Path, pieces: list[list[int]], dtype: type) -> None:
    with array_writer(tmp_path / "ours.npy", dtype) as writer:
        for piece in pieces:
            writer.append(piece)
    np.save(tmp_path / "theirs.npy", np.array([value for piece in pieces for value in piece], dtype=dtype))
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()


def test_a_header_grows_with_the_count(tmp_path: Path) -> None:
    with array_writer(tmp_path / "x.npy", np.uint16) as writer:
        for _ in range(100):
            writer.append(np.zeros(12_345, np.uint16))
    assert np.load(tmp_path / "x.npy").shape == (1_234_500,)


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_tokens_do_not_depend_on_the_pieces(tmp_path: Path, at_once: int) -> None:
    sentences = [[4, 5], [], [6], [7, 8, 9], [], [4], [5]]
    with token_writer(tmp_path / "x", 10) as writer:
        for begin in range(0, len(sentences), at_once):
            writer.append(*flat(sentences[begin : begin + at_once], 10))
    assert np.load(tmp_path / "x.ids.npy").tolist() == [4, 5, 6, 7, 8, 9, 4, 5]
    assert np.load(tmp_path / "x.offsets.npy").tolist() == [0, 2, 2, 3, 6, 6, 7, 8]


def test_an_id_beyond_the_type_is_no_silent_other_id() -> None:
    with pytest.raises((OverflowError, ValueError)):
        flat([[2**16]], 2**16)
