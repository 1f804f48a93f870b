"""Mistakes on the command line are answered at once, on one screen, without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def train(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, str(ROOT / "src" / "train.py"), f"hydra.run.dir={folder / 'run'}", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment | {"SOFTSEARCH_CACHE": str(folder / "cache")},
    )


AT_ONCE = [
    ("sead=3", "there is no config key 'sead'; did you mean 'seed'?"),
    ("optimizer.lrr=3", "there is no config key 'optimizer.lrr'; did you mean 'optimizer.lr'?"),
    ("model=rnnserch", "there is no model=rnnserch; did you mean 'rnnsearch'?"),
    ("batching.tokens=abc", "batching.tokens is 'abc' (str), expected a whole number; change it"),
]
ALL_THE_REST = [
    ("modle=rnnsearch", "there is no config key 'modle'; did you mean 'model'?"),
    ("+optimizer.lrr=3", "optimizer.lrr is not an option of Adam: did you mean 'lr'?"),
    ("optimizer.lr=abc", "optimizer.lr is 'abc' (str), expected a number"),
    ("optimizer.lr=-1", "Invalid learning rate: -1"),
    ("data=parallel", "data.train"),
    ("search.beam=0", "search.beam is 0, expected at least 1"),
    ("model.decoder.dropout=1.5", "dropout is 1.5, expected at least 0 and less than 1"),
    ("resume=nowhere.ckpt", "resume=nowhere.ckpt: no such file"),
]


@pytest.mark.parametrize(
    ("option", "message"), [*AT_ONCE, *(pytest.param(*case, marks=pytest.mark.slow) for case in ALL_THE_REST)]
)
def test_a_mistake_is_one_screen_on_standard_error(tmp_path: Path, option: str, message: str) -> None:
    done = train(tmp_path, option, "trainer.max_steps=1", "trainer.log_every_n_steps=1")
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert len(done.stderr.splitlines()) <= 10, done.stderr
    for name in ("checkpoints", "metrics.csv", "metrics.json"):  # it did not train first
        assert not (tmp_path / "run" / name).exists()
