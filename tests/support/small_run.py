"""A training run of seconds in this process, with the callbacks that a run has."""

import copy
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor
from torch.optim import Adam

from softsearch.app.config.validation import build
from softsearch.data.corpora.base import Links
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.sampler import Batching
from softsearch.models.loss import CrossEntropy
from softsearch.testing.models import model_config
from softsearch.text.noise import NO_NOISE, Noise
from softsearch.text.tokenizer import TokenizerTrainer
from softsearch.training.callbacks.checkpoints import BestCheckpoint, FinalValidation, LastCheckpoint
from softsearch.training.callbacks.exact_resume import ExactResume
from softsearch.training.checkpoints.checkpoint_contents import SaveOrigin
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO, load_checkpoint
from softsearch.training.faults.preemption import Preemption
from softsearch.training.module import TranslationModule
from softsearch.training.optimizer.schedules import inverse_sqrt
from tests.support.pairs import write_corpus
from tests.support.written import CONFIG


class Terminate(Callback):
    """Sends this process SIGTERM in the middle of a training step."""

    def __init__(self, at: int) -> None:
        self.at = at

    def on_after_backward(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.datamodule.batches_trained == self.at:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGTERM)


def small_data(
    folder: Path, *, sampling: float = 0.0, noise: Noise = NO_NOISE, links: Links = None
) -> ParallelDataModule:
    """Prepared data of seven batches an epoch."""
    data = ParallelDataModule(
        source=replace(write_corpus(folder, train=70), links=links),
        tokenizer=TokenizerTrainer(kind="bpe", vocab_size=60, sampling=sampling),
        batching=Batching(tokens=1000, sentences=10),
        cache_dir=folder / "cache",
        seed=1,
        noise=noise,
    )
    data.prepare_data()
    return data


def small_module(
    data: ParallelDataModule, model: str = "rnnsearch", *overrides: str, dropout: float = 0.5, **parts: Any
) -> TranslationModule:
    """A module with the same weights at each call; ``parts`` are its arguments, where they are not the usual ones."""
    config = copy.deepcopy(model_config(model, *overrides))
    config.encoder.dropout = config.decoder.dropout = dropout
    prepared = data.prepared
    torch.manual_seed(0)
    usual: dict[str, Any] = {
        "model": build(
            config, src_vocab_size=prepared.src_tokenizer.vocab_size, tgt_vocab_size=prepared.tgt_tokenizer.vocab_size
        ),
        "loss": CrossEntropy(),
        "optimizer": partial(Adam, lr=0.01),
        "scheduler": partial(inverse_sqrt, warmup_steps=5),
    }
    return TranslationModule(**usual | parts)


def small_trainer(steps: int, callbacks: list[Callback], *, accumulate: int = 1, **options: Any) -> lightning.Trainer:
    """A trainer for one process, which validates after every fourth batch and tells nobody, unless ``options`` do."""
    usual: dict[str, Any] = {
        "accelerator": "cpu",
        "devices": 1,
        "max_steps": steps,
        "accumulate_grad_batches": accumulate,
        "val_check_interval": 4,
        "check_val_every_n_epoch": None,
        "num_sanity_val_steps": 0,
        "callbacks": callbacks,
        "plugins": [AtomicCheckpointIO()],
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "use_distributed_sampler": False,
    }
    return lightning.Trainer(**usual | options)


def fit(
    folder: Path,
    run: Path,
    *callbacks: Callback,
    batches: int = 12,
    resume: Path | None = None,
    accumulate: int = 1,
    mode: Literal["min", "max"] = "min",
    keep: int = 3,
    loss: CrossEntropy | None = None,
    **options: Any,
) -> lightning.Trainer:
    """Trains with dropout and saves in ``run``/checkpoints; ``options`` are the trainer's."""
    checkpoints = run / "checkpoints"
    data = small_data(folder)
    saving = [
        ExactResume(seed=1),
        FinalValidation(),
        BestCheckpoint(dirpath=checkpoints, monitor="val/loss", mode=mode),
        LastCheckpoint(dirpath=checkpoints, keep=keep),
        Preemption(path=checkpoints / "last.ckpt"),
        SaveOrigin({**CONFIG, "run_dir": str(run)}, (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)),
    ]
    trainer = small_trainer(batches // accumulate, [*callbacks, *saving], accumulate=accumulate, **options)
    trainer.fit(small_module(data, loss=loss or CrossEntropy()), datamodule=data, ckpt_path=resume)
    return trainer


def best_of(trainer: lightning.Trainer) -> BestCheckpoint:
    """The callback."""
    return next(c for c in trainer.checkpoint_callbacks if isinstance(c, BestCheckpoint))


def files(run: Path) -> list[str]:
    """The names of all files among the checkpoints."""
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def assert_same_bits(found: Path, expected: Path, *parts: str) -> None:
    """Compares the weights, and other parts of two checkpoints that hold tensors."""
    ours, theirs = load_checkpoint(found), load_checkpoint(expected)
    for part in ("state_dict", *parts):
        assert ours[part].keys() == theirs[part].keys()
        for name, tensor in ours[part].items():
            assert torch.equal(tensor, theirs[part][name]), f"{part}.{name}"


def model_weights(module: Any) -> dict[str, Tensor]:
    """A copy of the weights that the model has now."""
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}
