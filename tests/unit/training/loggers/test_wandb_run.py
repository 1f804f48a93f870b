"""The W&B run of a folder."""

import random
from pathlib import Path

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.training.loggers.wandb_run import RUN_ID, WandbRun, closing_run, forget_id, kept_id


def test_a_folder_keeps_its_id(tmp_path: Path) -> None:
    first = kept_id(tmp_path / "new" / "run")
    assert kept_id(tmp_path / "new" / "run") == first
    moved = (tmp_path / "new").rename(tmp_path / "moved")
    assert kept_id(moved / "run") == first
    assert [path.name for path in (moved / "run").iterdir()] == [RUN_ID]


def test_seeds_do_not_make_ids_equal(tmp_path: Path) -> None:
    found = set()
    for number in range(3):
        random.seed(1)
        torch.manual_seed(1)
        found.add(kept_id(tmp_path / str(number)))
    assert len(found) == 3


def test_a_new_run_in_an_old_folder_gets_another_id(tmp_path: Path) -> None:
    first = kept_id(tmp_path)
    forget_id(tmp_path)
    assert kept_id(tmp_path) != first
    forget_id(tmp_path / "nothing here")


def test_an_empty_file_is_no_id(tmp_path: Path) -> None:
    (tmp_path / RUN_ID).write_text("\n")
    assert kept_id(tmp_path).isalnum()


def test_the_logger_uses_it(tmp_path: Path) -> None:
    assert WandbRun(run_dir=str(tmp_path), project="p").version == kept_id(tmp_path)


@pytest.mark.parametrize("log_model", [True, "all"])
def test_checkpoints_cannot_be_uploaded_offline(tmp_path: Path, log_model: bool) -> None:
    with pytest.raises(ConfigError, match=r"log_model=.* set logger.wandb.offline=false"):
        WandbRun(run_dir=str(tmp_path), project="p", offline=True, log_model=log_model)


def test_errors_pass_where_no_run_is_open() -> None:
    with pytest.raises(KeyError), closing_run():
        raise KeyError
    with pytest.raises(SystemExit), closing_run():
        raise SystemExit("text")
