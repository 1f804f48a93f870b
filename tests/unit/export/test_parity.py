"""Two backends are compared at lengths that the model can read."""

import copy
from contextlib import nullcontext

import pytest
import torch

from softsearch.errors import BundleError, InputError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.export.bundle import compare_graphs
from softsearch.testing.models import SRC_VOCAB, small_model


def test_no_sentence_is_longer_than_the_limit() -> None:
    model = TorchStepFunction(small_model("kalchbrenner2013", "model.encoder.max_src_len=10").float())
    assert max(compare_graphs(model, model, SRC_VOCAB, 10).values()) == 0
    with pytest.raises(InputError, match="a source sentence has 61 tokens, EOS included, expected at most 10"):
        compare_graphs(model, model, SRC_VOCAB, 64)


def test_another_model_is_noticed() -> None:
    one, other = (TorchStepFunction(small_model("kalchbrenner2013", seed=seed).float()) for seed in (1, 2))
    with pytest.raises(BundleError, match="the exported graphs differ from the model for 1 sentences"):
        compare_graphs(one, other, SRC_VOCAB, 64)


@pytest.mark.parametrize(("change", "is_rounding"), [(1e-7, True), (1e-3, False)])
def test_a_model_may_amplify_rounding(change: float, is_rounding: bool) -> None:
    model, other = (small_model("input_forget").float() for _ in range(2))
    for each, scale in ((model, 1.0), (other, 1.0 + change)):
        for name, parameter in each.named_parameters():
            parameter.data *= scale * (1 if "output" in name else 4)
    backends = TorchStepFunction(other), TorchStepFunction(model)
    with pytest.raises(BundleError):
        compare_graphs(*backends, SRC_VOCAB, 64)
    with nullcontext() if is_rounding else pytest.raises(BundleError, match="the exported graphs differ"):
        compare_graphs(*backends, SRC_VOCAB, 64, exact=lambda: TorchStepFunction(copy.deepcopy(model).double()))


def test_numbers_that_are_missing_are_noticed() -> None:
    model, broken = (small_model("rnn").float() for _ in range(2))
    with torch.no_grad():
        broken.decoder.output_projection.bias[0] = torch.nan
    with pytest.raises(BundleError, match="log-probabilities by nan"):
        compare_graphs(TorchStepFunction(model), TorchStepFunction(broken), SRC_VOCAB, 64)
