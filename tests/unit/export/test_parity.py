"""Two backends are compared at lengths that the model can read."""

import copy
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from softsearch.errors import BundleError, InputError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.export.bundle import compare_graphs
from softsearch.export.parity import LOG_PROBS, Backend, Numbers, compare
from softsearch.search.interface import Sentences
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


@pytest.mark.parametrize("is_rounding", [True, False])
def test_a_difference_that_rounding_explains_is_accepted(is_rounding: bool) -> None:
    """All are orders of magnitude apart, because processors round differently: 0.3, 4e-7 and the limit of 1e-4."""
    model, other = (small_model("gru").float() for _ in range(2))
    for parameter in other.parameters():
        parameter.data *= 1.1
    exact = other if is_rounding else copy.deepcopy(model).double()
    with pytest.raises(BundleError, match="the exported graphs differ"):
        compare_graphs(TorchStepFunction(other), TorchStepFunction(model), SRC_VOCAB, 64)
    with nullcontext() if is_rounding else pytest.raises(BundleError, match="the exported graphs differ"):
        compare_graphs(
            TorchStepFunction(other), TorchStepFunction(model), SRC_VOCAB, 64, exact=lambda: TorchStepFunction(exact)
        )


def logistic(kind: type[np.floating], change: float = 0.0) -> Backend:
    """A recurrence that doubles errors at each step, of single products: these are the same on all processors."""

    def run(src: Sentences) -> Iterator[Numbers]:
        del src
        state = np.linspace(0.1, 0.9, 100).astype(kind) * kind(1 + change)
        for _ in range(50):
            state = kind(4) * state * (kind(1) - state)
            yield {LOG_PROBS: state}

    return run


def test_a_recurrence_may_amplify_rounding() -> None:
    backends = logistic(np.float32, 2e-7), logistic(np.float32)
    with pytest.raises(BundleError, match=r"differ from the model for 1 sentences .* expected at most 0\.0001"):
        compare(*backends, [[5]])
    assert compare(*backends, [[5]], exact=lambda: logistic(np.float64))[LOG_PROBS] > 0.5


def test_numbers_that_are_missing_are_noticed() -> None:
    model, broken = (small_model("rnn").float() for _ in range(2))
    with torch.no_grad():
        broken.decoder.output_projection.bias[0] = torch.nan
    with pytest.raises(BundleError, match="log-probabilities by nan"):
        compare_graphs(TorchStepFunction(model), TorchStepFunction(broken), SRC_VOCAB, 64)
