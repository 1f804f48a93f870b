"""Ensembles over both backends: combined, tuned, and evaluated with the tuned weights."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from softsearch.app.config.build import build_data, build_model
from softsearch.app.config.validation import plain, read_options
from softsearch.app.systems.open import open_any, open_systems
from softsearch.app.train.train import train
from softsearch.errors import ConfigError
from softsearch.evaluation.systems import lab_ensemble as combine
from softsearch.extras.sweep.options import Tune
from softsearch.extras.sweep.tune import tune
from softsearch.runtime.translator import Translator
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import full_log_probs
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import BOS
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN, SaveOrigin
from softsearch.training.checkpoints.checkpoint_io import AtomicCheckpointIO
from tests.support.small_runs import bundle, ckpt, configure, configure_run, evaluated, export_run, lines

pytestmark = pytest.mark.day

RANDOM = {  # models as they are before training: what they write differs, and nothing else matters here
    "rnn": ("model=rnnsearch",),
    "transformer": ("model=transformer_tiny", "data.reverse_source=true"),
    "lm": ("model=rnnlm",),
    "r2l_chars": ("model=gru", "data.target_direction=r2l", "tokenizer=char"),
}
TRAINED = {"r2l": ("model=rnnsearch", "data.target_direction=r2l")}
EXPORTED = ("transformer", "lm", "r2l")


def save_random(config: DictConfig) -> None:
    data = build_data(config)
    data.prepare_data()
    tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
    torch.manual_seed(1)
    model = build_model(config.model, tokenizers)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    weights = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    origin = SaveOrigin(plain(config), tokenizers).origin
    path = Path(config.run_dir) / "checkpoints" / "best.ckpt"
    AtomicCheckpointIO().save_checkpoint({ORIGIN: origin, "state_dict": weights, "global_step": 0}, path)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs, by name, and their bundles in ``exports``."""
    home = tmp_path_factory.mktemp("ensembles")
    for name, options in (RANDOM | TRAINED).items():
        (save_random if name in RANDOM else train)(configure_run(home, name, *options))
    for name in EXPORTED:
        export_run(home, name)
    return home


def test_a_mixed_ensemble_equals_one_of_checkpoints(home: Path) -> None:
    rnn, transformer, lm = open_any([ckpt(home, name) for name in ("rnn", "transformer", "lm")])
    other_transformer, other_lm = open_any([bundle(home, name) for name in ("transformer", "lm")])
    assert [rnn.backend, other_transformer.backend] == ["torch", "onnx"]
    torch_alone = combine([rnn, transformer], "probs", [1, 2], lm, 0.2)
    mixed = combine([rnn, other_transformer], "probs", [1, 2], other_lm, 0.2)
    assert [system.backend for system in (torch_alone, mixed)] == ["torch", "mixed"]
    sources = [rnn.tokenizers[0].encode(line) for line in lines(home)]
    search = BeamSearch(beam=3, n_best=3, max_length_factor=1)
    expected = translate_ids(torch_alone.step_fn, search, sources, batch_tokens=200)
    found = translate_ids(mixed.step_fn, search, sources, batch_tokens=200)
    assert [[h.tokens for h in n_best] for n_best in found] == [[h.tokens for h in n_best] for n_best in expected]
    ours, theirs = ([h.log_prob for n_best in lists for h in n_best] for lists in (found, expected))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    read = np.full(3, BOS, dtype=np.int64)
    steps = (full_log_probs(s.step_fn, read, s.step_fn.start(sources[:3]))[0] for s in (mixed, torch_alone))
    np.testing.assert_allclose(*steps, atol=1e-5)


@pytest.mark.nightly
def test_a_right_to_left_model_gives_text_in_its_normal_order(home: Path) -> None:
    (system,) = open_systems(ckpt(home, "r2l"), None, None)
    assert system.tokenizers[1].reverse
    forwards = SentencePieceTokenizer(system.tokenizers[1].model)
    sources = [system.tokenizers[0].encode(line) for line in lines(home)]
    found = [n_best[0].tokens for n_best in translate_ids(system.step_fn, BeamSearch(), sources, batch_tokens=2048)]
    texts = [forwards.decode(list(reversed(tokens))) for tokens in found]
    assert any(texts[i] != forwards.decode(tokens) for i, tokens in enumerate(found))
    assert evaluated(home, f"ckpt={ckpt(home, 'r2l')}")["systems"][0]["hypotheses"] == texts
    assert [translation.text for translation in Translator(bundle(home, "r2l")).translate(lines(home))] == texts
    # Trained on the ends of the sentences first: what it begins with are words that sentences end with.
    endings = {forwards.encode(line)[-1] for line in lines(home, "train.de")}
    assert sum(tokens[0] in endings for tokens in found if tokens) > 0.9 * len(found)


