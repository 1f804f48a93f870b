"""Checkpoints are whole or absent, and reading one executes nothing."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from softsearch.errors import CheckpointError
from softsearch.training.checkpoint_io import AtomicCheckpointIO, load_checkpoint

CHECKPOINT = {"state_dict": {"w": torch.arange(5.0)}, "epoch": 3, "config": {"lr": 0.1, "names": ["a", "b"]}}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoints" / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint(CHECKPOINT, path)
    return path


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.canary,)


def test_what_is_saved_is_read(saved: Path) -> None:
    found = AtomicCheckpointIO().load_checkpoint(saved)
    assert torch.equal(found["state_dict"].pop("w"), torch.arange(5.0))
    assert found == {"state_dict": {}, "epoch": 3, "config": {"lr": 0.1, "names": ["a", "b"]}}
    assert list(saved.parent.iterdir()) == [saved]


def test_a_failed_save_leaves_the_old_checkpoint(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        AtomicCheckpointIO().save_checkpoint({"w": torch.zeros(99), "bad": lambda: None}, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_an_interrupted_save_leaves_the_old_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("softsearch.training.checkpoint_io.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        AtomicCheckpointIO().save_checkpoint({"w": torch.zeros(99)}, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_the_new_file_is_on_the_disk_before_it_takes_the_name(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    module = "softsearch.training.checkpoint_io.os"
    for name in ("fsync", "replace"):
        original = getattr(__import__("os"), name)

        def traced(*args: Any, name: str = name, original: Callable[..., Any] = original) -> Any:
            events.append(name)
            return original(*args)

        monkeypatch.setattr(f"{module}.{name}", traced)
    AtomicCheckpointIO().save_checkpoint(CHECKPOINT, saved)
    assert events == ["fsync", "replace"]


def test_the_temporary_file_lies_beside_its_target(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename is atomic within one file system only, and TMPDIR may be another."""
    sources: list[Path] = []
    monkeypatch.setattr("softsearch.training.checkpoint_io.os.replace", lambda source, _: sources.append(Path(source)))
    AtomicCheckpointIO().save_checkpoint(CHECKPOINT, saved)
    assert sources[0].parent == saved.parent


def test_unknown_storage_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="storage_options"):
        AtomicCheckpointIO().save_checkpoint(CHECKPOINT, tmp_path / "x.ckpt", storage_options={"mode": "fast"})


def truncate(data: bytes) -> bytes:
    return data[: len(data) // 2]


def lose_the_end(data: bytes) -> bytes:
    return data[:-1]


def empty(_: bytes) -> bytes:
    return b""


def overwrite_the_start(data: bytes) -> bytes:
    return b"\0" * 64 + data[64:]


def garble_the_pickle(data: bytes) -> bytes:
    start = data.index(b"\x80\x02}")
    return data[:start] + b"\xff\xff\xff" + data[start + 3 :]


def text(_: bytes) -> bytes:
    return b"step,loss\n1,2.0\n"


@pytest.mark.parametrize(
    "damage", [truncate, lose_the_end, empty, overwrite_the_start, garble_the_pickle, text], ids=lambda f: f.__name__
)
def test_a_damaged_file_is_an_error_that_names_it(saved: Path, damage: Callable[[bytes], bytes]) -> None:
    saved.write_bytes(damage(saved.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"{saved} cannot be read .* truncated, damaged or of another kind"):
        AtomicCheckpointIO().load_checkpoint(saved)


@pytest.mark.parametrize("weights_only", [None, True, False])
def test_a_payload_is_refused_and_never_runs(tmp_path: Path, weights_only: bool | None) -> None:
    path, canary = tmp_path / "evil.ckpt", tmp_path / "canary"
    torch.save({"state_dict": {}, "extra": Payload(canary)}, path)
    with pytest.raises(CheckpointError, match=r"evil\.ckpt cannot be read"):
        AtomicCheckpointIO().load_checkpoint(path, weights_only=weights_only)
    assert not canary.exists()


def test_a_plain_pickle_is_refused_and_never_runs(tmp_path: Path) -> None:
    path, canary = tmp_path / "evil.ckpt", tmp_path / "canary"
    path.write_bytes(pickle.dumps({"extra": Payload(canary)}))
    with pytest.raises(CheckpointError, match=r"evil\.ckpt cannot be read"):
        load_checkpoint(path)
    assert not canary.exists()


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    torch.save(torch.zeros(3), tmp_path / "tensor.ckpt")
    with pytest.raises(CheckpointError, match=r"tensor.ckpt holds a Tensor"):
        load_checkpoint(tmp_path / "tensor.ckpt")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"none.ckpt does not exist"):
        load_checkpoint(tmp_path / "none.ckpt")
