"""Scores over seeds: which runs are one system, their means and sample standard deviations."""

from pathlib import Path

import pytest

from softsearch.app.seeds import ScoredRun, seed_table
from softsearch.evaluation.schema import MetricFacts

FACTS = {"bleu": MetricFacts("BLEU"), "share": MetricFacts("share", percent=True), "ter": MetricFacts("TER", False)}
CONFIG = """data:
  seed: 1
model:
  dim: {dim}
callbacks:
  exact_resume:
    seed: {seed}
  faulty_steps:
    folder: {folder}
logger:
  csv:
    name: {name}
name: {name}
seed: {seed}
freeze:
- embeddings
run_dir: {folder}
cache_dir: /tmp/{name}
"""


def run(folder: Path, bleu: float, *, dim: int, seed: int, search: str = "greedy", **scores: float) -> ScoredRun:
    folder.mkdir(exist_ok=True)
    config = CONFIG.format(dim=dim, seed=seed, folder=folder, name=folder.name)
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    return ScoredRun(folder.name, folder, search, {"bleu": bleu, **scores})


def test_runs_that_differ_in_their_seed_alone_are_one_system(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / "small-1", 40.0, dim=8, seed=1, share=0.5, ter=50.0),
        run(tmp_path / "large", 42.0, dim=16, seed=1, share=0.4, ter=50.0),
        run(tmp_path / "small-2", 42.0, dim=8, seed=2, share=0.7),
        ScoredRun("moses", tmp_path, "", {"bleu": 30.0}),
    ]
    table = seed_table(runs, FACTS, "test")
    assert table is not None
    assert [*map(list, table.rows)] == [
        ["small", "2", "41.00 ± 1.41", "60.00 % ± 14.14 %", ""],
        ["large", "1", "42.00", "40.00 %", "50.00"],
        ["moses", "1", "30.00", "", ""],
    ]
    assert table.columns == ("system", "seeds", "BLEU", "share", "TER")
    assert table.best == {(1, 2), (0, 3), (1, 4)}


@pytest.mark.parametrize(
    ("seed", "dim", "search"),
    [(1, 8, "greedy"), (2, 16, "greedy"), (2, 8, "beam 5")],  # another checkpoint, another model, another search
)
def test_other_runs_are_systems_of_their_own(seed: int, dim: int, search: str, tmp_path: Path) -> None:
    first = run(tmp_path / "a", 40.0, dim=8, seed=1)
    assert seed_table([first, run(tmp_path / "b", 42.0, dim=dim, seed=seed, search=search)], FACTS, "test") is None


def test_runs_without_a_common_name_are_listed(tmp_path: Path) -> None:
    table = seed_table([run(tmp_path / f"{n}", 40.0, dim=8, seed=n) for n in (0, 1, 2)], FACTS, "test")
    assert table is not None
    assert [*map(list, table.rows)] == [["0, 1, 2", "3", "40.00 ± 0.00"]]
