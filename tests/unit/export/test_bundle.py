"""A bundle says in which direction its token ids run."""

import json
from pathlib import Path

import torch

from softsearch.app.instantiate import build
from softsearch.export.bundle import export_bundle
from softsearch.models.interface import Seq2Seq
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import SearchOptions
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.training.evaluation import translate_lines
from softsearch.training.step_function import TorchStepFunction
from tests.contract.models import model_config

LINES = ["abc def", "g", "fed cba abc ghij"]
OPTIONS = SearchOptions(beam=3, max_length_factor=1.0, max_length_offset=5)


def test_the_runtime_translates_as_the_model_does(tmp_path: Path) -> None:
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
    export_bundle(model, reference, (src, tgt), path, options=OPTIONS, max_src_tokens=64, facts={"model": "test"})
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["tokenizers"] == {"src": "joint.model", "tgt": "joint.model"}  # one file for both directions
    assert manifest["reversed"] == {"src": True, "tgt": False}
    search = BeamSearch(beam=3, max_length_factor=1.0, max_length_offset=5)
    expected = translate_lines(model, (src, tgt), search, LINES)
    found = Translator(path, threads=1).translate(LINES)
    assert [n_best[0].text for n_best in found] == expected
    assert any(expected)
