"""Archives of arrays: see also tests/unit/training/checkpoints/test_checkpoint_io.py."""

from pathlib import Path

import numpy as np
import pytest

from softsearch.errors import CheckpointError
from softsearch.extras.importing.weights import read_npz
from tests.support.written import with_end_in_comment, with_entry_under_many_names


def test_npz_files_are_archives_too(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.ones(2**14, np.float32), b=np.zeros((2, 3)))
    good = path.read_bytes()
    assert read_npz(path)["a"].sum() == 2**14
    for data, message in (
        (with_entry_under_many_names(good), "its entries overlap"),
        (with_end_in_comment(good), "its directory is not where it should be"),
    ):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=message):
            read_npz(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="it is not a regular file"):
        read_npz(path)
