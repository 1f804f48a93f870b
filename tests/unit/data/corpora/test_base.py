"""What all sources have."""

from pathlib import Path

import pytest

from softsearch.data.corpora.base import ParallelSource
from softsearch.data.corpora.multi30k import Multi30k
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.spellout import Spellout
from softsearch.errors import ConfigError

OPTIONS = [
    (Spellout, {}),
    (Multi30k, {}),
    (Parallel, {"train": ["a.en", "a.de"], "val": ["b.en", "b.de"]}),
    (Multilingual, {"src_lang": "en", "tgt_lang": "de", "pairs": {"de": Spellout()}}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
def test_every_source_has_directions(kind: type[ParallelSource], options: dict[str, object]) -> None:
    assert kind(**options).reversed_sides == (False, False)  # type: ignore[arg-type]
    assert kind(**options, reverse_source=True, target_direction="r2l").reversed_sides == (True, True)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"data\.reverse_source is 'yes', expected true or false"):
        kind(**options, reverse_source="yes")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"data\.target_direction is 'rl2', expected one of l2r, r2l"):
        kind(**options, target_direction="rl2")  # type: ignore[arg-type]


def test_directions_share_the_generated_files(tmp_path: Path) -> None:
    small = {"train_size": 3, "val_size": 1, "test_size": 1}
    assert Spellout(**small).files(tmp_path) == Spellout(**small, reverse_source=True).files(tmp_path)  # type: ignore[arg-type]
