"""Every model, method and search on a device that is not the CPU: no tensor is created on the wrong one.

test_synchronisation.py takes a training step of every model there.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
import torch

from softsearch.data.dataset import Batch, pad
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.models.importance_sampling import ImportanceSampling
from softsearch.models.loss import CrossEntropy, NoiseContrastive, SampledSoftmax
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import SearchStrategy
from softsearch.search.shortlist import Shortlist
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, small_model
from softsearch.training.interface import TrainingMethod, TrainingStep
from softsearch.training.objectives.joint_likelihood import joint_likelihood
from softsearch.training.objectives.r_drop import r_drop
from softsearch.training.objectives.scheduled_sampling import exponential, scheduled_sampling
from tests.support.models import every_model
from tests.support.other_device import There, moved, other_device

SRC = pad([np.array([4, 5, 6, 7]), np.array([9]), np.array([8, 5])])
TGT = pad([np.array([7, 8, 9]), np.array([4, 5, 6, 8]), np.array([5])], bos=True)


@pytest.fixture
def device() -> Iterator[torch.device]:
    with other_device() as there:
        yield there


def batch_on(device: torch.device) -> Batch:
    return Batch(SRC.to(device), TGT.to(device))


@pytest.mark.parametrize("case", every_model())
def test_every_model_searches(case: tuple[str, ...], device: torch.device) -> None:
    model = moved(*case).eval()
    state = model.encode(SRC.to(device))
    state = state.select(torch.tensor([0, 0, 1, 1, 2, 2]).to(device)).keep(torch.tensor([2, 0]).to(device))
    logits, alignments, after = model.decoder.step(torch.tensor([4, 5, 6, 7]).to(device), state)
    looked = [] if alignments is None else [alignments]
    assert all(isinstance(tensor, There) for tensor in (logits, *looked, after.position, *after.cache))


@pytest.mark.parametrize(
    "method",
    [
        r_drop,
        partial(scheduled_sampling, decay=partial(exponential, k=0.5), prediction="sample"),
        partial(scheduled_sampling, decay=partial(exponential, k=0.5), prediction="argmax"),
    ],
    ids=["r_drop", "sample", "argmax"],
)
@pytest.mark.parametrize(
    "make_loss",
    [
        CrossEntropy,
        partial(SampledSoftmax, tau=10),
        partial(NoiseContrastive, vocab_size=TGT_VOCAB),
        partial(ImportanceSampling, vocab_size=TGT_VOCAB, samples=5),
    ],
    ids=["softmax", "sampled", "nce", "importance"],
)
def test_methods_and_losses(
    method: TrainingMethod, make_loss: Callable[[], CrossEntropy], device: torch.device
) -> None:
    model = moved("transformer_tiny", "model.embeddings.tie=none")
    loss = make_loss().to(device)
    for step in (1, 2):
        found, tokens = method(TrainingStep(model, loss, batch_on(device), number=step))
        (found.smoothed / tokens).backward()
        assert math.isfinite(float(found.nll.detach()))


@pytest.mark.parametrize("name", ["decoder_only", "decoder_only_rnn"])
def test_the_likelihood_of_the_pair(name: str, device: torch.device) -> None:
    found, tokens = joint_likelihood(TrainingStep(moved(name), CrossEntropy(), batch_on(device), number=1))
    (found.smoothed / tokens).backward()
    assert math.isfinite(float(found.nll.detach()))


SHORTLIST = Shortlist(np.arange(8), np.full((SRC_VOCAB, 1), 9))


@pytest.mark.parametrize("search", [Greedy(), BeamSearch(beam=3), BeamSearch(beam=TGT_VOCAB)], ids=str)
@pytest.mark.parametrize("shortlist", [None, SHORTLIST])
def test_searches_find_what_they_find_on_the_cpu(
    search: SearchStrategy, shortlist: Shortlist | None, device: torch.device
) -> None:
    there = moved("rnnsearch").eval()
    sources = [[4, 9, 6, 12], [7], [8, 10, 11, 13]]
    found, expected = (
        search(TorchStepFunction(model, shortlist), sources) for model in (there, small_model("rnnsearch"))
    )
    assert [h.tokens for n_best in found for h in n_best] == [h.tokens for n_best in expected for h in n_best]


def test_a_tensor_on_the_wrong_device_is_seen(device: torch.device) -> None:
    there = torch.ones(3, device=device)
    assert float((there + 1).sum()) == 6
    for mistake in (
        lambda: there + torch.ones(3),
        lambda: there[:2].numpy(),
        lambda: there.masked_fill(torch.ones(3, dtype=torch.bool), 0),
        lambda: torch.arange(3)[there.long()],
    ):
        with pytest.raises(RuntimeError, match=r"expected all tensors on meta|numpy"):
            mistake()
