"""The metrics call their models as these are meant to be called."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from neural_metric.metrics import Comet, MetricX

from softsearch import ConfigError
from softsearch.evaluation import interval, resample

SOURCES, HYPOTHESES, REFERENCES = (
    ["<2de> a dog", "two cats", "a"],
    ["ein Hund", "zwei", ""],
    ["Hund", "zwei Katzen", "x"],
)
PLAIN = ["a dog", *SOURCES[1:]]  # without the language's tag


@pytest.fixture
def comet(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent / "scorer")
    monkeypatch.delitem(sys.modules, "comet", raising=False)
    yield importlib.import_module("comet")
    sys.modules.pop("comet")


def test_comet_rates_each_translation(comet, tmp_path):
    torch.manual_seed(0)
    scorer = comet.Scorer()
    torch.save(scorer.state_dict(), tmp_path / "model.ckpt")
    metric = Comet(model=str(tmp_path / "model.ckpt"))
    assert "scorer" not in vars(metric)  # it is loaded when it is needed
    table = metric.table(HYPOTHESES, REFERENCES, SOURCES)
    expected = [scorer(*triple) for triple in zip(PLAIN, HYPOTHESES, REFERENCES, strict=True)]
    np.testing.assert_allclose(table, [(rating, 1) for rating in expected], rtol=1e-6)
    assert metric.score(table.sum(axis=0)) == pytest.approx(np.mean(expected))
    found = interval(metric, resample(metric, table))
    assert found.low <= found.value <= found.high
    assert metric.for_text("lc_tok", "de") is None
    assert metric.for_text("plain", "de") is metric


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(Comet, "package", "no_such_package")
    with pytest.raises(ConfigError, match="Comet needs the package no_such_package"):
        Comet()


def test_metricx_is_one_step_of_mt5(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.MT5Config(
        d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=250112, tie_word_embeddings=False
    )
    torch.manual_seed(0)
    model = transformers.MT5ForConditionalGeneration(config).eval()
    torch.nn.init.uniform_(model.lm_head.weight, 0, 4)
    model.save_pretrained(tmp_path)
    metric = MetricX(model=str(tmp_path), tokenizer="", batch_size=2)

    def tokenizer(text, max_length, truncation):
        return {"input_ids": [*text.encode()[: max_length - 1], 1]}

    metric.scorer = (transformers.MT5ForConditionalGeneration.from_pretrained(tmp_path).eval(), tokenizer)
    found = metric.table(HYPOTHESES, REFERENCES, SOURCES)[:, 0]
    for rating, source, hypothesis, reference in zip(found, PLAIN, HYPOTHESES, REFERENCES, strict=True):
        ids = torch.tensor([[*f"source: {source} candidate: {hypothesis} reference: {reference}".encode()]])
        with torch.no_grad():
            encoded = model.encoder(ids).last_hidden_state
            decoded = model.decoder(input_ids=torch.zeros((1, 1), dtype=torch.int64), encoder_hidden_states=encoded)
            logit = model.lm_head(decoded.last_hidden_state)[0, 0, 250089]
        assert rating == pytest.approx(logit.clamp(0, 25).item(), abs=1e-4)
    assert len(set(found)) == 3
    assert not metric.higher_is_better
