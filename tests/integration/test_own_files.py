"""Own files from training to clients: their languages are known everywhere, and a test set has one BLEU."""

import json
import random
from pathlib import Path

import httpx
import pytest

from softsearch.runtime.cli import main
from tests.support.serving import serving
from tests.support.small_runs import SIZES, evaluate_in, export_in, train_in

pytestmark = pytest.mark.day

WORDS = {"one": "一つ", "two": "二つ", "three": "三つ", "dogs": "犬", "cats": "猫", "see": "見る"}
STEPS = ("trainer.max_steps=30", "trainer.val_check_interval=15", "trainer.log_every_n_steps=5", "optimizer.lr=0.02")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run on unsegmented Japanese, and its bundles of both formats."""
    home, rng = tmp_path_factory.mktemp("own"), random.Random(1)
    for split, size in {"train": 300, "val": 20, "test": 30}.items():
        lines = [rng.choices(list(WORDS), k=rng.randint(2, 6)) for _ in range(size)]
        (home / f"{split}.en.txt").write_text("".join(" ".join(line) + "\n" for line in lines))
        (home / f"{split}.ja").write_text("".join("".join(map(WORDS.__getitem__, line)) + "\n" for line in lines))
    files = [f"data.{split}=[{home}/{split}.en.txt,{home}/{split}.ja]" for split in ("train", "val", "test")]
    options = ("experiment=demo", "data=parallel", *files, "tokenizer=char", "trainer=cpu", *STEPS, "name=own")
    train_in(home, *options, sizes=SIZES)
    for form in ("bundle", "single"):
        export_in(home, form)
    return home


def test_checkpoint_and_bundle_have_one_bleu_on_own_files(home: Path) -> None:
    found = []
    for system in (f"ckpt={home}/run/checkpoints/best.ckpt", f"bundle={home}/bundle"):
        test = f"test=[{home}/test.en.txt,{home}/test.ja]"
        report = evaluate_in(home, system, test, "overlap=false")
        about_text = [warning for warning in report["warnings"] if "cut off at the length limit" not in warning]
        assert (report["src_lang"], report["tgt_lang"], about_text) == ("en", "ja", [])
        found.append(report["systems"][0]["scores"]["bleu"])
    assert found[0] == found[1]
    assert found[0]["value"] > 0
    assert "tok:char" in found[0]["signature"]


def test_clients_and_pages_know_the_languages_of_own_files(home: Path) -> None:
    with serving(f"own={home}/bundle", "--workers", 1) as served, httpx.Client(base_url=served.url) as client:
        english, japanese = client.get("/languages").json()
        assert english == {"code": "en", "name": "English", "targets": ["ja"]}
        assert japanese == {"code": "ja", "name": "Japanese", "targets": []}
        body = {"q": "two dogs", "source": "en", "target": "ja", "format": "text"}
        assert client.post("/translate", json=body).json()["translatedText"]
    assert main(["web", f"{home}/single", "--out", f"{home}/site"]) == 0
    (model,) = json.loads((home / "site" / "site.json").read_text())["models"]
    assert (model["src_lang"], model["tgt_lang"]) == ("en", "ja")
