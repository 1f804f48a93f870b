"""Words between a source word and the one that corresponds to it, counted by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softsearch.data.corpora.joined import Joined
from softsearch.data.corpora.parallel import Parallel
from softsearch.evaluation.test_set import HeldOutText
from softsearch.extras.claims.analyses.aligners import word_distances


@pytest.mark.parametrize(("reverse", "expected"), [(False, (4.8, 4, 14 / 3)), (True, (4.8, 1, 10 / 3))])
def test_distances_of_joined_sentences(tmp_path: Path, reverse: bool, expected: tuple[float, ...]) -> None:
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.en").write_text("a b\nc d e\nf\n")
        (tmp_path / f"{split}.de").write_text("A B\nD C\nF\n")
    (tmp_path / "test.links").write_text("0-0 1-1\n1-0 0-1 2?1\n0-0\n")
    pairs: Any = {split: [tmp_path / f"{split}.en", tmp_path / f"{split}.de"] for split in ("train", "val", "test")}
    source = Joined(source=Parallel(**pairs), held_out=[2])  # a b c d e: A B D C, with c and e at C
    system: Any = SimpleNamespace(source=source, tokenizers=(SimpleNamespace(reverse=reverse), None))
    text = HeldOutText("test", ["a b c d e"], ["A B D C"], "plain", "en", "de")
    (row,) = word_distances(system, text, tmp_path / "cache")
    assert (row["mean"], row["minimal"], row["first"]) == pytest.approx(expected)
