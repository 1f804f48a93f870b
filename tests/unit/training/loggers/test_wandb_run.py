"""The W&B run of a folder."""

import random
from pathlib import Path

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.training.loggers.wandb_run import RUN_ID, WandbRun, closing_run, forget_id, kept_id, starts_run


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


@pytest.mark.parametrize(
    ("variables", "offline", "expected"),
    [
        ({"WANDB_MODE": "disabled"}, True, False),
        ({"WANDB_MODE": "disabled"}, False, False),
        ({"WANDB_DISABLED": "true"}, True, False),
        ({"WANDB_DISABLED": "1", "WANDB_MODE": "online"}, False, False),
        ({"WANDB_DISABLED": "false"}, True, True),
        ({"WANDB_DISABLED": ""}, True, True),
        ({"WANDB_MODE": "offline"}, False, True),
        ({"WANDB_MODE": "dryrun"}, False, True),
        ({"WANDB_MODE": "online"}, True, True),
        ({}, True, True),
        ({"WANDB_API_KEY": "0123456789" * 4}, False, True),
        ({}, False, r"W&B has no login; type: wandb login"),
        ({"WANDB_MODE": "online"}, False, r"W&B has no login"),
        ({"WANDB_MODE": "none"}, True, r"WANDB_MODE is 'none', expected online, offline or disabled"),
    ],
)
def test_the_login_is_checked_before_a_run_begins(
    variables: dict[str, str], offline: bool, expected: bool | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_MODE", "WANDB_DISABLED", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"NETRC": str(tmp_path / "netrc"), "HOME": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    import wandb

    wandb.teardown()  # settings that were read before
    if isinstance(expected, bool):
        assert starts_run(offline=offline) is expected
    else:
        with pytest.raises(ConfigError, match=expected):
            starts_run(offline=offline)
    wandb.teardown()
