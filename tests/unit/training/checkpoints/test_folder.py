"""The newest checkpoint that can be read is found, whatever happened to the others."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO, load_checkpoint
from softsearch.training.checkpoints.folder import (
    checkpoint_file,
    keep_steps,
    load_resumable,
    newest_resumable,
    set_damaged_aside,
    step_checkpoints,
)
from tests.support.written import by_hand, save_unchecked


def save(folder: Path, name: str, step: int) -> Path:
    state = by_hand({"w": torch.full((50,), float(step))}, step, optimizer_states=[{}])
    AtomicCheckpointIO().save_checkpoint(state, folder / name)
    return folder / name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of 1,200 steps, as its callbacks leave it."""
    save(tmp_path, "best.ckpt", 900)
    for step in (800, 1000, 1200):
        save(tmp_path, "last.ckpt", step)
        keep_steps(tmp_path, [800, 1000, 1200][: [800, 1000, 1200].index(step) + 1])
    return tmp_path


def truncate(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip_a_bit(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


def empty(_: bytes) -> bytes:
    return b""


Damage = Callable[[bytes], bytes]


def spoil(path: Path, damage: Damage) -> None:
    """Writes into the file, as a failing disk does: its other name has the same content."""
    path.write_bytes(damage(path.read_bytes()))


def test_last_is_the_newest(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert newest_resumable(folder) == folder / "last.ckpt"
    assert not caplog.records


@pytest.mark.parametrize("inside", ["", "checkpoints"])
def test_a_folder_stands_for_its_best_checkpoint(inside: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is a folder without checkpoints/best\.ckpt and last\.ckpt; expected"):
        checkpoint_file(tmp_path)
    (tmp_path / inside).mkdir(exist_ok=True)
    for name in ("last.ckpt", "best.ckpt"):
        (tmp_path / inside / name).touch()
        assert checkpoint_file(tmp_path) == tmp_path / inside / name
    assert checkpoint_file(tmp_path / "other.ckpt") == tmp_path / "other.ckpt"


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert newest_resumable(tmp_path) is None
    assert newest_resumable(tmp_path / "missing") is None


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, empty], ids=lambda f: f.__name__)
def test_a_damaged_last_falls_back_with_a_warning(
    folder: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(folder / "last.ckpt", damage)
    found = newest_resumable(folder)
    assert found == folder / "step-1000.ckpt"
    assert load_checkpoint(found)["global_step"] == 1000
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "last.ckpt cannot be read" in caplog.text
    assert "falling back to" in caplog.text
    assert "step-1000.ckpt of step 1000" in caplog.text


def test_a_missing_last_falls_back(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "last.ckpt").unlink()
    assert newest_resumable(folder) == folder / "step-1200.ckpt"
    assert "last.ckpt does not exist" in caplog.text


@pytest.mark.parametrize("names", [("last.ckpt",), ("best.ckpt",), ("best.ckpt", "last.ckpt"), ()])
def test_damaged_ones_are_set_aside(folder: Path, names: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise a run that has ended would keep them, and all commands would read them."""
    before = {name: (folder / name).read_bytes() for name in ("best.ckpt", "last.ckpt")}
    for name in names:
        spoil(folder / name, truncate)
    newest = newest_resumable(folder)
    assert newest is not None
    caplog.clear()
    set_damaged_aside(folder, newest)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * len(names)
    for name, content in before.items():
        damaged = folder / f"damaged-{name}"
        assert damaged.is_file() == (name in names)
        if name not in names:
            assert (folder / name).read_bytes() == content
    assert (folder / "best.ckpt").is_file() == ("best.ckpt" not in names)
    assert load_checkpoint(folder / "last.ckpt")["global_step"] == (1000 if "last.ckpt" in names else 1200)
    set_damaged_aside(folder / "elsewhere", newest)
    assert not (folder / "elsewhere").exists()


def test_the_best_may_be_the_newest(folder: Path) -> None:
    for name in ("last.ckpt", "step-1000.ckpt"):
        spoil(folder / name, empty)
    assert newest_resumable(folder) == folder / "best.ckpt"


def test_when_none_is_valid_the_error_names_them_all(folder: Path) -> None:
    for name in ("last.ckpt", "step-1000.ckpt", "step-800.ckpt", "best.ckpt"):
        spoil(folder / name, flip_a_bit)
    with pytest.raises(CheckpointError, match=r"resume=auto: no checkpoint in .* can be read") as refused:
        newest_resumable(folder)
    for name in ("last.ckpt", "step-1200.ckpt", "step-1000.ckpt", "step-800.ckpt", "best.ckpt"):
        assert f"{name} cannot be read" in str(refused.value)


def test_an_average_is_nothing_to_resume_from(folder: Path) -> None:
    AtomicCheckpointIO().save_checkpoint(by_hand({"w": torch.zeros(1)}, 9), folder / "average.ckpt")
    with pytest.raises(CheckpointError, match=r"average\.ckpt has no training state"):
        load_resumable(folder / "average.ckpt")
    assert newest_resumable(folder) == folder / "last.ckpt"


def test_steps_are_in_the_order_of_their_numbers(folder: Path) -> None:
    (folder / "step-x.ckpt").touch()
    (folder / "step-9.ckpt.partial").touch()
    assert list(step_checkpoints(folder)) == [800, 1000, 1200]


def test_only_the_steps_asked_for_stay(folder: Path) -> None:
    save(folder, "last.ckpt", 1400)
    keep_steps(folder, [1200, 1400])
    assert list(step_checkpoints(folder)) == [1200, 1400]
    assert (folder / "last.ckpt").samefile(folder / "step-1400.ckpt")
    assert load_checkpoint(folder / "step-1200.ckpt")["global_step"] == 1200
    keep_steps(folder, [1200, 1400])  # the same step again, as a resumed run saves it
    assert list(step_checkpoints(folder)) == [1200, 1400]


def test_without_hard_links_the_file_is_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")  # what a FAT file system says

    monkeypatch.setattr(os, "link", refuse)
    save(folder, "last.ckpt", 1400)
    keep_steps(folder, [1200, 1400])
    assert load_checkpoint(folder / "step-1400.ckpt")["global_step"] == 1400


@pytest.mark.parametrize("states", [None, [], {}, "", 0])
def test_no_optimizer_is_nothing_to_resume_from(folder: Path, states: object) -> None:
    """Lightning would go on without a word, from zeros."""
    save_unchecked(by_hand({"w": torch.zeros(1)}, 9, optimizer_states=states), folder / "x.ckpt")
    with pytest.raises(CheckpointError, match=r"x\.ckpt has no training state"):
        load_resumable(folder / "x.ckpt")
