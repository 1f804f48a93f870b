"""Language models that are counted or read a window of tokens: training, perplexity, fusion and reranking."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softsearch.app.config.build import rebuild_model
from softsearch.app.config.options import Export
from softsearch.app.config.validation import read_options
from softsearch.app.count import count
from softsearch.app.export import export
from softsearch.app.train.train import train
from softsearch.errors import CheckpointError, ConfigError
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.text.vocabulary import BOS, EOS
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from tests.support.small_runs import bundle, ckpt, configure, configure_run, evaluated, export_run, lines
from tests.support.transcriptions.language_models import KneserNey

pytestmark = pytest.mark.day

LANGUAGE_MODELS = ("ngram", "feed_forward_lm")
ORDER = 3


def run(home: Path, name: str, *options: str) -> dict[str, Any]:
    """Trains a model and returns its metrics."""
    config = configure_run(home, name, f"model={name}", *options)
    if name in LANGUAGE_MODELS:
        config.model.decoder.order = ORDER
    (count if name == "ngram" else train)(config)
    metrics: dict[str, Any] = json.loads((home / name / "metrics.json").read_text())
    return metrics


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs, by name, and their bundles in ``exports``."""
    home = tmp_path_factory.mktemp("language_models")
    for name in ("gru", *LANGUAGE_MODELS):
        run(home, name)
        export_run(home, name)
    return home


def hypotheses(home: Path, *options: str) -> list[str]:
    found: list[str] = evaluated(home, f"ckpt={ckpt(home, 'gru')}", *options)["systems"][0]["hypotheses"]
    return found


def test_the_loss_of_a_counted_model_is_that_of_the_training_text(home: Path) -> None:
    metrics = json.loads((home / "ngram" / "metrics.json").read_text())
    tokenizer = read_contents(Path(ckpt(home, "ngram"))).tokenizers[1]
    train_ids, test_ids = ([tokenizer.encode(line) for line in lines(home, f"{part}.de")] for part in ("train", "test"))
    expected = KneserNey(train_ids, ORDER, tokenizer.vocab_size)
    log_probs = [
        np.log(expected.p(token, (BOS, *ids[:place]))) for ids in test_ids for place, token in enumerate([*ids, EOS])
    ]
    assert metrics["test/loss"] == pytest.approx(-np.mean(log_probs), rel=1e-5)
    assert (home / "ngram" / "checkpoints" / "last.ckpt").is_file()
    assert "val/perplexity" in (home / "ngram" / "metrics.csv").read_text()


def test_a_counted_model_replaces_another_only_if_it_may(home: Path) -> None:
    metrics = json.loads((home / "ngram" / "metrics.json").read_text())
    with pytest.raises(ConfigError, match=r"ngram already has a run .*overwrite=true to remove it"):
        run(home, "ngram")
    assert run(home, "ngram", "overwrite=true") == metrics


def test_each_command_names_the_line_of_the_other(home: Path) -> None:
    with pytest.raises(ConfigError, match="is counted from the data, not trained; type softsearch count"):
        train(configure_run(home, "no", "model=ngram"))
    with pytest.raises(ConfigError, match="is trained, not counted; type softsearch train"):
        count(configure_run(home, "no", "model=gru"))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_fusion_is_the_same_in_both_backends(name: str, home: Path) -> None:
    alone = hypotheses(home, "search=beam", "search.max_length_factor=1")
    options = ("search=beam", "search.max_length_factor=1", "ensemble=log_probs", "language_model_weight=0.5")
    fused = hypotheses(home, *options, f"language_model={ckpt(home, name)}")
    assert fused != alone
    translator = Translator(bundle(home, "gru"), language_model=bundle(home, name), language_model_weight=0.5)
    found = translator.translate(lines(home), search=BeamSearch(max_length_factor=1))
    assert [translation.text for translation in found] == fused


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_reranking_is_the_same_in_both_backends(name: str, home: Path) -> None:
    beam = ("search=rerank", "search.search.beam=4", "search.search.n_best=4", "+search.search.max_length_factor=1")
    models = (f"search.models=[{ckpt(home, name)}]", "search.weights=[1,2]")
    reranked = hypotheses(home, *beam, *models)
    translator = Translator(bundle(home, "gru"), rescore=[bundle(home, name)])
    limit = f"{BeamSearch().max_length_offset} + 1 * source"
    found = translator.translate(lines(home), search="rerank", beam=4, max_length=limit, rescore_weights=[1, 2])
    assert [translation.text for translation in found] == reranked


def test_a_checkpoint_with_damaged_tables_is_refused(home: Path) -> None:
    contents = read_contents(Path(ckpt(home, "ngram")))
    name = "decoder.output_projection.tables.1.words"
    damaged = contents._replace(weights=contents.weights | {name: contents.weights[name] + 150})
    with pytest.raises(CheckpointError, match=r"best.ckpt: the table of order 3 has words outside of the vocabulary"):
        rebuild_model(damaged)
    square = contents._replace(weights=contents.weights | {name: torch.zeros(2, 2)})
    with pytest.raises(CheckpointError, match=r"tables.1.words is \(2, 2\) there, \(1,\) here"):
        rebuild_model(square)


def test_counts_have_no_other_precision_and_no_single_graph(home: Path) -> None:
    for option, message in (("precision=int8", "only counts"), ("format=single", "this model reads none")):
        options = (f"ckpt={ckpt(home, 'ngram')}", f"out={home / 'no'}", f"cache_dir={home}", option)
        with pytest.raises(ConfigError, match=message):
            export(read_options(configure("export", *options), Export))
