"""A bundle says in which direction its token ids run."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from softsearch.app.config.validation import build
from softsearch.evaluation.inference import TorchStepFunction, translate_sources
from softsearch.export.bundle import export_bundle
from softsearch.models.seq2seq import Seq2Seq
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.options import STRATEGIES, Strategy, read_search, search_facts
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.translator import Translator
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.sampling import Sampling
from softsearch.testing.models import model_config
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import UNK

LINES = ["abc def", "g", "fed cba abc ghij"]
LIMITS: dict[str, Any] = {"max_length_factor": 1.0, "max_length_offset": 5}
CONSTRAINTS: dict[str, Any] = {"min_length_factor": 0.5, "banned": [UNK], "no_repeat_ngram": 2}
SEARCHES: dict[str, Strategy] = {
    "plain": BeamSearch(beam=3, **LIMITS),
    "every option": BeamSearch(
        beam=4,
        length_penalty=0.6,
        length_norm="gnmt",
        coverage_penalty=0.3,
        exact_stop=True,
        groups=2,
        diversity=0.4,
        **LIMITS,
        **CONSTRAINTS,
    ),
    "greedy": Greedy(**LIMITS, **CONSTRAINTS),
    "sample": Sampling(temperature=0.8, top_k=5, top_p=0.9, seed=1 << 30, **LIMITS, **CONSTRAINTS),
    "exact": ExactSearch(beam=2, max_nodes=50, min_length_factor=0.5, **LIMITS),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.day] * (name != "every option")) for name in SEARCHES]
)
def test_the_runtime_translates_as_the_model_does(name: str, tmp_path: Path) -> None:
    search = SEARCHES[name]
    tgt = train_tokenizer(["abcdefghij abc"] * 3, kind="char", vocab_size=32)
    src = SentencePieceTokenizer(tgt.model, reverse=True)
    torch.manual_seed(1)
    config = model_config("rnnsearch")
    model: Seq2Seq = build(config, src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    reference = TorchStepFunction(model.eval())
    path = tmp_path / "bundle"
    export_bundle(model, reference, (src, tgt), path, search=search, max_src_tokens=64, facts={"model": "test"})
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["tokenizers"] == {"src": "joint.model", "tgt": "joint.model"}  # one file for both directions
    assert manifest["reversed"] == {"src": True, "tgt": False}
    assert "tgt.tokenizer.json" in manifest["files"]
    expected = translate_sources(model, tgt, search, [src.encode(line) for line in LINES])
    found = Translator(path, threads=1).translate(LINES)
    assert [translation.text for translation in found] == expected
    assert any(expected)
    if name != "every option":
        return
    onnx = OnnxStepFunction(Bundle.open(path))
    sources = [src.encode(line) for line in LINES]
    for other in (
        search,
        Greedy(**LIMITS, **CONSTRAINTS),
        Sampling(n_best=2, **LIMITS),
        Sampling(top_k=3, top_p=0.9, **LIMITS),
    ):
        ours, theirs = (translate_ids(backend, other, sources, batch_tokens=99) for backend in (reference, onnx))
        for one, two in zip(ours, theirs, strict=True):
            assert [h.tokens for h in one] == [h.tokens for h in two]
            assert [h.score for h in one] == pytest.approx([h.score for h in two], abs=1e-4)


@pytest.mark.parametrize("name", SEARCHES)
def test_what_is_recommended_is_what_is_searched(name: str) -> None:
    kind, arguments = read_search(json.loads(json.dumps(search_facts(SEARCHES[name]))))
    ours, theirs = (vars(search) for search in (STRATEGIES[kind](**arguments), SEARCHES[name]))
    assert {**ours, "banned": list(ours.get("banned", ()))} == {**theirs, "banned": list(theirs.get("banned", ()))}
