"""Resuming: the checkpoint, what has changed since it was saved, and checkpoints that do not fit."""

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn

from softsearch.app.config.options import Train
from softsearch.app.config.validation import flatten
from softsearch.app.results import METRICS
from softsearch.data.preparation.cache_folder import lock
from softsearch.errors import CheckpointError, ConfigError, SoftsearchError, summarize
from softsearch.training.checkpoints.checkpoint_contents import to_contents
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from softsearch.training.checkpoints.folder import load_resumable, newest_resumable
from softsearch.training.lightning_internals import RESTORING_FILE

log = logging.getLogger(__name__)
# What does not change training.
_PATHS = ("resume", "init", "overwrite", "test", "run_dir", "cache_dir", "callbacks", "logger", "metric")
_RESULTS = (
    "config.yaml metrics.csv metrics.json curves.png *.hypotheses.txt samples/step-*.txt tensorboard/events.* bundle/*"
)
_CHECKPOINTS = "checkpoints/*.ckpt"


def check_folder(options: Train) -> None:
    """Refuses a folder that has another run, unless this run resumes or overwrites it.

    Raises:
        ConfigError: there is such a run, or the options to continue and to replace it contradict each other.
    """
    folder = options.run_dir
    if options.overwrite and options.resume is not None:
        raise ConfigError(
            f"overwrite=true removes the run that resume={options.resume} continues; leave one of them out"
        )
    needed = [path for path in (options.resume, options.init.ckpt) if isinstance(path, Path)]
    is_inside = any(path.resolve().is_relative_to(folder.resolve()) for path in needed)
    if options.overwrite and is_inside:
        raise ConfigError(
            f"init={options.init.ckpt} is in the run that overwrite=true removes; set another hydra.run.dir"
        )
    continues = options.resume == "auto" or (options.resume is not None and is_inside)
    left = [path for pattern in (_CHECKPOINTS, METRICS) for path in sorted(folder.glob(pattern))]
    if left and not options.overwrite and not continues:
        raise ConfigError(
            f"{folder} has a run already ({left[0].relative_to(folder)}); set hydra.run.dir=FOLDER to a new folder, "
            "resume=auto to continue that run, or overwrite=true to remove it"
        )


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keeps other trainings out of a run's folder until this one ends; without locks nothing does.

    Raises:
        ConfigError: another training writes there.
    """

    def refuse() -> NoReturn:
        raise ConfigError(
            f"another training writes to {folder}; wait until it ends, or set hydra.run.dir=FOLDER to a new folder"
        )

    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder / ".lock", busy=refuse, missing=log.debug):
        yield


def remove_run(folder: Path) -> None:
    """Removes what an earlier run has written, and nothing else."""
    for path in (
        path for pattern in (_CHECKPOINTS, *_RESULTS.split()) for path in folder.glob(pattern) if path.is_file()
    ):
        path.unlink()


def checkpoint_to_resume(resume: Path | Literal["auto"] | None, run_dir: Path, *, is_counted: bool) -> Path | None:
    """The checkpoint that ``resume`` asks for; None for a model that is counted, which has no training to continue.

    Raises:
        ConfigError: ``resume`` names a checkpoint, but the model is counted.
        CheckpointError: it does not exist, or none can be read.
    """
    if is_counted and isinstance(resume, Path):
        raise ConfigError(
            f"resume={resume} continues a training, but model.decoder is counted from the data, all of it in every "
            "run; expected resume=null or resume=auto, change it"
        )
    if resume is None or is_counted:
        return None
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
def restoring(path: Path | None) -> Iterator[None]:
    """Around ``trainer.fit``: blames the file for what Lightning raises while it restores the state of training.

    Raises:
        CheckpointError: the optimizer, loops, callbacks or data of the checkpoint ``path`` are not as they were saved.
    """
    try:
        yield
    except Exception as error:
        calls = [call.name for call in traceback.extract_tb(error.__traceback__) if call.filename == RESTORING_FILE]
        if path is None or isinstance(error, SoftsearchError) or not any("restore" in name for name in calls):
            raise
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"training cannot continue from {path} ({summarize(error)}); its state of training is "
        "damaged or of another run: take another file, or start a new run with resume=null"
    )


def _leaves(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in flatten(config) if not isinstance(value, Mapping)}
