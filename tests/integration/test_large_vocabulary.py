"""The experiment for large vocabularies as users run it: sampled softmax, sparse gradients, resuming, a shortlist."""

from pathlib import Path

import pytest
import torch

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.commands import SMALL, run

pytestmark = pytest.mark.day

OPTIONS = (
    "experiment=large_vocabulary",
    *(option for option in SMALL if not option.startswith(("experiment", "tokenizer", "trainer.max_steps"))),
    "loss.tau=60",
    "batching.tokens=300",
    "trainer.precision=32-true",
    "search=greedy",
    "scheduler.total_steps=6",
)


@pytest.mark.timeout(600)
def test_a_resumed_run_samples_the_same_words_and_a_shortlist_keeps_to_its_own(tmp_path: Path) -> None:
    options = (*OPTIONS, f"cache_dir={tmp_path / 'cache'}")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder, *more in (
        (whole, "trainer.max_steps=6"),
        (parts, "trainer.max_steps=3"),
        (parts, "trainer.max_steps=6", "resume=auto"),
    ):
        done = run("train.py", *options, *more, f"hydra.run.dir={folder}")
        assert done.returncode == 0, done.stderr
    one, two = (load_checkpoint(folder / "checkpoints" / "last.ckpt")["state_dict"] for folder in (whole, parts))
    assert one["loss.recent_words"].tolist() != list(range(60))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)

    done = run(
        "evaluate.py",
        f"ckpt={whole / 'checkpoints' / 'last.ckpt'}",
        "shortlist={frequent: 1, translations: 1}",
        "search=greedy",
        f"cache_dir={tmp_path / 'cache'}",
        f"hydra.run.dir={tmp_path / 'short'}",
    )
    assert done.returncode == 0, done.stderr
    free, short = (folder / "test.hypotheses.txt" for folder in (whole, tmp_path / "short"))
    assert short.read_text(encoding="utf-8") != free.read_text(encoding="utf-8")
