"""The mean of checkpoints' weights, as a checkpoint."""

from pathlib import Path
from typing import Any

import pytest
import torch

from softsearch.errors import CheckpointError
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.training.checkpoints.checkpoint_contents import SaveOrigin, read_contents
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from softsearch.training.checkpoints.folder import average, newest_steps, read_weights
from tests.support.written import CONFIG

Tokenizers = tuple[SentencePieceTokenizer, SentencePieceTokenizer]


def tokenizers(text: str) -> Tokenizers:
    built = train_tokenizer([text] * 3, kind="char", vocab_size=12)
    return built, built


@pytest.fixture(scope="module")
def ours() -> Tokenizers:
    return tokenizers("abcd")


def save(folder: Path, name: str, step: int, weights: torch.Tensor, used: Tokenizers) -> Path:
    state: dict[str, Any] = {
        "state_dict": {"model.w": weights, "loss.recent_words": torch.tensor([step, 7])},
        "optimizer_states": [{}],
        "global_step": step,
    }
    SaveOrigin({**CONFIG, "step": step}, used).on_save_checkpoint(None, None, state)  # type: ignore[arg-type]
    AtomicCheckpointIO().save_checkpoint(state, folder / name)
    return folder / name


@pytest.fixture
def folder(tmp_path: Path, ours: Tokenizers) -> Path:
    for step in (80, 90, 100):
        save(tmp_path, f"step-{step}.ckpt", step, torch.tensor([step, 1.0, 2.0**-20 * step]), ours)
    save(tmp_path, "last.ckpt", 100, torch.zeros(3), ours)
    return tmp_path


def test_weights_are_averaged_and_the_rest_is_the_newest(folder: Path) -> None:
    paths = newest_steps(folder, 2)
    assert [path.name for path in paths] == ["step-90.ckpt", "step-100.ckpt"]
    for order in (paths, paths[::-1]):
        mean = average(order)
        torch.testing.assert_close(mean["state_dict"]["model.w"], torch.tensor([95.0, 1.0, 2.0**-20 * 95]))
        assert mean["state_dict"]["model.w"].dtype == torch.float32
        assert mean["state_dict"]["loss.recent_words"].tolist() == [100, 7]
        assert mean["global_step"] == 100
        assert "optimizer_states" not in mean
    AtomicCheckpointIO().save_checkpoint(mean, folder / "average.ckpt")
    saved = read_contents(folder / "average.ckpt")
    assert (saved.step, saved.averaged, saved.config["step"]) == (100, 2, 100)
    assert "the mean of 2 checkpoints" in saved.describe()


def test_the_mean_of_many_equal_weights_is_the_weights(tmp_path: Path, ours: Tokenizers) -> None:
    weights = torch.rand(1000)
    paths = [save(tmp_path, f"step-{step}.ckpt", step, weights.clone(), ours) for step in range(7)]
    assert torch.equal(average(paths)["state_dict"]["model.w"], weights)


def test_reading_averages_when_asked(folder: Path) -> None:
    one, mean = (read_weights(folder / "last.ckpt", last) for last in (None, 3))
    assert (one.weights["w"].tolist(), one.averaged) == ([0.0, 0.0, 0.0], 1)
    assert (mean.weights["w"][0].item(), mean.averaged) == (90.0, 3)


def test_more_checkpoints_than_there_are_is_refused(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"step-80.ckpt, step-90.ckpt, step-100.ckpt; ask for at most 3"):
        newest_steps(folder, 4)


@pytest.mark.parametrize("other", ["tokenizer", "shape"])
def test_different_models_have_no_mean(folder: Path, ours: Tokenizers, other: str) -> None:
    used = tokenizers("wxyz") if other == "tokenizer" else ours
    odd = save(folder, "odd.ckpt", 1, torch.zeros(4 if other == "shape" else 3), used)
    with pytest.raises(CheckpointError, match=r"odd\.ckpt has other weights or tokenizers than .*step-80\.ckpt"):
        average([folder / "step-80.ckpt", odd])


def test_a_damaged_checkpoint_is_named(folder: Path) -> None:
    damaged = folder / "step-90.ckpt"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match=r"step-90\.ckpt cannot be read"):
        read_weights(folder / "last.ckpt", 3)


def test_nothing_has_no_mean(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=rf"the last 5 checkpoints of {tmp_path}: found none"):
        newest_steps(tmp_path, 5)
    with pytest.raises(CheckpointError, match=r"there is no folder .*nothing; name a run"):
        newest_steps(tmp_path / "nothing", 5)
    with pytest.raises(CheckpointError, match="no checkpoints to average"):
        average([])
