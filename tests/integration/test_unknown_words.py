"""Model with a small vocabulary as users work with it: dictionary from attention, unknown words replaced, shortlist.

The runtime does with the bundle what the lab does with the checkpoint.
"""

import json
from pathlib import Path

import pytest

from softsearch.app.config.build import rebuild_model, rebuild_source
from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import export
from softsearch.app.systems.texts import training_shortlist
from softsearch.app.train.train import train
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.cli import main
from softsearch.runtime.shortlist_files import has_shortlist
from softsearch.search.batching import translate_ids
from softsearch.search.sampling import Sampling
from softsearch.search.shortlist import Shortlist
from softsearch.text.unknown_words import UnknownWords
from softsearch.text.vocabulary import UNK
from softsearch.text.word_dictionary import read_dictionary
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents
from tests.support.commands import SMALL, run
from tests.support.small_runs import configure

pytestmark = pytest.mark.day

OPTIONS = (
    *(option for option in SMALL if not option.startswith("tokenizer")),
    "tokenizer=word",
    "tokenizer.vocab_size=40",
    "tokenizer.joint=false",
    "model.embeddings.tie=output",
    "optimizer.lr=0.05",  # so that in few steps it learns what comes most often: the unknown word
    "scheduler.warmup_steps=1",
)
LINES = [
    f"{line} {number}"
    for line in ("on the twenty-third of March", "Ljubljana costs", "at a quarter past eleven", "seven hundred and")
    for number in ("two", "thirteen", "eighty-one", "1999", "a dozen pounds", "four")
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def ckpt(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    train(configure("train", *OPTIONS, f"run_dir={folder}", f"cache_dir={cache}", "name=words"))
    return folder / "checkpoints" / "best.ckpt"


@pytest.fixture(scope="module")
def exported(ckpt: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exports") / "words"
    config = configure("export", f"ckpt={ckpt}", f"out={out}", "shortlist=2", f"cache_dir={cache}")
    export(read_options(config, Export))
    return out


@pytest.fixture(scope="module")
def dictionary(ckpt: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dictionary") / "new" / "words.tsv"
    folders = (f"cache_dir={cache}", f"hydra.run.dir={out.parent.parent / 'logs'}")
    done = run("dictionary", f"ckpt={ckpt}", f"out={out}", *folders)
    assert done.returncode == 0, done.stderr
    assert f"next: softsearch translate BUNDLE --replace-unknown {out}" in done.stdout
    return out


def lab(saved: CheckpointContents, words: dict[str, str], shortlist: Shortlist | None = None) -> list[str]:
    """The translations of LINES by the checkpoint."""
    src_tokenizer, tgt_tokenizer = saved.tokenizers
    # Sampling, because the most likely output of such a model is always the same.
    search = Sampling(max_length_factor=1.0, max_length_offset=3, alignments=True)
    sources = [src_tokenizer.encode(line) for line in LINES]
    step_fn = TorchStepFunction(rebuild_model(saved), shortlist)
    found = [n_best[0] for n_best in translate_ids(step_fn, search, sources, batch_tokens=1000)]
    replace = UnknownWords(src_tokenizer, tgt_tokenizer, words)
    if shortlist is None:
        assert any(UNK in h.tokens for h in found)
    return [replace(line, h.tokens, h.alignments) for line, h in zip(LINES, found, strict=True)]


def runtime(bundle: Path, folder: Path, *options: object) -> list[str]:
    (folder / "in").write_text("".join(f"{line}\n" for line in LINES))
    files = ["--input", folder / "in", "--output", folder / "out"]
    search = ["--search", "sample", "--max-length", "3 + 1 * source"]
    assert main(["translate", *map(str, [bundle, *search, *files, *options])]) == 0
    return (folder / "out").read_text().splitlines()


def test_unknown_words_are_replaced_alike_in_the_lab_and_the_runtime(
    ckpt: Path, exported: Path, dictionary: Path, tmp_path: Path
) -> None:
    saved, words = read_contents(ckpt), read_dictionary(dictionary)
    counts = [int(line.split("\t")[2]) for line in dictionary.read_text().splitlines()]
    assert len(words) > 5
    assert counts == sorted(counts, reverse=True)
    plain = runtime(exported, tmp_path)
    assert any("\u2047" in line for line in plain)
    for found, options in ((lab(saved, words), [dictionary]), (lab(saved, {}), [])):
        assert runtime(exported, tmp_path, "--replace-unknown", *options) == found
        assert "\u2047" not in "".join(found)


def test_a_shortlist_is_the_same_in_the_lab_and_the_runtime(
    ckpt: Path, exported: Path, cache: Path, tmp_path: Path
) -> None:
    saved = read_contents(ckpt)
    assert has_shortlist(Bundle.open(exported))
    shortlist = Shortlist(
        *training_shortlist(rebuild_source(saved), saved.tokenizers, cache, frequent=6, translations=2)
    )
    found = lab(saved, {}, shortlist)
    assert found != lab(saved, {})
    assert runtime(exported, tmp_path, "--shortlist", 6, "--replace-unknown") == found
    test = f"test=[{tmp_path / 'in'},{tmp_path / 'in'}]"
    search = ("search=sample", "search.max_length_factor=1", "search.max_length_offset=3")
    options = ("shortlist.frequent=6", "replace_unknown=copy", f"run_dir={tmp_path / 'report'}")
    evaluate(configure("evaluate", f"bundle={exported}", test, *search, *options))
    assert (tmp_path / "report" / "test.hypotheses.txt").read_text().splitlines() == found
    (system,) = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))["systems"]
    assert system["search"] == "sample, shortlist 6, unknown words copied"


def test_evaluation_replaces_unknown_words(ckpt: Path, cache: Path, dictionary: Path, tmp_path: Path) -> None:
    (tmp_path / "test.en").write_text("".join(f"{line}\n" for line in LINES))
    texts = {}
    for option in ("null", dictionary):
        folder = tmp_path / Path(option).stem
        options = (f"replace_unknown={option}", "search=sample", f"run_dir={folder}", f"cache_dir={cache}")
        evaluate(configure("evaluate", f"ckpt={ckpt}", f"test=[{tmp_path}/test.en,{tmp_path}/test.en]", *options))
        texts[option] = (folder / "test.hypotheses.txt").read_text(encoding="utf-8")
    assert "\u2047" in texts["null"]
    assert "\u2047" not in texts[dictionary]
