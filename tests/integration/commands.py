"""The commands of the lab, and options for a run of seconds."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMALL = (
    "experiment=demo",
    "data.train_size=300",
    "data.val_size=20",
    "data.test_size=20",
    "model.embeddings.dim=16",
    "model.encoder.hidden_dim=16",
    "model.decoder.hidden_dim=16",
    "model.decoder.attention_dim=16",
    "model.decoder.maxout_dim=16",
    "tokenizer.vocab_size=120",
    "trainer=cpu",
    "trainer.max_steps=8",
    "trainer.val_check_interval=4",
    "trainer.log_every_n_steps=2",
    "search.max_length_factor=1",
)


def run(script: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the lab as a user does."""
    return subprocess.run(
        [sys.executable, str(ROOT / "src" / script), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )
