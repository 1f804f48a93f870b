"""The training command with faults, alone or as two processes, on a corpus of 70 pairs."""

import csv
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests.support.commands import ROOT, SERVER, SMALL
from tests.support.pairs import write_pair

OPTIONS = (
    *(option for option in SMALL if not option.startswith(("experiment", "data", "trainer"))),
    "batching.sentences=10",  # seven batches, which two processes share as eight
    "data=parallel", "data.src_lang=en", "data.tgt_lang=de", "tokenizer.kind=char", "model.encoder.dropout=0.3",
    "model.decoder.dropout=0.3", "trainer.precision=32-true", "trainer.max_steps=10", "trainer.val_check_interval=5",
    "trainer.log_every_n_steps=1", "search=greedy", "resume=auto",
)  # fmt: skip
INJECTED = str(ROOT / "tests" / "support" / "injected.py")
Faults = Mapping[int, Mapping[int, str]]  # process -> its batch -> kinds
TWO_CPU_PROCESSES = pytest.mark.skipif(torch.cuda.is_available(), reason="trainer=ddp takes the GPUs of this machine")


class TwoProcesses(NamedTuple):
    """A finished run of two processes, in ``folder/whole``."""

    folder: Path
    faults: Faults
    output: str


def train_with_faults(
    options: Sequence[str], faults: Faults, *, timeout: float = 240, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs src/train.py with injected faults."""
    variables = {"PYTHONPATH": str(ROOT), "FAULTS": json.dumps(faults)} | environment
    return SERVER.run([INJECTED, *options], env=variables, timeout=timeout)


def train(
    folder: Path, run: str, *options: str, faults: Faults | None = None, timeout: float = 240, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Trains into ``folder/run``."""
    return train_with_faults(arguments(folder, run, *options), faults or {}, timeout=timeout, **environment)


def arguments(folder: Path, run: str, *options: str) -> list[str]:
    """Writes the corpus and returns the options of a run in ``folder/run``."""
    train, val = (write_pair(folder, name, pairs) for name, pairs in (("train", 70), ("val", 5)))
    return [
        *OPTIONS,
        *options,
        f"data.train=[{train[0]},{train[1]}]",
        f"data.val=[{val[0]},{val[1]}]",
        f"hydra.run.dir={folder / run}",
        f"cache_dir={folder / 'cache'}",
    ]


def rows(run: Path) -> list[dict[str, str]]:
    """Returns the rows of metrics.csv without the columns that depend on the machine."""
    with (run / "metrics.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    for row in found:
        for name in ("tokens/s", "train/peak_memory_mb", "train/elapsed_seconds"):
            del row[name]
    return found
