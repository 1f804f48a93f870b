"""Decoders of other models on an encoder whose states have fewer positions than there are tokens.

Inside a decoder everything is over positions; in searches and exports alignments are over source tokens.
"""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.validation import build
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.export.bundle import export_bundle
from softsearch.export.parity import TOLERANCE
from softsearch.models.seq2seq import Seq2Seq
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.beam import BeamSearch
from softsearch.search.forced_decoding import forced_alignments
from softsearch.testing.models import model_config
from softsearch.text.tokenizer import train_tokenizer
from softsearch.text.vocabulary import with_eos
from tests.support.models import GRU

DECODERS = {
    "chorowski2015": [],  # whose cache has an axis of positions, too
    "luong2015": [
        "encoder.hidden_dim=4",
        f"decoder.cell._target_={GRU}",
        "decoder.num_layers=1",
        "decoder.attention.window=local-p",
    ],
    "rnnencdec": [],  # reads the final states alone
    "transformer_tiny": ["encoder.hidden_dim=4", "decoder.num_layers=1"],
}
SOURCES, TARGETS = [[4, 5, 6, 7, 8, 9], [7], [10, 11, 12]], [[5, 6], [8, 9, 10], [4]]


@pytest.mark.day
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "transformer_tiny" else pytest.mark.nightly) for n in DECODERS]
)
def test_another_models_decoder_attends_to_segments(name: str, tmp_path: Path) -> None:
    tokenizer = train_tokenizer(["abcdefghij", "jihgfedcba"] * 3, kind="char", vocab_size=32)
    config = cast(dict[str, Any], OmegaConf.to_container(model_config(name)))
    config |= {"encoder": OmegaConf.to_container(model_config("lee2017").encoder) | {"highway_layers": 1}}
    merged = cast(DictConfig, OmegaConf.merge(config, OmegaConf.from_dotlist(DECODERS[name])))
    size = tokenizer.vocab_size
    model: Seq2Seq = build(merged, src_vocab_size=size, tgt_vocab_size=size).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    reference = TorchStepFunction(model)
    bundle, parity = export_bundle(
        model,
        reference,
        (tokenizer, tokenizer),
        tmp_path / "bundle",
        search=BeamSearch(),
        max_src_tokens=64,
        facts={"model": "test"},
    )
    assert max(parity.values()) < TOLERANCE / 10
    exported = OnnxStepFunction(bundle)
    assert exported.has_attention == (name != "rnnencdec")
    if not exported.has_attention:
        return
    found, expected = (forced_alignments(f, SOURCES, TARGETS, batch_tokens=100) for f in (exported, reference))
    for source, one, other in zip(SOURCES, found, expected, strict=True):
        assert one.shape[1] == len(with_eos(source))
        np.testing.assert_allclose(one, other, atol=1e-5)
        np.testing.assert_allclose(one.sum(1), 1, atol=1e-5)
        for first in range(0, one.shape[1] - 1, 2):  # the two tokens of a segment
            np.testing.assert_array_equal(one[:, first], one[:, first + 1])
