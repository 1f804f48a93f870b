"""Alignments by single heads and by IBM Model 1."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from softsearch.data.corpora.parallel import Parallel
from softsearch.evaluation.alignment_error import Gold, alignment_error_rate
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.evaluation.test_set import HeldOutText
from softsearch.extras.claims.analyses import aligners
from softsearch.extras.claims.analyses.aligners import HeadStepFunction, alignment_errors, model_1_links
from softsearch.extras.claims.parts_of_test import resample_counts
from softsearch.search.forced_decoding import forced_alignments
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import BOS, EOS

SRC, TGT = [[5, 6, 7], [8, 9]], [[7, 8], [5, 6, 9]]


def test_the_heads_of_the_last_layer_are_what_their_mean_is_of() -> None:
    model = small_model("transformer_tiny", seed=3)
    expected = forced_alignments(TorchStepFunction(model), SRC, TGT, batch_tokens=100)
    heads = [forced_alignments(HeadStepFunction(model, 1, head), SRC, TGT, batch_tokens=100) for head in range(2)]
    assert expected is not None
    for mean, *parts in zip(expected, *heads, strict=True):  # type: ignore[arg-type]
        np.testing.assert_allclose(mean, np.mean(parts, axis=0), rtol=1e-6)
        assert abs(parts[0] - parts[1]).max() > 0.01


@torch.no_grad()
def test_a_head_of_the_first_layer_is_the_softmax_of_its_products() -> None:
    model = small_model("transformer_tiny", seed=3)
    found = forced_alignments(HeadStepFunction(model, 0, 1), SRC[:1], TGT[:1], batch_tokens=100)
    decoder, state = model.decoder, model.encode(torch.tensor([[*SRC[0], EOS]]))
    x = decoder.positions(decoder.embedding(torch.tensor([[BOS, *TGT[0]]])), torch.arange(3))
    layer = decoder.layers[0]
    x = layer.self_attention_residual(x, lambda y: layer.self_attention.sequence(y, None))
    half = slice(4, 8)  # of eight units, the second of two heads
    attention = layer.cross_attention
    queries = attention.query_projection(layer.cross_attention_residual.before(x))[0, :, half]
    keys = attention.key_value_projection(state.memory.states)[0, :, :8][:, half]
    expected = (queries @ keys.T / 2).softmax(-1)  # of four units
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)  # type: ignore[index]


def test_model_1_learns_which_words_go_together() -> None:
    train = (["das haus", "das buch", "ein buch", "ein haus"], ["the house", "the book", "a book", "a house"])
    assert model_1_links(train, (["ein buch das", "neu"], ["the book a x", "a"])) == [[(2, 0), (1, 1), (0, 2)], []]


def test_a_resample_has_the_error_rate_of_its_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, references = ["a b", "c d e", "f"], ["A B", "D C", "F"]
    for split in ("train", "val", "test"):
        for lang, lines in (("en", sources), ("de", references)):
            (tmp_path / f"{split}.{lang}").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "test.links").write_text("0-0 1-1\n1-0 0-1 2?1\n0-0\n")
    pairs: Any = {split: [tmp_path / f"{split}.en", tmp_path / f"{split}.de"] for split in ("train", "val", "test")}
    found = [[(0, 0), (0, 1)], [(1, 0), (2, 1), (2, 0)], [(0, 0)]]
    monkeypatch.setattr(aligners, "align", lambda *_, **__: found)
    for name in ("links", "encode_sentences"):
        monkeypatch.setattr(aligners, name, lambda *values: values[-1])
    model = SimpleNamespace(decoder=SimpleNamespace(source_attention=list))
    system: Any = SimpleNamespace(
        model=model, step_fn=None, tokenizers=(None, None), source=Parallel(**pairs, src_lang="en", tgt_lang="de")
    )
    text = HeldOutText("test", sources, references, "plain", "en", "de")
    row, other = alignment_errors(system, text, tmp_path / "cache")
    gold = [
        Gold({(0, 0), (1, 1)}, {(0, 0), (1, 1)}),
        Gold({(1, 0), (0, 1)}, {(1, 0), (0, 1), (2, 1)}),
        Gold({(0, 0)}, {(0, 0)}),
    ]
    assert (row["aligner"], row["sentences"]) == ("attention", 3)
    assert row["aer"] == pytest.approx(alignment_error_rate(found, gold))
    draws = [np.repeat(range(3), counts.astype(int)) for counts in resample_counts(range(3))]
    expected = [alignment_error_rate([found[i] for i in drawn], [gold[i] for i in drawn]) for drawn in draws]
    assert [float(each) for each in row["aer_resampled"].split()] == pytest.approx(expected, rel=1e-4)
    own = model_1_links((sources, references), (sources, references))
    assert (other["aligner"], other["aer"]) == ("IBM 1", pytest.approx(alignment_error_rate(own, gold)))
