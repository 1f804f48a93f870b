"""Tests of a model's export: the graphs search like the model, and nearly so in int8."""

from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pytest

from softsearch.evaluation.inference import TorchStepFunction
from softsearch.export.bundle import export_bundle
from softsearch.export.precision import lower_precision
from softsearch.models.seq2seq import Seq2Seq
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.session import OnnxStepFunction
from softsearch.search.beam import BeamSearch
from softsearch.search.forced_decoding import score_pairs
from softsearch.testing.models import TGT_VOCAB
from softsearch.text.tokenizer import train_tokenizer
from softsearch.text.vocabulary import SPECIALS

SOURCES = [[4], [5, 6, 7, 8, 9], [12, 4, 16, 5, 5, 10, 11, 13, 14]]
TARGETS = [[4, 5], [9, 7, 6, 16], [10]]


@pytest.fixture
def bundle(model: Seq2Seq, tmp_path: Path) -> Bundle:
    """The model as a bundle; the exporter compares the two."""
    letters = ascii_lowercase[: TGT_VOCAB - len(SPECIALS) - 1]  # plus the space
    tokenizer = train_tokenizer([letters, letters[::-1]], kind="char", vocab_size=TGT_VOCAB)
    model.float()
    step_fn, both = TorchStepFunction(model), (tokenizer, tokenizer)
    facts = {"model": type(model).__name__}
    return export_bundle(
        model, step_fn, both, tmp_path / "bundle", search=BeamSearch(), max_src_tokens=64, facts=facts
    )[0]


def test_the_bundle_searches_as_the_model_does(model: Seq2Seq, bundle: Bundle) -> None:
    search = BeamSearch(beam=4, n_best=4, max_length_factor=0.0, max_length_offset=8)
    expected, found = (search(step_fn, SOURCES) for step_fn in (TorchStepFunction(model), OnnxStepFunction(bundle)))
    for one, other in zip(expected, found, strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]
        assert [h.log_prob for h in one] == pytest.approx([h.log_prob for h in other], abs=1e-3)


def test_int8_scores_nearly_as_the_model_does(model: Seq2Seq, bundle: Bundle) -> None:
    lowered, _ = lower_precision(bundle, "int8", SOURCES, bleu=len)
    expected, found = (
        np.concatenate([score.token_log_probs for score in score_pairs(step_fn, SOURCES, TARGETS, batch_tokens=64)])
        for step_fn in (TorchStepFunction(model), OnnxStepFunction(lowered))
    )
    assert 0 < np.abs(found - expected).mean() < 0.2 * expected.std()
