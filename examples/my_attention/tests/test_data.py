"""The data source."""

from pathlib import Path

import pytest
from my_attention.data import MyAttentionSource

from softsearch import CorpusError


def test_columns_become_files(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text('one\teins\n"two"\tzwei\n')
    files = MyAttentionSource(train=str(table), val=str(table)).files(tmp_path / "cache")
    assert list(files) == ["train", "val"]
    src, tgt = files["val"]
    assert (src.read_text(), tgt.read_text()) == ('one\n"two"\n', "eins\nzwei\n")


def test_a_line_without_a_tab_is_named(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("one\teins\ntwo zwei\n")
    with pytest.raises(CorpusError, match=r"a\.tsv:2 has 1 columns, expected source and target"):
        MyAttentionSource(train=str(table), val=str(table)).files(tmp_path / "cache")
