"""Sentences of a corpus become longer ones."""

from pathlib import Path

import pytest

from softsearch.data.corpora.joined import Joined, join
from softsearch.data.corpora.parallel import Parallel
from softsearch.errors import ConfigError


def source(folder: Path, **options: object) -> Parallel:
    pairs = {}
    for split, lines in (("train", 7), ("val", 2), ("test", 6)):
        pairs[split] = [folder / f"{split}.{lang}" for lang in ("en", "de")]
        for path in pairs[split]:
            path.write_text("".join(f"{path.suffix[1]}{number}\n" for number in range(lines)))
    return Parallel(**pairs, **options)  # type: ignore[arg-type]


def test_both_sides_are_joined_in_turns_and_the_rest_is_left_out(tmp_path: Path) -> None:
    joined = Joined(source=source(tmp_path), train=[1, 3], held_out=[2])
    assert (joined.src_lang, joined.tgt_lang, joined.text_form) == ("en", "de", "plain")
    files = joined.files(tmp_path / "cache")
    train, val, test = ([path.read_text().splitlines() for path in files[split]] for split in ("train", "val", "test"))
    assert train == [["e0", "e1 e2 e3", "e4"], ["d0", "d1 d2 d3", "d4"]]
    assert val == [["e0 e1"], ["d0 d1"]]
    assert test[0] == ["e0 e1", "e2 e3", "e4 e5"]
    other = Joined(source=source(tmp_path), train=[2], held_out=[2])
    assert other.files(tmp_path / "cache")["train"][0].parent != files["train"][0].parent
    assert list(join([], [1])) == []


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least one number"):
        Joined(source=source(tmp_path), train=[])
    with pytest.raises(ConfigError, match=r"data.source has reverse_source or target_direction, expected them in data"):
        Joined(source=source(tmp_path, reverse_source=True))
