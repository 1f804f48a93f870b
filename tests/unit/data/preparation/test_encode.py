"""Token ids in files, whatever the pieces that they are written in."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from softsearch.data.preparation.encode import TokenWriter, flat, read_array


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_tokens_do_not_depend_on_the_pieces(tmp_path: Path, at_once: int) -> None:
    sentences = [[4, 5], [], [6], [7, 8, 9], [], [4], [5]]
    with ExitStack() as stack:
        writer = TokenWriter(tmp_path / "x", stack)
        for begin in range(0, len(sentences), at_once):
            writer.append(*flat(sentences[begin : begin + at_once], 10))
    assert writer.tokens == 8
    assert read_array(tmp_path / "x.ids", np.uint16).tolist() == [4, 5, 6, 7, 8, 9, 4, 5]
    assert read_array(tmp_path / "x.offsets", np.int64).tolist() == [0, 2, 2, 3, 6, 6, 7, 8]


def test_an_id_beyond_the_type_is_no_silent_other_id() -> None:
    with pytest.raises((OverflowError, ValueError)):
        flat([[2**16]], 2**16)
