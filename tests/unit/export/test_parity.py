"""Two backends are compared at lengths that the model can read."""

import pytest
import torch

from softsearch.errors import BundleError, InputError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.export.parity import compare
from softsearch.testing.models import SRC_VOCAB, small_model


def test_no_sentence_is_longer_than_the_limit() -> None:
    model = TorchStepFunction(small_model("kalchbrenner2013", "model.encoder.max_src_len=10").float())
    assert max(compare(model, model, SRC_VOCAB, 10)) == 0
    with pytest.raises(InputError, match="a source sentence has 61 tokens, EOS included, expected at most 10"):
        compare(model, model, SRC_VOCAB, 64)


def test_another_model_is_noticed() -> None:
    one, other = (TorchStepFunction(small_model("kalchbrenner2013", seed=seed).float()) for seed in (1, 2))
    with pytest.raises(BundleError, match="the exported graphs differ from the model for 1 sentences"):
        compare(one, other, SRC_VOCAB, 64)


def test_numbers_that_are_missing_are_noticed() -> None:
    model, broken = (small_model("rnn").float() for _ in range(2))
    with torch.no_grad():
        broken.decoder.output_projection.bias[0] = torch.nan
    with pytest.raises(BundleError, match="log-probabilities by nan"):
        compare(TorchStepFunction(model), TorchStepFunction(broken), SRC_VOCAB, 64)
