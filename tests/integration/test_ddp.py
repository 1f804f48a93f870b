"""Training in two processes on the CPU, by the real command."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from softsearch.app.config.build import build_data, build_model
from softsearch.app.config.validation import build
from softsearch.data.sampler import Shard
from softsearch.text.vocabulary import PAD
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.optimizer.muon import parameter_groups
from tests.support.processes import train_in_processes

PAIRS, SENTENCES, STEPS = 70, 10, 10  # seven batches, which two processes share as eight: two and a half epochs


pytestmark = [
    pytest.mark.multiprocess,
    pytest.mark.skipif(torch.cuda.is_available(), reason="trainer=ddp takes the GPUs of this machine"),
]


def train_in_two(folder: Path, *options: str) -> tuple[str, list[dict[str, str]]]:
    """Trains in ``folder / "run"``; returns its output and the rows of metrics.csv that have a training loss."""
    done = train_in_processes(
        folder, "run", f"batching.sentences={SENTENCES}", f"trainer.max_steps={STEPS}", *options, pairs=PAIRS
    )
    assert done.returncode == 0, done.stderr
    with (folder / "run" / "metrics.csv").open(newline="") as file:
        return done.stdout + done.stderr, [row for row in csv.DictReader(file) if row["train/loss"]]


def test_two_processes_train_and_write_once(tmp_path: Path) -> None:
    printed, rows = train_in_two(tmp_path, "trainer.val_check_interval=5")
    assert "4 batches per process" in printed
    threads = os.environ.get("OMP_NUM_THREADS", max(1, len(os.sched_getaffinity(0)) // 2))
    assert f"2 processes, each on CPU (threads: {threads})" in printed
    assert list(tmp_path.rglob("metrics.json")) == [tmp_path / "run" / "metrics.json"]
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["train/steps"] == STEPS
    assert 0 < metrics["val/loss"] < 20
    assert len((tmp_path / "run" / "val.hypotheses.txt").read_text(encoding="utf-8").splitlines()) == 5
    assert [int(row["step"]) for row in rows] == list(range(1, STEPS + 1))
    last = load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")
    assert last["global_step"] == STEPS
    state = last["ParallelDataModule"]
    assert (state["batches_trained"], state["world_size"]) == (STEPS, 2)


def test_two_processes_have_the_loss_curve_of_one_with_twice_the_batch(tmp_path: Path) -> None:
    muon = "optimizer=muon", "optimizer.bfloat16=false"  # which shares out its work among processes
    options = ("model.encoder.dropout=0", "model.decoder.dropout=0", "trainer.val_check_interval=1000")
    _, rows = train_in_two(tmp_path, *muon, *options)
    for name in ("best.ckpt", "last.ckpt"):  # of the validation at the end, which all processes agree on
        assert load_checkpoint(tmp_path / "run" / "checkpoints" / name)["global_step"] == STEPS
    expected = one_process(OmegaConf.load(tmp_path / "run" / "config.yaml"))
    assert [float(row["train/loss"]) for row in rows] == pytest.approx(expected, rel=1e-4)


def one_process(config: Any) -> list[float]:
    """The losses of plain training on the batches of both processes put together, without Lightning."""
    lightning.seed_everything(config.seed, verbose=False)
    data = build_data(config)
    data.prepare_data()
    model = build_model(config.model, (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer))
    dataset, loss_of = data.prepared.dataset("train"), build(config.loss)
    lengths = dataset.src.lengths(), dataset.tgt.lengths()
    shard = Shard(data.batching.cut(*lengths), *lengths, seed=(config.seed,), world_size=2)
    optimizer = build(config.optimizer)(parameter_groups(model))
    scheduler = build(config.scheduler)(optimizer)
    losses: list[float] = []
    for step in range(STEPS):
        epoch, turn = divmod(step, len(shard.batches) // 2)
        pair = np.concatenate(shard.plan(epoch)[2 * turn : 2 * turn + 2])
        batch = dataset.__getitems__(pair.tolist())
        targets = batch.tgt_tokens[:, 1:]
        real = targets != PAD
        features = model.features(batch.src_tokens, batch.tgt_tokens[:, :-1])
        loss = loss_of(features[real], targets[real], model.decoder.output_projection).smoothed / real.sum()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.trainer.gradient_clip_val)
        optimizer.step()
        scheduler.step()
    return losses
