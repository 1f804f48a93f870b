"""Adaptive importance sampling against the paper's estimate of the gradient in plain loops, and what it learns."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.importance_sampling import ImportanceSampling
from softsearch.models.loss import CrossEntropy
from softsearch.models.output_layers import ClassFactored

DIM, VOCAB = 5, 12
TARGETS = torch.tensor([4, 4, 9, 11])


def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(DIM, VOCAB, dtype=torch.float64)


def features() -> Tensor:
    return 2 * torch.randn(len(TARGETS), DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def blocks(*words: list[int]) -> Iterator[Tensor]:
    return map(torch.tensor, words)


def test_the_gradient_is_the_estimate_of_the_paper_and_the_proposal_follows_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """r = exp(s) / Q, and blocks until the effective sample size is reached."""
    drawn = blocks([4, 0, 11, 4], [7, 8, 9, 1])
    monkeypatch.setattr(Tensor, "multinomial", lambda *_, **__: next(drawn))
    loss, output, x = ImportanceSampling(vocab_size=VOCAB, samples=4, effective=3), layer(), features()
    loss.proposal[:] = torch.arange(1, VOCAB + 1) / 78
    found = torch.autograd.grad(loss(x, TARGETS, output).smoothed, output.weight)[0]
    assert next(drawn, None) is None  # four words were too few
    Q = 0.95 * np.arange(1, VOCAB + 1) / 78 + 0.05 / VOCAB
    words, scores = [4, 0, 11, 4, 7, 8, 9, 1], output(x).detach().numpy()
    gradient, mass = np.zeros((VOCAB, DIM)), np.zeros(VOCAB)
    for row, target in enumerate(TARGETS.tolist()):
        gradient[target] -= x[row].numpy()  # -ds(w, h)
        r = [np.exp(scores[row, w]) / Q[w] for w in words]
        for w, ratio in zip(words, r, strict=True):
            gradient[w] += ratio / sum(r) * x[row].numpy()
            mass[w] += ratio / sum(r) / len(TARGETS)
    np.testing.assert_allclose(found.numpy(), gradient, atol=1e-6)
    adapted = np.arange(1, VOCAB + 1) / 78 + 0.05 * (mass - np.arange(1, VOCAB + 1) / 78)
    np.testing.assert_allclose(loss.proposal.numpy(), adapted, atol=1e-6)


def test_it_learns_probabilities_and_proposes_what_the_model_predicts() -> None:
    torch.manual_seed(0)
    loss, output = ImportanceSampling(vocab_size=400, samples=100, effective=20), nn.Linear(DIM, 400)
    targets = torch.tensor([3] * 8 + [5] * 6 + [7] * 2).repeat(4)
    x = torch.ones(len(targets), DIM)
    optimizer = torch.optim.Adam(output.parameters(), lr=0.03)
    for _ in range(200):
        optimizer.zero_grad()
        (loss(x, targets, output).smoothed / len(targets)).backward()
        optimizer.step()
    P = output(x[0]).detach().softmax(-1)
    assert P[[3, 5, 7]].tolist() == pytest.approx([1 / 2, 3 / 8, 1 / 8], abs=0.07)
    assert float(loss.proposal[[3, 5, 7]].sum()) > 0.6  # 0.0075 at the start
    resumed = ImportanceSampling(vocab_size=400)
    resumed.load_state_dict(loss.state_dict())
    assert torch.equal(resumed.proposal, loss.proposal)


def test_all_words_are_computed_in_evaluation_and_where_samples_would_be_more() -> None:
    output, expected = layer(), CrossEntropy(smoothing=0)(features(), TARGETS, layer())
    evaluated = ImportanceSampling(vocab_size=VOCAB).eval()(features(), TARGETS, output)
    few = ImportanceSampling(vocab_size=VOCAB, samples=5, effective=100)(features(), TARGETS, output)
    assert torch.equal(evaluated.nll, expected.nll)
    assert torch.equal(few.nll, expected.nll)
    none = ImportanceSampling(vocab_size=VOCAB)(features()[:0], TARGETS[:0], output)
    assert float(none.smoothed.detach()) == 0.0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"loss=importance_sampling needs a linear .* has ClassFactored; set loss="):
        ImportanceSampling(vocab_size=VOCAB).check(ClassFactored(layer()))
    with pytest.raises(ConfigError, match=r"loss.vocab_size is 9, expected at least the 12 pieces"):
        ImportanceSampling(vocab_size=9)(features(), TARGETS, layer())
