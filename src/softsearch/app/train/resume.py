"""Resuming: the checkpoint, what has changed since it was saved, and checkpoints that do not fit."""

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from lightning.pytorch.strategies import FSDPStrategy

from softsearch.app.config.options import Train
from softsearch.app.config.validation import flatten
from softsearch.app.train.parts import TrainParts
from softsearch.app.train.start import Fresh
from softsearch.data.existing_tokenizers import TokenizerMaker
from softsearch.errors import CheckpointError, SoftsearchError, summarize
from softsearch.training.checkpoints.checkpoint_contents import to_contents
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.checkpoints.folder import load_resumable, newest_resumable
from softsearch.training.checkpoints.training_state import state_mismatch
from softsearch.training.lightning_internals import RESTORING_FILE
from softsearch.training.module import TranslationModule

log = logging.getLogger(__name__)
# What does not change training.
_PATHS = ("resume", "init", "overwrite", "test", "run_dir", "cache_dir", "callbacks", "logger", "metric")


class Resumed(Fresh):
    """A run that continues from a checkpoint, whose weights come with the state of its training."""

    checkpoint: Path

    def __init__(self, options: Train, checkpoint: Path) -> None:
        super().__init__(options)
        self.checkpoint = checkpoint

    def tokenizers(self) -> TokenizerMaker:
        """Those of the checkpoint, if the run has begun with those of ``init``."""
        if self.options.init.ckpt is None:
            return super().tokenizers()
        from softsearch.app.train.init import tokenizer_maker

        return tokenizer_maker(self.options, resumed=self.checkpoint)

    def _fill(self, *_: object) -> None:
        """Leaves the weights as they are drawn, because the trainer restores them."""

    @contextmanager
    def fitting(self, module: TranslationModule, parts: TrainParts) -> Iterator[None]:
        """Compares the checkpoint with this run, and blames the file for what Lightning raises while it restores it."""
        sharded = isinstance(parts.trainer.strategy, FSDPStrategy)
        check_unchanged(self.checkpoint, parts.record, partial(state_mismatch, module=module, sharded=sharded))
        with restoring(self.checkpoint):
            yield

    def clear(self) -> None:
        """Leaves the folder as it is."""


def checkpoint_to_resume(resume: Path | Literal["auto"], run_dir: Path) -> Path | None:
    """The checkpoint that ``resume`` asks for; None if the folder of ``auto`` has none yet.

    Raises:
        CheckpointError: it does not exist, or none can be read.
    """
    if isinstance(resume, str):
        return newest_resumable(run_dir / "checkpoints")
    if resume.is_dir():
        found = next(filter(None, (newest_resumable(folder) for folder in (resume / "checkpoints", resume))), None)
        if found is None:
            raise CheckpointError(f"resume={resume} is a folder without checkpoints; name the folder of a run")
        return found
    if not resume.is_file():
        raise CheckpointError(f"resume={resume}: no such file; give a run's folder, a checkpoint's path, auto or null")
    load_resumable(resume)
    return resume


def check_unchanged(path: Path, config: Mapping[str, Any], mismatch: Callable[[dict[str, Any]], str | None]) -> None:
    """Logs the options of the resolved ``config`` that differ from the checkpoint's.

    Args:
        path: of the checkpoint.
        config: of this run.
        mismatch: describes what of a checkpoint does not fit this run, as :func:`state_mismatch` does.

    Raises:
        CheckpointError: the checkpoint does not fit; it lists the options that differ.
    """
    log.info("continuing from %s", path)
    checkpoint = load_checkpoint(path)
    before, now = _leaves(to_contents(path, checkpoint).config), _leaves(config)
    changed = [
        f"{key} {before.get(key, 'nothing')} -> {now.get(key, 'nothing')}"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) and key.split(".")[0] not in _PATHS
    ]
    try:
        different = mismatch(checkpoint)
    except SoftsearchError:
        raise
    except Exception as error:  # a file may hold anything
        raise _damaged(path, error) from error
    if different:
        raise CheckpointError(
            f"{path} does not fit this run: {different}; "
            f"changed since it was saved: {', '.join(changed) or 'nothing'}; resume with the run's own options, or "
            "start a new run with resume=null"
        )
    if changed:
        log.info("changed since the checkpoint: %s", ", ".join(changed))


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Around ``trainer.fit``: blames the file for what Lightning raises while it restores the state of training.

    Raises:
        CheckpointError: the optimizer, loops, callbacks or data of the checkpoint ``path`` are not as they were saved.
    """
    try:
        yield
    except Exception as error:
        calls = [call.name for call in traceback.extract_tb(error.__traceback__) if call.filename == RESTORING_FILE]
        if isinstance(error, SoftsearchError) or not any("restore" in name for name in calls):
            raise
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"training cannot continue from {path} ({summarize(error)}); its state of training is "
        "damaged or of another run: take another file, or start a new run with resume=null"
    )


def _leaves(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in flatten(config) if not isinstance(value, Mapping)}
