"""What runs logged, and tables of it."""

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softsearch.errors import ConfigError
from softsearch.extras.claims import inspection, measures
from softsearch.extras.claims.claim_page import averaged
from softsearch.extras.claims.inspection import Logged, ModelMeasure, PairMeasure
from tests.support.commands import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "metrics.json").write_text(json.dumps({"test/loss": 2.0, "test/bleu": 30.0}))
    (tmp_path / "metrics.csv").write_text("step,grad_norm/total\n1,4.0\n2,\n3,0.5\n")
    (tmp_path / "config.yaml").write_text("data: {train_size: 300}\n")
    return tmp_path


def test_a_row_of_what_a_run_logged(folder: Path) -> None:
    measure = Logged(
        final={"bleu": "test/bleu"},
        largest={"norm": "grad_norm/total"},
        config={"pairs": "data.train_size"},
        runs=["a"],
    )
    rows = measure({"a": {1: folder}, "b": {1: folder / "none"}})
    expected = {"run": "a", "seed": 1, "perplexity": math.exp(2), "bleu": 30.0, "norm": 4.0, "pairs": 300}
    assert rows == [expected]
    with pytest.raises(ConfigError, match="there is no run 'c', expected some of a"):
        Logged(runs=["c"])({"a": {1: folder}})


def fake_run(folder: Path) -> Any:
    model = SimpleNamespace(cpu=lambda: folder.name)
    return SimpleNamespace(model=model, tokenizers=None, source=None, cache_dir=folder, held_out=lambda: "text")


def test_all_models_get_the_translations_of_the_first_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection.lab, "Run", fake_run)
    monkeypatch.setattr(
        inspection, "evaluated", lambda paths, _: SimpleNamespace(systems=[SimpleNamespace(hypotheses=paths)])
    )
    measure = ModelMeasure(rows=lambda *_, translations: [{"of": translations}], runs=["a"], translator="b")
    rows = measure({name: {seed: Path(f"{name}{seed}") for seed in (2, 3)} for name in ("a", "b")})
    assert [(row["seed"], row["of"]) for row in rows] == [(2, [Path("b2")]), (3, [Path("b2")])]


@pytest.mark.parametrize("seeds", [4, 5])
def test_no_model_is_in_two_pairs_of_a_partner(monkeypatch: pytest.MonkeyPatch, seeds: int) -> None:
    monkeypatch.setattr(inspection.lab, "Run", fake_run)
    measure = PairMeasure(
        rows=lambda systems, *_: [{"models": [system.model for system in systems]}], run="a", partners=["a", "b"]
    )
    rows = measure({name: {seed: Path(f"{name}{seed}") for seed in range(1, seeds + 1)} for name in ("a", "b")})
    assert [row["models"] for row in rows] == [["a1", "a2"], ["a3", "a4"], ["a1", "b1"], ["a3", "b3"]]
    assert [(row["run"], row["partner"], row["seed"]) for row in rows] == [
        ("a", partner, seed) for partner in ("a", "b") for seed in (1, 3)
    ]


def test_the_config_of_a_run_names_nothing_that_a_checkpoint_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checkpoints").mkdir()
    origin = shutil.copy(ROOT / "tests" / "golden" / "checkpoint.ckpt", tmp_path / "checkpoints" / "best.ckpt")
    made = tmp_path / "made"
    (tmp_path / "config.yaml").write_text(f"cache_dir: x\ndata: {{_target_: os.mkdir, path: {made}}}\n")
    train_files = "softsearch.data.ParallelSource.train_files"
    monkeypatch.setattr(train_files, lambda *_: [("a.en", "a.de")])
    monkeypatch.setattr(measures, "read_parallel", lambda *_: SimpleNamespace(src=["a"]))
    system: Any = SimpleNamespace(origin=str(origin))
    (text,) = measures._training_text(system)
    assert text.src == ["a"]
    assert not made.exists()


@pytest.mark.parametrize(
    ("rerank", "more"),
    [("first", ["search.models=[b,'c=1']"]), ("all", ["search.models=[b,'c=1']", "search.proposers=[b,'c=1']"])],
)
def test_the_first_model_of_a_group_searches_and_the_others_score_its_list(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, rerank: Any, more: list[str]
) -> None:
    facts = dict.fromkeys(("nll", "length_ratio", "aer", "parameters", "sentences_per_second", "no_unk_sentences"), 1)
    system = SimpleNamespace(name="a", scores={}, hypotheses=["ein"], **facts)
    asked = []

    def evaluated(folders: Any, options: Any) -> Any:
        asked.append((folders, options))
        return SimpleNamespace(systems=[system])

    monkeypatch.setattr(measures, "evaluated", evaluated)
    measure = measures.Evaluate(
        table="scores", together="seeds", size=3, rerank=rerank, options=["search.search.beam=4"]
    )
    caplog.set_level("INFO")
    rows = measure({"x": {seed: Path(name) for seed, name in enumerate(("a", "b", "c=1", "d", "e", "f"), 1)}})
    assert asked[0] == ([Path("a")], ["search=rerank", "search.search.beam=4", *more])
    assert [row["seed"] for row in rows] == ["1+2+3", "4+5+6"]
    assert caplog.messages[-1] == "evaluation 2 of 2: x, seed 4; x, seed 5; x, seed 6"


def test_rows_of_a_table_differ_by_text_and_whole_numbers() -> None:
    rows = [{"k": k, "norm": k + seed / 10} for k in (1, 2000) for seed in (1, 3)]
    assert averaged(rows, ["k", "norm"]) == [["1", "1.20 ± 0.141"], ["2,000", "2,000 ± 0.141"]]


@pytest.mark.parametrize(
    ("places", "share"),
    [([0, 1, 2], 0), ([2, 1, 0], 1), ([0, 2, 1], 1 / 3), ([1, 1, 1], 0), ([2], 0), ([1, 3, 0], 2 / 3)],
)
def test_pairs_that_attend_backwards_are_inverted(places: list[int], share: float) -> None:
    assert measures.inverted_pairs(np.eye(4)[places]) == pytest.approx(share)
