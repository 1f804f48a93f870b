"""One model for two target languages, as users work with it: train, export, evaluate the bundle, translate by tag."""

import json
import random
from pathlib import Path

import pytest

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import export
from softsearch.app.train.train import train
from softsearch.runtime.cli import main
from tests.support.small_runs import shrink

pytestmark = pytest.mark.day

SIZES = {"train": 400, "val": 20, "test": 20}
LANGUAGES = ("aa", "bb")  # word i is "wi" in English, "aai" in one, "bbi" in the other
STEPS = (
    "trainer.max_steps=120", "trainer.val_check_interval=120", "trainer.log_every_n_steps=50", "batching.tokens=512",
    "scheduler.warmup_steps=20", "optimizer.lr=0.02",
)  # fmt: skip


def write_pairs(folder: Path) -> list[str]:
    """Files of both languages, and the options that name them."""
    rng = random.Random(1)
    options = ["~data.pairs.de", "~data.pairs.fr"]
    for lang in LANGUAGES:
        names = []
        for split, size in SIZES.items():
            sentences = [[rng.randrange(12) for _ in range(rng.randint(3, 6))] for _ in range(size)]
            pair = [folder / f"{split}.{lang}.{side}" for side in ("en", lang)]
            for path, word in zip(pair, ("w", lang), strict=True):
                path.write_text("".join(" ".join(f"{word}{i}" for i in sentence) + "\n" for sentence in sentences))
            names.append(f"{split}: [{pair[0]}, {pair[1]}]")
        source = "_target_: softsearch.data.Parallel, text_form: lc_tok"
        options.append(f"+data.pairs.{lang}={{{source}, src_lang: en, tgt_lang: {lang}, {', '.join(names)}}}")
    return options


def test_the_tag_decides_the_language_from_training_to_the_bundle(tmp_path: Path) -> None:
    run, bundle = tmp_path / "run", tmp_path / "bundle"
    common = [f"cache_dir={tmp_path / 'cache'}"]
    options = ["experiment=demo", "data=multilingual", "tokenizer=word", "trainer=cpu", *STEPS]
    config = composed("train", *options, *write_pairs(tmp_path), f"run_dir={run}", *common, "name=tags")
    shrink(config.model, {"dim": 32, "hidden_dim": 32, "dropout": 0.0})
    train(config)
    config = composed("export", f"ckpt={run}/checkpoints/best.ckpt", f"out={bundle}", *common)
    export(read_options(config, Export))
    lines = (tmp_path / "test.aa.en").read_text().splitlines()
    (tmp_path / "tagged.en").write_text("".join(f"<2aa> {line}\n" for line in lines))
    (tmp_path / "capitals.en").write_text((tmp_path / "tagged.en").read_text().replace("w", "W"))
    for name in ("tagged", "capitals"):
        files = [f"test=[{tmp_path}/{name}.en,{tmp_path}/test.aa.aa]", f"run_dir={tmp_path}/{name}"]
        evaluate(composed("evaluate", f"bundle={bundle}", *files, "overlap=false", *common))
    metrics = json.loads((run / "metrics.json").read_text())
    assert min(metrics[f"test/{lang}/bleu"] for lang in LANGUAGES) > 60
    (warning,) = json.loads((tmp_path / "capitals" / "report.json").read_text())["warnings"]
    assert warning.startswith("capitals.en, test.aa.aa has capital letters, but the model reads lower-cased")
    report = json.loads((tmp_path / "tagged" / "report.json").read_text())
    assert report["warnings"] == []  # the bundle knows that its text was lower-cased and tokenised
    assert report["systems"][0]["scores"]["bleu"]["value"] == pytest.approx(metrics["test/aa/bleu"])
    for lang in LANGUAGES:
        (tmp_path / "in").write_text(f"<2{lang}> W1 w2\n")  # the tag stays, the text is lower-cased
        files = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
        assert main(["translate", str(bundle), *files]) == 0
        assert (tmp_path / "out").read_text() == f"{lang}1 {lang}2\n"
