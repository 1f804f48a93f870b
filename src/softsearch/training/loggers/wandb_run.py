"""The W&B run of a run's folder: the same one whenever training goes on in that folder."""

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

RUN_ID = "wandb_id"  # the file in a run's folder


class WandbRun(WandbLogger):
    """Lightning's logger with an id that is kept in the run's folder, so that a resumed run continues on W&B too.

    Offline, each start leaves a folder of its own in ``wandb``; ``wandb sync`` joins those with the same id.

    Args:
        run_dir: the run's folder.
        project: on W&B.
        entity: the user or team; by default the account's own.
        name: of the run.
        group: what the run is shown together with, such as a sweep; by default ``WANDB_RUN_GROUP``.
        job_type: the kind of run within the group.
        tags: words to find it by.
        offline: keep everything in ``run_dir/wandb``; needs neither an account nor a network.
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
        self._wandb_init.pop("anonymous", None)  # wandb warns of it, and Lightning always passes it
        if offline:  # wandb reports its own faults to its makers unless told not to
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")


def kept_id(run_dir: Path) -> str:
    """The id in the folder, made at the first call."""
    path = run_dir / RUN_ID
    if path.is_file() and (kept := path.read_text().strip()):
        return kept
    made = secrets.token_hex(6)  # not of the generators that the run's seed sets: every run would have the same id
    run_dir.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{RUN_ID}.tmp")
    temporary.write_text(f"{made}\n")
    os.replace(temporary, path)
    return made


@rank_zero_only
def forget_id(run_dir: Path) -> None:
    """The next start in the folder is another run."""
    (run_dir / RUN_ID).unlink(missing_ok=True)


@contextmanager
def closing_run() -> Iterator[None]:
    """Ends a W&B run that is open in the end, whatever happened: the next job of a sweep would go on with it."""
    code: int | None = 1
    try:
        yield
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
        raise
    finally:
        wandb = sys.modules.get("wandb")  # a run without W&B does not import it
        if wandb is not None and wandb.run is not None:
            wandb.finish(exit_code=code)
