"""Every choice of the groups that steer training takes a step; of those that steer a search, a test too."""

from pathlib import Path

import pytest

from softsearch.app.config.composition import CONFIGS, composed
from softsearch.app.train.train import train
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.support.commands import SMALL

GROUPS = ("batching", "loss", "method", "optimizer", "scheduler", "search", "tokenizer")
CHOICES = [f"{group}={path.stem}" for group in GROUPS for path in sorted((CONFIGS / group).glob("*.yaml"))]
REPLACED = {  # beginnings, in SMALL
    "search=mbr": ("search",),
    "search=rerank": ("search",),
    "method=joint_likelihood": ("model", "experiment"),
}
A_STEP = (
    "trainer.max_steps=1", "trainer.val_check_interval=1", "+trainer.limit_val_batches=1",
    "trainer.log_every_n_steps=1", "callbacks.translate.sentences=2",
)  # fmt: skip
NEEDED = {
    "method=joint_likelihood": ("model=decoder_only_rnn", "model.embeddings.dim=16", "model.decoder.hidden_dim=16"),
    "method=combined": ("+method@method.methods.r_drop=r_drop", "+method@method.methods.forced=teacher_forcing"),
    "method=guided_alignment": ("data.links=auto",),
    "method=minimum_risk": ("method.samples=3", "batching.sentences=8"),  # each of which is translated
    "optimizer=lazy_adam": ("+model.embeddings.sparse=true",),
    "scheduler=halving": ("scheduler.start=1", "scheduler.every=1"),
    "search=exact": ("search.max_nodes=20",),
    "search=mbr": ("search.candidates.n_best=4", "search.candidates.max_length_factor=1"),
    "search=rerank": ("+search.search.max_length_factor=1",),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_trains(choice: str, trained: Path, tmp_path: Path) -> None:
    small = [option for option in SMALL if not option.startswith(REPLACED.get(choice, ()))]
    if choice == "search=rerank":
        small.append(f"search.models=[{trained / 'checkpoints' / 'best.ckpt'}]")
    options = [choice, *NEEDED.get(choice, ()), *A_STEP, f"test={2 if choice.startswith('search') else 'false'}"]
    folders = [f"run_dir={tmp_path / 'run'}", f"cache_dir={trained.parent / 'cache'}", "name=test"]
    train(composed("train", *small, *options, *folders))
    assert load_checkpoint(tmp_path / "run" / "checkpoints" / "last.ckpt")["global_step"] == 1
