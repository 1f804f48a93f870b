"""One small run, trained once by the real command, for all tests that need a checkpoint or a bundle."""

from pathlib import Path

import pytest

from tests.support.commands import SMALL, made_once, run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, with the cache beside it."""

    def make(home: Path) -> None:
        folder = home / "run"
        options = (option for option in SMALL if option != "callbacks.curves=null")
        done = run("train.py", *options, f"hydra.run.dir={folder}", f"cache_dir={home / 'cache'}")
        assert done.returncode == 0, done.stderr
        assert f"best checkpoint: {folder}/checkpoints/best.ckpt (val/bleu" in done.stdout
        assert f"next:\n  softsearch evaluate ckpt={folder}\n  softsearch export ckpt={folder} out=" in done.stdout

    return made_once(tmp_path_factory, "trained", make) / "run"


@pytest.fixture(scope="session")
def bundle(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of that run."""

    def make(home: Path) -> None:
        done = run("export.py", f"ckpt={trained}", f"out={home / 'small'}", f"hydra.run.dir={home}")  # the run's best
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "exported", make) / "small"
