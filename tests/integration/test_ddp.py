"""Two processes on the CPU: the command as it is known, where there is no GPU."""

import csv
import json
from pathlib import Path

import pytest
import torch

from softsearch.training.checkpoint_io import load_checkpoint
from tests.integration.commands import SMALL, run
from tests.unit.data.pairs import write_pair

PAIRS, SENTENCES, STEPS = 70, 10, 10  # seven batches, which two processes share as eight: two and a half epochs


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.skipif(torch.cuda.is_available(), reason="trainer=ddp takes the GPUs of this machine")
def test_two_processes_train_and_write_once(tmp_path: Path) -> None:
    train, val = (write_pair(tmp_path, name, pairs) for name, pairs in (("train", PAIRS), ("val", 5)))
    options = [option for option in SMALL if not option.startswith(("experiment", "data", "trainer"))]
    done = run(
        "train.py",
        *options,
        "data=parallel",
        f"data.train=[{train[0]},{train[1]}]",
        f"data.val=[{val[0]},{val[1]}]",
        "data.src_lang=en",
        "data.tgt_lang=de",
        "tokenizer.kind=char",
        f"batching.sentences={SENTENCES}",
        "trainer=ddp",
        "trainer.precision=32-true",
        f"trainer.max_steps={STEPS}",
        "trainer.val_check_interval=5",
        "trainer.log_every_n_steps=1",
        f"hydra.run.dir={tmp_path / 'run'}",
        f"cache_dir={tmp_path / 'cache'}",
    )
    assert done.returncode == 0, done.stderr
    assert "4 batches a process" in done.stdout + done.stderr
    assert list(tmp_path.rglob("metrics.json")) == [tmp_path / "run" / "metrics.json"]
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["train/steps"] == STEPS
    assert 0 < metrics["val/loss"] < 20
    assert len((tmp_path / "run" / "val.hypotheses.txt").read_text(encoding="utf-8").splitlines()) == 5
    with (tmp_path / "run" / "metrics.csv").open(newline="") as file:
        steps = [int(row["step"]) for row in csv.DictReader(file) if row["train/loss"]]
    assert steps == list(range(STEPS))
    last = load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")
    assert last["global_step"] == STEPS
    state = last["ParallelDataModule"]
    assert (state["batches_trained"], state["world_size"]) == (STEPS, 2)
