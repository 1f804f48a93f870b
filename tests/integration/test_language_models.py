"""Language models that are counted or read a window of tokens: training, perplexity, fusion and reranking."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.build import rebuild_model
from softsearch.app.config.command import CONFIGS, register_resolvers
from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.export import export
from softsearch.app.train.train import train
from softsearch.errors import CheckpointError, ConfigError
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.text.vocabulary import BOS, EOS
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from tests.contract.transcriptions.language_models import KneserNey

pytestmark = pytest.mark.slow
SIZES = {"dim": 16, "hidden_dim": 16, "num_layers": 1, "dropout": 0.0}
OPTIONS = (
    "data.train_size=400",
    "data.val_size=12",
    "data.test_size=12",
    "tokenizer.vocab_size=150",
    "batching.tokens=1024",
    "optimizer.lr=0.02",
    "scheduler.warmup_steps=5",
    "trainer=cpu",
    "trainer.precision=32-true",
    "trainer.max_steps=30",
    "trainer.val_check_interval=30",
    "trainer.log_every_n_steps=5",
    "search=greedy",
    "search.max_length_factor=1",
)
LANGUAGE_MODELS = ("ngram", "feed_forward_lm")
ORDER = 4


def configure(name: str, *options: str) -> DictConfig:
    register_resolvers()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose(name, list(options))
    OmegaConf.set_struct(config, False)
    return config


def shrink(node: DictConfig) -> None:
    for key, value in node.items():
        if isinstance(value, DictConfig):
            shrink(value)
        elif key in SIZES:
            node[key] = SIZES[str(key)]


def run(home: Path, name: str, *options: str) -> dict[str, Any]:
    """Trains a model and returns its metrics."""
    config = configure(
        "train", *OPTIONS, f"model={name}", f"name={name}", f"run_dir={home / name}", f"cache_dir={home}", *options
    )
    shrink(config.model)
    if name in LANGUAGE_MODELS:
        config.model.decoder.order = ORDER
    train(config)
    metrics: dict[str, Any] = json.loads((home / name / "metrics.json").read_text())
    return metrics


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs, by name, and their bundles in ``exports``."""
    home = tmp_path_factory.mktemp("language_models")
    for name in ("gru", *LANGUAGE_MODELS):
        run(home, name)
        export(read_options(configure("export", f"ckpt={ckpt(home, name)}", f"out={bundle(home, name)}"), Export))
    return home


def ckpt(home: Path, name: str) -> Path:
    return home / name / "checkpoints" / "best.ckpt"


def bundle(home: Path, name: str) -> Path:
    return home / "exports" / name


def lines(home: Path, file: str) -> list[str]:
    return next(home.glob(f"spellout-*/{file}")).read_text(encoding="utf-8").splitlines()


def evaluated(home: Path, *options: str) -> dict[str, Any]:
    common = ("overlap=false", f"cache_dir={home}", f"run_dir={home / 'report'}", f"ckpt={ckpt(home, 'gru')}")
    evaluate(configure("evaluate", *common, *options))
    report: dict[str, Any] = json.loads((home / "report" / "report.json").read_text(encoding="utf-8"))
    system: dict[str, Any] = report["systems"][0]
    return system


def test_the_loss_of_a_counted_model_is_that_of_the_training_text(home: Path) -> None:
    metrics = json.loads((home / "ngram" / "metrics.json").read_text())
    tokenizer = read_contents(ckpt(home, "ngram")).tokenizers[1]
    train_ids, test_ids = ([tokenizer.encode(line) for line in lines(home, f"{part}.de")] for part in ("train", "test"))
    expected = KneserNey(train_ids, ORDER, tokenizer.vocab_size)
    log_probs = [
        np.log(expected.p(token, (BOS, *ids[:place]))) for ids in test_ids for place, token in enumerate([*ids, EOS])
    ]
    assert metrics["test/loss"] == pytest.approx(-np.mean(log_probs), rel=1e-5)
    assert (home / "ngram" / "checkpoints" / "last.ckpt").is_file()
    assert "val/perplexity" in (home / "ngram" / "metrics.csv").read_text()


def test_a_counted_model_is_counted_again_where_others_would_resume(home: Path) -> None:
    before = json.loads((home / "ngram" / "metrics.json").read_text())
    assert run(home, "ngram", "resume=auto") == before


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_fusion_is_the_same_in_both_backends(name: str, home: Path) -> None:
    alone = evaluated(home, "search=beam", "search.max_length_factor=1")["hypotheses"]
    options = ("search=beam", "search.max_length_factor=1", "ensemble=log_probs", "language_model_weight=0.5")
    fused = evaluated(home, *options, f"language_model={ckpt(home, name)}")["hypotheses"]
    assert fused != alone
    translator = Translator(bundle(home, "gru"), language_model=bundle(home, name), language_model_weight=0.5)
    found = translator.translate(lines(home, "test.en"), search=BeamSearch(max_length_factor=1))
    assert [translation.text for translation in found] == fused


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_reranking_is_the_same_in_both_backends(name: str, home: Path) -> None:
    beam = ("search=rerank", "search.search.beam=4", "search.search.n_best=4", "+search.search.max_length_factor=1")
    models = (f"search.models=[{ckpt(home, name)}]", "search.weights=[1,2]")
    reranked = evaluated(home, *beam, *models)["hypotheses"]
    translator = Translator(bundle(home, "gru"), rescore=[bundle(home, name)])
    limit = f"{BeamSearch().max_length_offset} + 1 * source"
    found = translator.translate(
        lines(home, "test.en"), search="rerank", beam=4, max_length=limit, rescore_weights=[1, 2]
    )
    assert [translation.text for translation in found] == reranked


def test_a_checkpoint_with_damaged_tables_is_refused(home: Path) -> None:
    contents = read_contents(ckpt(home, "ngram"))
    name = "decoder.output_projection.tables.1.words"
    damaged = contents._replace(weights=contents.weights | {name: contents.weights[name] + 150})
    with pytest.raises(CheckpointError, match=r"best.ckpt: the table of order 3 has words outside of the vocabulary"):
        rebuild_model(damaged)
    square = contents._replace(weights=contents.weights | {name: torch.zeros(2, 2)})
    with pytest.raises(CheckpointError, match=r"tables.1.words is \(2, 2\) there, \(1,\) here"):
        rebuild_model(square)


def test_counts_have_no_other_precision_and_no_single_graph(home: Path) -> None:
    for option, message in (("precision=int8", "only counts"), ("format=single", "reads no source")):
        options = (f"ckpt={ckpt(home, 'ngram')}", f"out={home / 'no'}", f"cache_dir={home}", option)
        with pytest.raises(ConfigError, match=message):
            export(read_options(configure("export", *options), Export))
