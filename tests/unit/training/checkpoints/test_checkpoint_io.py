"""Checkpoints are whole or absent, and reading one executes nothing."""

import io
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO, check_hash, load_checkpoint
from tests.support.written import Payload, hashed, save_unchecked

CHECKPOINT = {"state_dict": {"w": torch.arange(5.0)}, "epoch": 3, "config": {"lr": 0.1, "names": ["a", "b"]}}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoints" / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint(CHECKPOINT, path)
    return path


def test_what_is_saved_is_read(saved: Path) -> None:
    found = AtomicCheckpointIO().load_checkpoint(saved)
    assert torch.equal(found["state_dict"].pop("w"), torch.arange(5.0))
    assert found == {"state_dict": {}, "epoch": 3, "config": {"lr": 0.1, "names": ["a", "b"]}}
    assert list(saved.parent.iterdir()) == [saved]


def test_an_interrupted_save_leaves_the_old_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("softsearch.training.checkpoints.checkpoint_io.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        AtomicCheckpointIO().save_checkpoint({"w": torch.zeros(99)}, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_the_new_file_is_on_the_disk_before_it_takes_the_name(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    module = "softsearch.training.checkpoints.checkpoint_io.os"
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
    monkeypatch.setattr(
        "softsearch.training.checkpoints.checkpoint_io.os.replace", lambda source, _: sources.append(Path(source))
    )
    AtomicCheckpointIO().save_checkpoint(CHECKPOINT, saved)
    assert sources[0].parent == saved.parent


def test_unknown_storage_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="storage_options"):
        AtomicCheckpointIO().save_checkpoint(CHECKPOINT, tmp_path / "x.ckpt", storage_options={"mode": "fast"})


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "without its end": lambda data: data[:-1],
    "empty": lambda _: b"",
    "another start": lambda data: b"\0" * 64 + data[64:],
    "text": lambda _: b"step,loss\n1,2.0\n",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_an_error_that_names_it(saved: Path, name: str) -> None:
    saved.write_bytes(DAMAGES[name](saved.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"{saved} cannot be read .* truncated, damaged or another kind of file"):
        AtomicCheckpointIO().load_checkpoint(saved)


@pytest.mark.parametrize("weights_only", [None, True, False])
def test_a_payload_is_refused_and_never_runs(tmp_path: Path, weights_only: bool | None) -> None:
    path, canary = tmp_path / "evil.ckpt", tmp_path / "canary"
    AtomicCheckpointIO().save_checkpoint({"state_dict": {}, "extra": Payload(canary)}, path)
    with pytest.raises(CheckpointError, match=r"evil\.ckpt cannot be read .*none of its code was run") as refused:
        AtomicCheckpointIO().load_checkpoint(path, weights_only=weights_only)
    assert "weights_only" not in str(refused.value)  # PyTorch advises to set it to False
    assert not canary.exists()


def test_a_compressed_archive_is_refused_before_it_is_unpacked(saved: Path, tmp_path: Path) -> None:
    """Fault: a compressed checkpoint. Effect: refused before it is unpacked."""
    packed = io.BytesIO()
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as bomb:
        for entry in archive.infolist():
            bomb.writestr(entry.filename, archive.read(entry))
    path = tmp_path / "bomb.ckpt"
    path.write_bytes(hashed(packed.getvalue()))
    assert torch.load(path, weights_only=True)["epoch"] == 3
    with pytest.raises(CheckpointError, match=r"bomb\.ckpt cannot be read .*data\.pkl in it is compressed"):
        load_checkpoint(path)


def test_a_plain_pickle_is_refused_and_never_runs(tmp_path: Path) -> None:
    path, canary = tmp_path / "evil.ckpt", tmp_path / "canary"
    path.write_bytes(hashed(pickle.dumps({"extra": Payload(canary)}) + b"\0\0"))
    check_hash(path)
    with pytest.raises(CheckpointError, match=r"evil\.ckpt cannot be read"):
        load_checkpoint(path)
    assert not canary.exists()


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    save_unchecked(torch.zeros(3), tmp_path / "tensor.ckpt")
    with pytest.raises(CheckpointError, match=r"tensor.ckpt holds a Tensor"):
        load_checkpoint(tmp_path / "tensor.ckpt")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"none.ckpt does not exist"):
        load_checkpoint(tmp_path / "none.ckpt")


def test_every_byte_counts(saved: Path) -> None:
    """Fault: one changed byte of a checkpoint or of its hash.

    Effect: refused.

    A flipped bit of a weight would load; one in the hash, its name or its length must not switch off the check.
    """
    data = saved.read_bytes()
    for place in [*range(0, len(data) - 120, 37), *range(len(data) - 120, len(data))]:
        saved.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(CheckpointError, match="cannot be read"):
            check_hash(saved)
    saved.write_bytes(data)
    check_hash(saved)


@pytest.mark.parametrize("size", [1, 21, 22, 80, 84, 85, 200])
def test_no_beginning_of_a_file_passes(saved: Path, size: int) -> None:
    for data in (saved.read_bytes()[:size], saved.read_bytes()[-size:]):
        saved.write_bytes(data)
        with pytest.raises(CheckpointError, match="cannot be read"):
            load_checkpoint(saved)


def test_the_hash_goes_with_the_file_and_is_a_comment_to_others(saved: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copyfile(saved, tmp_path / "elsewhere.ckpt"))
    assert load_checkpoint(moved)["epoch"] == 3
    with zipfile.ZipFile(moved) as archive:
        assert archive.comment.startswith(b"softsearch sha256 ")
        assert archive.testzip() is None
    assert torch.load(moved, weights_only=True, mmap=True)["epoch"] == 3


def test_a_hash_that_was_cut_off_is_missed(saved: Path, tmp_path: Path) -> None:
    torch.save(CHECKPOINT, tmp_path / "other.ckpt")
    data = saved.read_bytes()
    (tmp_path / "cut.ckpt").write_bytes(data[: data.index(b"softsearch sha256") - 2] + b"\0\0")
    assert zipfile.ZipFile(tmp_path / "cut.ckpt").testzip() is None
    for name in ("cut", "other"):
        with pytest.raises(CheckpointError, match=rf"{name}.ckpt cannot be read .*it does not end with its SHA-256"):
            load_checkpoint(tmp_path / f"{name}.ckpt")


@pytest.mark.parametrize("part", ["state_dict", "current_model_state"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_not_saved(saved: Path, part: str, value: float) -> None:
    before = saved.read_bytes()
    lost = {"state_dict": {"a": torch.ones(3)}, "global_step": 9}
    lost[part] = {"a": torch.ones(3), "n": torch.arange(3), "b.w": torch.tensor([0.0, value])}  # type: ignore[assignment]
    message = r"step 9: 1 of 2 weight tensors are not finite, the first is b\.w; .*last\.ckpt was not replaced"
    with pytest.raises(CheckpointError, match=message):
        AtomicCheckpointIO().save_checkpoint(lost, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file, where a folder should be")
    with pytest.raises(CheckpointError, match=r"checkpoints/last\.ckpt could not be written \(.*free some space"):
        AtomicCheckpointIO().save_checkpoint(CHECKPOINT, tmp_path / "checkpoints" / "last.ckpt")
