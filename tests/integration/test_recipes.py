"""The recipes of docs/recipes.md as they are typed, with small models and few steps."""

import subprocess
import sys
from pathlib import Path

import pytest

from softsearch.app.results import read_metrics
from softsearch.data.corpora.spellout import Spellout
from tests.support.commands import ROOT
from tests.support.documented import carry_out, commands
from tests.support.huggingface import m2m_folder

pytestmark = pytest.mark.day

TRAINING = (
    "batching.tokens=512", "trainer=cpu", "trainer.precision=32-true", "trainer.max_steps=4",
    "trainer.val_check_interval=4", "search=greedy", "search.max_length_factor=1",
)  # fmt: skip
SMALL = (
    *(f"model.{side}.{size}" for side in ("encoder", "decoder") for size in ("d_ff=16", "num_layers=1", "num_heads=2")),
    "model.embeddings.dim=16", "tokenizer.vocab_size=80", *TRAINING,
)  # fmt: skip


def carry_out_recipe(title: str, folder: Path, small: tuple[str, ...] = SMALL, in_file: str = "") -> None:
    """Runs the commands under a heading in ``folder`` on the generated corpus."""
    corpus = Spellout(src_lang="en", tgt_lang="de", train_size=60, val_size=8, test_size=8).files(folder / "generated")
    (folder / "corpus").symlink_to(corpus["train"][0].parent)
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "corpus" / "news.de").write_bytes(corpus["train"][1].read_bytes() * 2)
    for name, (split, lang) in {"new": ("train", "fr"), "new_val": ("val", "fr")}.items():
        for ending, of in (("en", 0), ("de", 1), (lang, 1)):
            (folder / "corpus" / f"{name}.{ending}").write_bytes(corpus[split][of].read_bytes())
    (folder / "in.txt").write_text(in_file)  # what commands read that name no file
    for line in commands("docs/recipes.md", title):
        if line.startswith(("shuf", "python -m gensim")):
            own = line.replace("python", sys.executable).replace("-size 128", "-size 16")
            subprocess.run(["bash", "-c", own], cwd=folder, check=True)
        else:
            carry_out([line], folder, small)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("title", "written", "run"),
    [
        ("Sequence-level knowledge distillation", ["train.distilled.de"], "student"),
        ("Another domain, a language more", [], "both"),
        ("Word vectors", [], "vectors"),
        ("Back-translation", ["mono.en", "mono.de"], "forward"),
        ("Data diversification", ["train.translated.en", "train.translated.de"], "diversified"),
    ],
)  # fmt: skip
def test_a_recipe(title: str, written: list[str], run: str, tmp_path: Path) -> None:
    carry_out_recipe(title, tmp_path)
    for name in written:
        text = (tmp_path / "corpus" / name).read_text(encoding="utf-8")
        assert text.count("\n") == 60, name
        assert text != (tmp_path / "corpus" / "train.de").read_text(encoding="utf-8"), name
    assert read_metrics(tmp_path / "logs" / run)["train/steps"] == 4


@pytest.mark.nightly
def test_a_pretrained_model_of_many_languages_learns_new_pairs(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    source = Spellout(src_lang="en", tgt_lang="de", train_size=60, val_size=8, test_size=8).files(tmp_path / "text")
    m2m_folder(tmp_path / "m2m100_418M", source["train"][1].read_text(encoding="utf-8").splitlines(), is_m2m=True)
    carry_out_recipe("A pretrained model of many languages", tmp_path, in_file="one\n", small=TRAINING)
    assert read_metrics(tmp_path / "logs" / "many")["train/steps"] == 4
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").count("\n") == 1
