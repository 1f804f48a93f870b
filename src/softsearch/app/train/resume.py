"""Resuming: finds the checkpoint, logs what has changed since, and refuses checkpoints that do not fit."""

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from lightning.pytorch.strategies import FSDPStrategy

from softsearch.app.config.options import Train
from softsearch.app.config.validation import flatten
from softsearch.app.train.parts import TrainParts
from softsearch.app.train.start import Fresh, NewModel, Start
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.existing_tokenizers import TokenizerMaker
from softsearch.errors import CheckpointError, SoftsearchError, summarize
from softsearch.training.checkpoints.checkpoint_contents import to_contents
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.checkpoints.folder import load_resumable, newest_resumable, set_damaged_aside
from softsearch.training.checkpoints.training_state import state_mismatch
from softsearch.training.lightning_internals import RESTORING_FILE
from softsearch.training.module import TranslationModule

log = logging.getLogger(__name__)
# Options that do not affect training.
_PATHS = (
    *("resume", "init", "overwrite", "test", "run_dir", "cache_dir", "callbacks", "logger", "metric"),
    "trainer.default_root_dir",
)
_SHOWN = 6  # changed options of one part of the config in an error


class Resumed(Start):
    """A run that continues from a checkpoint with its training state."""

    def __init__(self, options: Train, checkpoint: Path) -> None:
        super().__init__(options)
        self.checkpoint = checkpoint

    def tokenizers(self) -> TokenizerMaker:
        """Returns those of the checkpoint, if the run began with those of ``init``."""
        if self.options.init.ckpt is None:
            return Fresh(self.options).tokenizers()
        from softsearch.app.train.init import tokenizer_maker

        return tokenizer_maker(self.options, resumed=self.checkpoint)

    def fill(self, new: NewModel) -> None:
        """Does nothing: the trainer restores the weights."""

    def fit(self, parts: TrainParts, module: TranslationModule, data: ParallelDataModule) -> None:
        """Compares the checkpoint with this run, and continues; what cannot be restored is an error of the file."""
        sharded = isinstance(parts.trainer.strategy, FSDPStrategy)
        check_unchanged(self.checkpoint, parts.record, partial(state_mismatch, module=module, sharded=sharded))
        with restoring(self.checkpoint):
            parts.trainer.fit(module, datamodule=data, ckpt_path=self.checkpoint)

    def clear(self) -> None:
        """Keeps the folder, except for damaged checkpoints in it."""
        set_damaged_aside(self.options.run_dir / "checkpoints", self.checkpoint)


def checkpoint_to_resume(resume: Path | Literal["auto"], run_dir: Path) -> Path | None:
    """Returns the checkpoint for ``resume``; None for ``auto`` in a folder without checkpoints.

    Raises:
        CheckpointError: it does not exist, or none can be read.
    """
    if isinstance(resume, str):
        return newest_resumable(run_dir / "checkpoints")
    if resume.is_dir():
        found = next(filter(None, (newest_resumable(folder) for folder in (resume / "checkpoints", resume))), None)
        if found is None:
            raise CheckpointError(f"resume={resume} is a folder without checkpoints; set resume to the folder of a run")
        return found
    if not resume.is_file():
        raise CheckpointError(
            f"resume={resume}: no such file; set resume to the folder of a run, the path of a checkpoint, auto or null"
        )
    load_resumable(resume)
    return resume


def check_unchanged(path: Path, config: Mapping[str, Any], mismatch: Callable[[dict[str, Any]], str | None]) -> None:
    """Logs the options of the resolved ``config`` that differ from the checkpoint's.

    Args:
        path: the checkpoint.
        config: the config of this run.
        mismatch: describes what does not fit in a checkpoint, like ``state_mismatch``.

    Raises:
        CheckpointError: the checkpoint does not fit; the message lists the options that differ.
    """
    log.info("continuing from %s", path)
    checkpoint = load_checkpoint(path)
    before, now = _leaves(to_contents(path, checkpoint).config), _leaves(config)
    changed = [
        f"{key} {before.get(key, 'nothing')} -> {now.get(key, 'nothing')}"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) and not key.startswith(_PATHS)
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
            f"changed since it was saved: {_in_short(changed)}; resume with the run's own options"
            f"{_other_name(before, now)}, or start a new run with resume=null"
        )
    if changed:
        log.info("changed since the checkpoint: %s", ", ".join(changed))


def _in_short(changed: Iterable[str]) -> str:
    """Lists changed options, of a part of the config with many of them their number alone."""
    parts = [(part, [*texts]) for part, texts in groupby(changed, key=lambda text: text.split(" ")[0].split(".")[0])]
    shown = [f"{len(texts)} options of {part}" if len(texts) > _SHOWN else ", ".join(texts) for part, texts in parts]
    return ", ".join(shown) or "nothing"


def _other_name(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The choice of model to type, if this run's name is another one."""
    own = before.get("name")
    return f", such as model={own} in place of {now.get('name')}" if own not in (None, now.get("name")) else ""


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Context of ``trainer.fit`` that reports errors while Lightning restores training as errors of the file.

    Raises:
        CheckpointError: the optimizer, loops, callbacks or data in the checkpoint ``path`` cannot be restored.
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
        f"training cannot continue from {path} ({summarize(error)}); its training state is "
        "damaged or belongs to another run: use another file, or start a new run with resume=null"
    )


def _leaves(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in flatten(config) if not isinstance(value, Mapping)}
