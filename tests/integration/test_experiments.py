"""Experiments in miniature, trained as ``train.py`` does it."""

from pathlib import Path

import pytest

from softsearch.app.average import average
from softsearch.app.config.composition import composed
from softsearch.app.config.options import Average
from softsearch.app.results import read_metrics
from softsearch.app.train.train import train
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.checkpoints.folder import step_checkpoints

pytestmark = pytest.mark.day

DATA = (
    "data=spellout",
    "data.train_size=40",
    "data.val_size=4",
    "data.test_size=4",
    "trainer=cpu",
    "trainer.precision=32-true",
    "trainer.log_every_n_steps=1",
)
TINY = (
    "embeddings.dim=16",
    *(f"{side}.{key}" for side in ("encoder", "decoder") for key in ("d_ff=16", "num_heads=2")),
)
SMALL = {
    "cho2014": (
        "tokenizer.vocab_size=60",
        "model.encoder.hidden_dim=16",
        "model.decoder.hidden_dim=16",
        "model.decoder.maxout_dim=16",
        "model.decoder.output_rank=4",
    ),
    "sutskever2014": (
        "tokenizer.src_vocab_size=60",
        "tokenizer.vocab_size=40",
        "model.embeddings.dim=16",
        "model.hidden_dim=16",
        "search.max_length_factor=0",
    ),
}


def run(experiment: str, folder: Path, *options: str) -> None:
    folders = (f"run_dir={folder / 'run'}", f"cache_dir={folder / 'cache'}", "name=test")
    train(composed("train", f"experiment={experiment}", *DATA, *folders, *options))


@pytest.mark.parametrize("experiment", SMALL)
def test_an_experiment_without_early_stopping(experiment: str, tmp_path: Path) -> None:
    run(experiment, tmp_path, *SMALL[experiment], "trainer.max_steps=2", "trainer.val_check_interval=2")
    assert read_metrics(tmp_path / "run")["train/steps"] == 2
    saved = read_contents(tmp_path / "run" / "checkpoints" / "last.ckpt")
    sizes = [tokenizer.vocab_size for tokenizer in saved.tokenizers]
    assert sizes == ([60, 60] if experiment == "cho2014" else [60, 40])


def test_wu2021_has_a_checkpoint_of_each_epoch_and_their_mean(tmp_path: Path) -> None:
    small = (*(f"model.{option}" for option in TINY), "tokenizer.vocab_size=90", "batching.tokens=256")
    options = (*small, "search.max_length_offset=9", "callbacks.last.keep=3")
    checkpoints = tmp_path / "run" / "checkpoints"
    run("wu2021", tmp_path, *options, "trainer.max_steps=4")
    epoch = min(step_checkpoints(checkpoints))
    batches = load_checkpoint(checkpoints / "last.ckpt")["ParallelDataModule"]["epoch_batches"]
    assert epoch == (batches + 1) // 2  # two batches a step
    run("wu2021", tmp_path, *options, f"trainer.max_steps={4 * epoch}", "resume=auto")
    assert list(step_checkpoints(checkpoints)) == [2 * epoch, 3 * epoch, 4 * epoch]
    average(Average(run=tmp_path / "run", ckpt=None, last=3, out=None))
    mean = load_checkpoint(checkpoints / "average.ckpt")
    assert (mean["averaged"], mean["global_step"]) == (3, 4 * epoch)
