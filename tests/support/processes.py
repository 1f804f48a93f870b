"""A small training in several processes on the CPU, by the real command."""

import subprocess
from pathlib import Path

from tests.support.commands import SMALL, run
from tests.support.pairs import write_pair


def train_in_processes(folder: Path, name: str, *options: str, pairs: int = 70) -> subprocess.CompletedProcess[str]:
    """Trains on generated pairs in ``folder / name``, in two processes unless the options say otherwise."""
    train, val = (write_pair(folder, split, count) for split, count in (("train", pairs), ("val", 5)))
    small = [option for option in SMALL if not option.startswith(("experiment", "data", "trainer"))]
    return run(
        "train.py",
        *small,
        "data=parallel",
        f"data.train=[{train[0]},{train[1]}]",
        f"data.val=[{val[0]},{val[1]}]",
        "data.src_lang=en",
        "data.tgt_lang=de",
        "tokenizer.kind=char",
        "trainer=ddp",
        "trainer.precision=32-true",
        "trainer.log_every_n_steps=1",
        f"hydra.run.dir={folder / name}",
        f"cache_dir={folder / 'cache'}",
        *options,
    )
