"""One small run, trained once by the real command, for all tests that need a checkpoint or a bundle."""

from pathlib import Path

import pytest

from tests.integration.commands import SMALL, run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("run")
    options = (option for option in SMALL if option != "callbacks.curves=null")
    done = run("train.py", *options, f"hydra.run.dir={folder}", f"cache_dir={folder.parent / 'cache'}")
    assert done.returncode == 0, done.stderr
    assert f"best checkpoint: {folder}/checkpoints/best.ckpt (val/bleu" in done.stdout
    assert f"next:\n  softsearch evaluate ckpt={folder}\n  softsearch export ckpt={folder} out=" in done.stdout
    return folder


@pytest.fixture(scope="session")
def bundle(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of that run."""
    folder = tmp_path_factory.mktemp("exports") / "small"
    done = run(
        "export.py",
        f"ckpt={trained}",
        f"out={folder}",
        f"hydra.run.dir={folder.parent}",  # the run's best
    )
    assert done.returncode == 0, done.stderr
    return folder
