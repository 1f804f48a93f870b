"""Each system of configs/model from training to translation: small, on the embedded corpus."""

import json
import math
from pathlib import Path

import pytest

from softsearch.app.config.composition import CONFIGS
from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.count import count
from softsearch.app.export import export
from softsearch.app.train.train import train
from softsearch.runtime.translator import Translator
from tests.support.default_metrics import corpus_scores
from tests.support.small_runs import OPTIONS as SMALL
from tests.support.small_runs import SIZES as SMALL_SIZES
from tests.support.small_runs import configure, evaluate_in, shrink, train_in

pytestmark = pytest.mark.day

MODELS = [
    path.stem
    for path in sorted((CONFIGS / "model").glob("*.yaml"))
    if path.stem != "show_attend_tell"  # which reads no text: see test_captions.py
]
SIZES = {
    "dim": 96, "hidden_dim": 96, "maxout_dim": 96, "d_ff": 192, "num_heads": 4, "num_layers": 2, "dropout": 0.0,
}  # fmt: skip
OPTIONS = (
    "data.train_size=6000", "data.val_size=40", "data.test_size=100", "tokenizer.vocab_size=400",
    "batching.tokens=1024", "scheduler.warmup_steps=50", "scheduler.decay_from=0.5", "loss.smoothing=0", "trainer=cpu",
    "trainer.precision=32-true", "trainer.val_check_interval=100", "resume=null",
)  # fmt: skip

BUDGETS = {  # a Transformer has to find the alignments of characters first: at step 900, at this size
    "gao2020": ("optimizer.lr=0.002", "trainer.max_steps=1200", "batching.tokens=4096")
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One corpus for all."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.nightly  # by day contract/test_training.py and test_models.py look at the gradients and forms of all
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", MODELS)
def test_learns_and_translates_the_same_in_the_runtime(name: str, cache: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    lr = 0.005 if name.startswith("transformer") or name == "decoder_only" else 0.01
    slow = ("luong2015", "multi_source", "sutskever2014", "decoder_only_rnn", "chung2016")
    steps = 300 if name in slow else 200  # stacks of LSTMs take longer to start, and so do characters
    limit = f"search.max_length_factor={8 if name == 'chung2016' else 1}"  # characters for each piece of the source
    budget = (f"model={name}", f"optimizer.lr={lr}", f"trainer.max_steps={steps}", limit, *BUDGETS.get(name, ()))
    config = configure("train", *OPTIONS, *budget, f"name={name}", f"run_dir={run}", f"cache_dir={cache}")
    shrink(config.model, SIZES)
    (count if name == "ngram" else train)(config)
    figures = json.loads((run / "metrics.json").read_text())
    lines, references = (next(cache.glob(f"spellout-*/test.{lang}")).read_text().splitlines() for lang in ("en", "de"))
    if name in ("rnnlm", "feed_forward_lm", "log_bilinear_lm", "ngram"):
        assert figures["test/loss"] < math.log(60)  # of 400 pieces, all equally likely without a model
    else:
        copied = corpus_scores(lines, references, text_form="plain", tgt_lang="de")[0]["chrf"]
        assert figures["test/chrf"] > copied + 12

    best, out = run / "checkpoints" / "best.ckpt", tmp_path / "bundle"
    own = () if name == "chung2016" else (limit,)  # an export allows translations as long as in training
    export(read_options(configure("export", f"ckpt={best}", f"out={out}", *own), Export))
    translated = [translation.text for translation in Translator(tmp_path / "bundle").translate(lines)]
    assert "\n".join([*translated, ""]) == (run / "test.hypotheses.txt").read_text(encoding="utf-8")


def test_characters_are_not_cut_short_after_training(tmp_path: Path) -> None:
    run, limit = tmp_path / "run", "search.max_length_factor=8"  # the recipe's, which SMALL overrides
    train_in(tmp_path, *SMALL, "model=chung2016", "name=chung2016", limit, sizes=SMALL_SIZES)
    tested = (run / "test.hypotheses.txt").read_text(encoding="utf-8")
    assert max(map(len, tested.splitlines())) > 150  # a model that knows little seldom ends one
    evaluate_in(tmp_path, f"ckpt={run}", "search=greedy")
    assert (tmp_path / "report" / "test.hypotheses.txt").read_text(encoding="utf-8") == tested
    places = (f"ckpt={run}", f"out={tmp_path / 'bundle'}", f"cache_dir={tmp_path / 'cache'}")
    export(read_options(configure("export", *places, "search=greedy"), Export))
    sources = next(tmp_path.glob("cache/spellout-*/test.en")).read_text().splitlines()
    translated = [each.text for each in Translator(tmp_path / "bundle").translate(sources)]
    assert "\n".join([*translated, ""]) == tested