@pytest.mark.nightly
def test_what_tune_finds_for_an_ensemble_is_what_evaluate_gets(home: Path) -> None:
    models = (f"ckpt=[{ckpt(home, 'rnn')}]", f"bundle=[{bundle(home, 'transformer')}]")
    limits = ("search.max_length_factor=1", "search.beam=2")
    options = (f"language_model={ckpt(home, 'lm')}", "searches=10", f"run_dir={home / 'tuned'}", f"cache_dir={home}")
    tune(read_options(configure("tune", *models, *options, *limits), Tune))
    tuned = json.loads((home / "tuned" / "weights.json").read_text())
    assert tuned["validation"]["bleu"] >= tuned["validation"]["bleu_at_start"]
    report = evaluated(home, f"weights={home / 'tuned' / 'weights.json'}", *limits)
    assert [system["name"] for system in report["systems"]] == ["ensemble", "rnn", "transformer"]
    whole = report["systems"][0]
    assert whole["backend"] == "mixed"
    assert whole["scores"]["bleu"]["value"] == pytest.approx(tuned["validation"]["bleu"])
    assert (whole["nll"] is None) == (tuned["options"]["language_model_weight"] > 0)


def test_what_tune_finds_for_a_reranker_is_what_evaluate_gets(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softsearch.extras.sweep.tune._RERANKINGS", 20)
    scorers = ",".join([ckpt(home, "r2l"), bundle(home, "lm"), ckpt(home, "r2l_chars")])
    beam = ("search=rerank", "search.search.beam=4", "search.search.n_best=4", "+search.search.max_length_factor=1")
    models = (f"search.models=[{scorers}]", f"search.proposers=[{ckpt(home, 'r2l')}]")
    folder = home / "reranked"
    config = configure("tune", f"ckpt={ckpt(home, 'rnn')}", *beam, *models, f"run_dir={folder}", f"cache_dir={home}")
    tune(read_options(config, Tune))
    tuned = json.loads((folder / "weights.json").read_text())
    assert len(tuned["options"]["search.weights"]) == 4
    assert tuned["options"]["ensemble"] is None
    assert tuned["validation"]["bleu"] >= tuned["validation"]["bleu_at_start"]
    report = evaluated(home, f"weights={folder / 'weights.json'}", *beam)
    assert report["systems"][0]["scores"]["bleu"]["value"] == pytest.approx(tuned["validation"]["bleu"])
    with pytest.raises(ConfigError, match="was tuned for another search"):
        evaluated(home, f"weights={folder / 'weights.json'}", "search=greedy")


@pytest.mark.nightly
def test_an_ensemble_decodes_with_minimum_bayes_risk(home: Path) -> None:
    """Of sampled candidates, and of a beam's with sampled references; the report names the search."""
    both = (f"ckpt=[{ckpt(home, 'rnn')}]", f"bundle=[{bundle(home, 'transformer')}]", "ensemble=log_probs")
    short = ("search.candidates.max_length_factor=1", "search.candidates.n_best=4")
    sampled = evaluated(home, *both, "search=mbr", *short)["systems"]
    assert {system["backend"] for system in sampled} == {"mixed", "torch", "onnx"}
    assert "mbr, candidates by sample, n best 4" in sampled[0]["search"]
    references = ("+search@search.references=sample", "search.references.n_best=8")
    beam = evaluated(home, *both, "search=mbr", "search@search.candidates=beam", *short, *references)["systems"]
    assert "candidates by beam 5, n best 4" in beam[0]["search"]
    assert beam[0]["hypotheses"] != sampled[0]["hypotheses"]


def test_models_that_do_not_write_the_same_are_refused(home: Path) -> None:
    rnn, r2l, chars = open_any([ckpt(home, name) for name in ("rnn", "r2l", "r2l_chars")])
    with pytest.raises(ConfigError, match="write in different directions"):
        combine([rnn, r2l])
    with pytest.raises(ConfigError, match="different target vocabularies"):
        combine([rnn, chars])
    with pytest.raises(ConfigError, match="translates; expected a language model"):
        combine([rnn], language_model=chars, language_model_weight=0.1)
