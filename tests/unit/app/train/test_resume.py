"""A state of training that cannot be restored is the file's fault, and said so."""

from pathlib import Path
from typing import Any

import pytest

from softsearch.app.train.resume import restoring
from softsearch.errors import CheckpointError, ConfigError
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.unit.training.checkpoints.written import save_unchecked
from tests.unit.training.small_run import fit


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a run of four steps."""
    folder = tmp_path_factory.mktemp("run")
    fit(folder, folder / "run", batches=4)
    return folder


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("optimizer_states", [3]),
        ("optimizer_states", [{"state": {0: "x"}, "param_groups": []}]),
        ("lr_schedulers", "x"),
        ("loops", "x"),
        ("callbacks", 3),
        ("state_dict", {}),
        ("pytorch-lightning_version", 3),
        ("ParallelDataModule", {}),
        ("ParallelDataModule", {"batches_trained": "x", "data_fingerprint": 3, "world_size": None}),
    ],
)
def test_a_malformed_state_of_training_is_one_message(part: str, value: Any, run: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(run / "run" / "checkpoints" / "last.ckpt")
    assert part in checkpoint
    path = tmp_path / "bad.ckpt"
    save_unchecked({**checkpoint, part: value}, path)
    with pytest.raises(CheckpointError) as refused, restoring(path):
        fit(run, tmp_path / "again", batches=8, resume=path)
    assert len(str(refused.value)) < 800


def test_a_good_one_is_restored_and_other_errors_are_not_the_file_s(run: Path, tmp_path: Path) -> None:
    path = run / "run" / "checkpoints" / "last.ckpt"
    with restoring(path):
        assert fit(run, tmp_path / "again", batches=8, resume=path).global_step == 8
    for error in (KeyError("x"), ConfigError("y")):
        with pytest.raises(type(error)), restoring(path):
            raise error
