"""The recipes of docs/recipes.md as they are typed, with small models and few steps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from softsearch.app.results import read_metrics
from softsearch.data.corpora.spellout import Spellout
from tests.integration.commands import ROOT

SMALL = (
    *(
        f"model.{side}.{option}"
        for side in ("encoder", "decoder")
        for option in ("d_ff=16", "num_layers=1", "num_heads=2")
    ),
    "model.embeddings.dim=16",
    "tokenizer.vocab_size=80",
    "batching.tokens=512",
    "trainer=cpu",
    "trainer.precision=32-true",
    "trainer.max_steps=4",
    "trainer.val_check_interval=4",
    "search=greedy",
    "search.max_length_factor=1",
)


def recipe(title: str) -> str:
    """The commands under a heading."""
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL))


def carry_out(title: str, folder: Path) -> None:
    """Runs a recipe in ``folder`` on the generated corpus."""
    corpus = Spellout(src_lang="en", tgt_lang="de", train_size=60, val_size=8, test_size=8).files(folder / "generated")
    (folder / "corpus").symlink_to(corpus["train"][0].parent)
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "corpus" / "news.de").write_bytes(corpus["train"][1].read_bytes() * 2)
    # Training gets small sizes after what the recipe says, everything else is as typed.
    shell = """
    set -eu
    python() { if [ "$1" = src/train.py ]; then command python "$@" $SMALL; else command python "$@"; fi; }
    """
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SMALL": " ".join((*SMALL, f"cache_dir={folder / 'cache'}")),
    }
    done = subprocess.run(
        ["bash", "-c", shell + recipe(title)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")


@pytest.mark.slow
def test_distillation(tmp_path: Path) -> None:
    carry_out("Sequence-level knowledge distillation", tmp_path)
    corpus = tmp_path / "corpus"
    assert len(lines(corpus / "train.distilled.de")) == len(lines(corpus / "train.en")) == 61
    assert lines(corpus / "train.distilled.de") != lines(corpus / "train.de")
    assert read_metrics(tmp_path / "logs" / "student")["test/loss"] > 0


@pytest.mark.slow
def test_back_translation(tmp_path: Path) -> None:
    carry_out("Back-translation", tmp_path)
    corpus = tmp_path / "corpus"
    assert len(lines(corpus / "mono.en")) == len(lines(corpus / "mono.de")) == 61
    assert read_metrics(tmp_path / "logs" / "forward")["test/loss"] > 0
