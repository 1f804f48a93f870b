"""Finding the training data of what is tested."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from softsearch.app.config.instantiate import build
from softsearch.app.evaluate.overlap import find_overlap
from softsearch.app.systems.test_set import HeldOutText
from softsearch.runtime.system import System
from tests.unit.app.evaluate.test_measure import system

TEXT = HeldOutText("t", ["a b c d", "x"], ["A B C D", "Y"], "plain", "en", "de")


def corpus(folder: Path, src: str, tgt: str) -> dict[str, Any]:
    folder.mkdir()
    for name, content in (("t.en", src), ("t.de", tgt)):
        (folder / name).write_text(content, encoding="utf-8")
    pair = [str(folder / "t.en"), str(folder / "t.de")]
    return {"_target_": "softsearch.data.corpora.parallel.Parallel", "train": pair, "val": pair}


def trained_on(name: str, data: dict[str, Any]) -> System:
    return replace(system(), name=name, source=build(OmegaConf.create(data)))


def test_every_systems_data_is_read_and_bundles_are_named(tmp_path: Path) -> None:
    one = corpus(tmp_path / "one", "a b c d\nq\n", "A b c d\nq\n")
    two = corpus(tmp_path / "two", "x\n", "other\n")
    systems = [trained_on("m1", one), trained_on("m2", one), trained_on("m3", two), replace(system(), name="bundle")]
    counts, warnings = find_overlap(systems, None, TEXT, tmp_path)
    assert counts == {
        "source and reference": 1,
        "source": 2,
        "reference": 1,
        "near twin of the source": 0,
        "near twin of the reference": 0,
    }
    assert warnings[0].startswith("of 2 test sentences the training data holds 1 by source and reference, 2 by source")
    assert "bundle: not checked" in warnings[1]
    assert len(warnings) == 2


def test_data_that_is_gone_is_read_where_the_command_says_or_not_at_all(tmp_path: Path) -> None:
    data = corpus(tmp_path / "here", "x\n", "Y\n")
    pair = [str(tmp_path / "gone" / name) for name in ("t.en", "t.de")]
    moved = trained_on("m", data | {"train": pair, "val": pair})
    counts, warnings = find_overlap([moved], None, TEXT, tmp_path)
    assert counts == {}
    assert "m: not checked" in warnings[0]
    assert "gone" in warnings[0]
    counts, _ = find_overlap([moved], OmegaConf.create(data), TEXT, tmp_path)
    assert counts["source and reference"] == 1
    other = OmegaConf.create({"_target_": "softsearch.data.corpora.spellout.Spellout"})
    assert find_overlap([moved], other, TEXT, tmp_path)[0] == {}


def test_no_overlap_is_no_warning(tmp_path: Path) -> None:
    clean = trained_on("m", corpus(tmp_path / "data", "nothing of it\n", "nichts davon\n"))
    counts, warnings = find_overlap([clean], None, TEXT, tmp_path)
    assert set(counts.values()) == {0}
    assert warnings == []
