"""W&B logging: a resumed run continues its W&B run."""

import inspect
import logging
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.utilities import rank_zero_only

from softsearch.errors import ConfigError
from softsearch.training.lightning_internals import wandb_arguments

RUN_ID = "wandb_id"  # the file in a run's folder
_MODES = {
    "online": True,
    "run": True,
    "shared": True,
    "offline": False,
    "dryrun": False,
}  # mode -> whether it needs an account
_TRUE = ("1", "true", "yes", "on")
log = logging.getLogger(__name__)


class WandbRun(WandbLogger):
    """Lightning's logger with an id kept in the run's folder.

    Offline, every start creates a new folder in ``wandb``; ``wandb sync`` joins those with the same id.

    Args:
        entity: the user or team; by default the account's own.
        group: a group of runs, such as a sweep; by default ``WANDB_RUN_GROUP``.
        job_type: the kind of run within the group.
        offline: write to ``run_dir/wandb``, without an account or a network.
        log_model: upload checkpoints.

    Raises:
        ConfigError: checkpoints are to be uploaded offline.
    """

    def __init__(
        self,
        *,
        run_dir: str,
        project: str,
        entity: str | None = None,
        name: str | None = None,
        group: str | None = None,
        job_type: str | None = None,
        tags: list[str] | None = None,
        offline: bool = True,
        log_model: Literal["all"] | bool = False,
    ) -> None:
        if offline and log_model:
            raise ConfigError(
                f"logger.wandb.log_model={log_model} uploads checkpoints, but logger.wandb.offline=true; "
                "set logger.wandb.offline=false, or logger.wandb.log_model=false"
            )
        super().__init__(
            name=name,
            save_dir=run_dir,
            id=kept_id(Path(run_dir)) if getattr(rank_zero_only, "rank", 0) == 0 else None,
            project=project,
            offline=offline,
            log_model=log_model,
            entity=entity,
            group=group,
            job_type=job_type,
            tags=tags,
        )
        wandb_arguments(self).pop("anonymous", None)  # wandb warns about it, but Lightning always passes it
        if offline:  # otherwise wandb reports its errors to its developers
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")


def starts_run(*, offline: bool) -> bool:
    """Tells whether W&B begins a run.

    It does not with ``WANDB_MODE=disabled``, nor with ``WANDB_DISABLED=true``, which other programs for training read;
    ``WANDB_MODE=offline`` keeps it offline.

    Raises:
        ConfigError: the run needs an account, but nobody is logged in; or there is no such mode.
    """
    mode = os.environ.get("WANDB_MODE") or ("offline" if offline else "online")
    if mode == "disabled" or os.environ.get("WANDB_DISABLED", "").lower() in _TRUE:
        return False
    if mode not in _MODES:
        raise ConfigError(f"WANDB_MODE is {mode!r}, expected online, offline or disabled; change or unset it")
    if offline and _MODES[mode]:
        log.warning("WANDB_MODE=%s has no effect: logger.wandb.offline=false sends the run to your account", mode)
    elif _MODES[mode] and not _is_logged_in():
        raise ConfigError(
            "logger.wandb.offline=false sends the run to your account, but W&B has no login; type: wandb login, or set "
            "WANDB_API_KEY, or logger.wandb.offline=true"
        )
    return True


def _is_logged_in() -> bool:
    import wandb

    if "prompt" not in inspect.signature(wandb.login).parameters:  # before 0.30
        return bool(wandb.api.api_key)
    settings = wandb.setup().settings
    # Otherwise login asks the server for the user's name, which takes minutes without a network.
    silent, settings.silent = settings.silent, True
    try:
        return bool(wandb.login(prompt=False, verify=False))
    finally:
        settings.silent = silent


def kept_id(run_dir: Path) -> str:
    """Returns the W&B id in the folder, which is created at the first call."""
    path = run_dir / RUN_ID
    if path.is_file() and (run_id := path.read_text().strip()):
        return run_id
    run_id = secrets.token_hex(6)  # independent of the run's seed
    run_dir.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{run_id}\n")
    return run_id


@rank_zero_only
def forget_id(run_dir: Path) -> None:
    """Forgets the id, so that the next start in the folder is a new W&B run."""
    (run_dir / RUN_ID).unlink(missing_ok=True)


@contextmanager
def closing_run() -> Iterator[None]:
    """Closes an open W&B run at the end, even after an error; otherwise the next job of a sweep would continue it."""
    code: int | None = 1
    try:
        yield
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
        raise
    finally:
        finish_run(code)


def finish_run(code: int | None = 0) -> None:
    """Closes an open W&B run, which prints its summary; ``code`` is the exit code to record."""
    wandb = sys.modules.get("wandb")  # a run without W&B does not import it
    if wandb is not None and wandb.run is not None:
        wandb.finish(exit_code=code)
