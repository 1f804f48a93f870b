"""Scoring known translations with a checkpoint and its bundle, and exact search with both."""

import json
import re
from pathlib import Path

import pytest

from softsearch.app.systems.open import open_systems
from softsearch.evaluation.systems import LabSystem
from softsearch.runtime.cli import main as softsearch
from softsearch.search.exact import ExactSearch
from softsearch.search.forced_decoding import score_pairs
from tests.support.commands import run


@pytest.fixture(scope="module")
def systems(trained: Path, bundle: Path) -> list[LabSystem]:
    """The model in PyTorch and in ONNX Runtime."""
    return open_systems(str(trained / "checkpoints" / "best.ckpt"), str(bundle), None)


@pytest.fixture(scope="module")
def files(trained: Path) -> list[Path]:
    """The two sides of the run's test set."""
    return [next((trained.parent / "cache").glob(f"spellout-*/test.{lang}")) for lang in ("en", "de")]


@pytest.mark.day
def test_a_checkpoint_gives_its_data_the_loss_of_its_run(trained: Path, tmp_path: Path) -> None:
    done = run("score", f"ckpt={trained / 'checkpoints' / 'best.ckpt'}", "tokens=true", f"hydra.run.dir={tmp_path}",
               f"cache_dir={trained.parent / 'cache'}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    loss = json.loads((trained / "metrics.json").read_text())["test/loss"]
    printed = re.search(r"20 pairs, .* ([\d.]+) nats and perplexity [\d.]+ per token", done.stdout)
    assert printed
    assert float(printed[1]) == pytest.approx(loss, abs=1e-4)
    rows = [line.split("\t") for line in (tmp_path / "scores.tsv").read_text().splitlines()]
    total, tokens = sum(float(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    assert -total / tokens == pytest.approx(loss, rel=1e-5)
    assert [sum(map(float, row[2].split())) for row in rows] == pytest.approx([float(row[0]) for row in rows], rel=1e-5)


def test_bundle_and_checkpoint_agree(systems: list[LabSystem], bundle: Path, files: list[Path], tmp_path: Path) -> None:
    assert softsearch(["score", str(bundle), *map(str, files), "--output", str(tmp_path / "onnx.tsv")]) == 0
    rows = [line.split("\t") for line in (tmp_path / "onnx.tsv").read_text().splitlines()]
    src, tgt = (
        [tokenizer.encode(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for tokenizer, path in zip(systems[0].tokenizers, files, strict=True)
    )
    torch = score_pairs(systems[0].step_fn, src, tgt, batch_tokens=64)
    assert [int(row[1]) for row in rows] == [len(pair.token_log_probs) for pair in torch]
    assert [float(row[0]) for row in rows] == pytest.approx([pair.log_prob for pair in torch], abs=1e-3)


def test_exact_search_finds_the_same_in_both_backends(systems: list[LabSystem], files: list[Path]) -> None:
    src = [systems[0].tokenizers[0].encode(line) for line in files[0].read_text().splitlines()[:6]]
    search = ExactSearch(max_length_factor=0.0, max_length_offset=3)
    torch, onnx = (search(system.step_fn, src) for system in systems)
    for (one,), (other,) in zip(torch, onnx, strict=True):
        assert (one.tokens, one.optimal, one.truncated) == (other.tokens, other.optimal, other.truncated)
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.optimal
