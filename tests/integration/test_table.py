"""A table of split text and a list of its tokens, from training to the bundle's translations, which are joined."""

import json
import random
from pathlib import Path

import pytest

from softsearch.runtime.translator import Translator
from tests.support.small_runs import SIZES, evaluate_in, export_in, train_in

pytestmark = pytest.mark.day

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "do@@ gs": "Hun@@ de", "cats": "Katz@@ en", "see": "sehen"}
STEPS = ("trainer.max_steps=60", "trainer.val_check_interval=20", "trainer.log_every_n_steps=20", "optimizer.lr=0.02")


def write_table(path: Path, size: int, rng: random.Random) -> None:
    lines = [rng.choices(list(WORDS), k=rng.randint(2, 6)) for _ in range(size)]
    rows = [{"en": " ".join(line), "de": " ".join(map(WORDS.__getitem__, line))} for line in lines]
    path.write_text("".join(f"{json.dumps({'translation': row})}\n" for row in rows))


@pytest.mark.nightly
def test_from_training_to_translations(tmp_path: Path) -> None:
    rng = random.Random(1)
    for split, size in {"train": 800, "val": 20, "test": 20}.items():
        write_table(tmp_path / f"{split}.jsonl", size, rng)
    files = [f"data.{split}={tmp_path}/{split}.jsonl" for split in ("train", "val", "test")]
    columns = ("data.src=translation.en", "data.tgt=translation.de")
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("\n".join(sorted({*" ".join([*WORDS, *WORDS.values()]).split()})))
    tokenizer = ("tokenizer=pretokenised", f"tokenizer.vocabulary={tokens}")
    options = ("experiment=demo", "data=table", *files, *columns, *tokenizer, "trainer=cpu", *STEPS, "name=own")
    train_in(tmp_path, *options, sizes=SIZES)
    report = evaluate_in(tmp_path, f"ckpt={tmp_path}/run/checkpoints/best.ckpt")
    assert (report["src_lang"], report["tgt_lang"]) == ("en", "de")
    assert report["systems"][0]["scores"]["bleu"]["value"] > 1
    (translated,) = (system["hypotheses"] for system in report["systems"])
    assert "Hunde" in " ".join(report["references"])
    assert not [line for line in [*report["references"], *translated] if "@@ " in line]
    export_in(tmp_path)
    tokens.unlink()  # a bundle has its own
    (translation,) = Translator(tmp_path / "bundle").translate(["two do@@ gs"])
    assert translation.src_pieces == ("\u2581two", "\u2581do@@", "\u2581gs", "</s>")
    split = " ".join(piece.removeprefix("\u2581") for piece in translation.tgt_pieces[:-1])
    assert "@@ " in split
    assert translation.text == split.replace("@@ ", "")
    assert str(tmp_path) not in (tmp_path / "bundle" / "manifest.json").read_text()
