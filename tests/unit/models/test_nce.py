"""Noise-contrastive estimation against the paper's equations in plain loops, and what it learns."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.loss import CrossEntropy, NoiseContrastive
from softsearch.models.output_layers import ClassFactored

DIM, VOCAB, K = 5, 12, 7
TARGETS = [4, 4, 9, 11]


def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(DIM, VOCAB, dtype=torch.float64)


def features(tokens: int = len(TARGETS)) -> Tensor:
    generator = torch.Generator().manual_seed(tokens)
    return 2 * torch.randn(tokens, DIM, dtype=torch.float64, generator=generator)


def test_the_loss_is_that_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mnih & Teh 2012, section 3: log p(D = 1) of each word, and log p(D = 0) of its k noise words."""
    noise_words = [4, 0, 11, 4, 7, 8, 9]
    monkeypatch.setattr(Tensor, "multinomial", lambda *_, **__: torch.tensor(noise_words))
    loss, output, x = NoiseContrastive(vocab_size=VOCAB + 3, noise_words=K), layer(), features().requires_grad_()
    value = loss(x, torch.tensor(TARGETS), output)
    scores = output(x)
    P_n = np.array([1 + TARGETS.count(w) for w in range(VOCAB)]) / (VOCAB + len(TARGETS))
    expected = torch.zeros((), dtype=torch.float64)
    for row, target in enumerate(TARGETS):
        P = scores[row].exp() / VOCAB  # unnormalised, with one constant for all contexts
        expected = expected - (P[target] / (P[target] + K * P_n[target])).log()
        for w in noise_words:
            expected = expected - (1 - P[w] / (P[w] + K * P_n[w])).log()
    torch.testing.assert_close(value.smoothed, expected)
    assert not value.nll.requires_grad
    inputs = (x, *output.parameters())
    torch.testing.assert_close(*(torch.autograd.grad(v, inputs) for v in (value.smoothed, expected)))


def test_it_learns_probabilities_that_need_no_normaliser() -> None:
    """Of three words by their frequencies, though it never computes a sum over the vocabulary."""
    torch.manual_seed(0)
    loss, output = NoiseContrastive(vocab_size=VOCAB, noise_words=400), layer()
    targets = torch.tensor([3] * 8 + [5] * 6 + [7] * 2).repeat(8)
    x = torch.ones(len(targets), DIM, dtype=torch.float64)
    optimizer = torch.optim.Adam(output.parameters(), lr=0.03)
    for _ in range(200):
        optimizer.zero_grad()
        (loss(x, targets, output).smoothed / len(targets)).backward()
        optimizer.step()
    P = output(x[0]).detach().exp() / VOCAB
    assert P[[3, 5, 7]].tolist() == pytest.approx([1 / 2, 3 / 8, 1 / 8], abs=0.05)


def test_noise_is_as_frequent_as_the_words_seen() -> None:
    loss = NoiseContrastive(vocab_size=VOCAB, noise_words=K)
    for _ in range(2):
        loss(features(), torch.tensor(TARGETS), layer())
    assert loss.counts.tolist() == [1 + 2 * TARGETS.count(w) for w in range(VOCAB)]
    resumed = NoiseContrastive(vocab_size=VOCAB, noise_words=K)
    resumed.load_state_dict(copy.deepcopy(loss.state_dict()))
    values = []
    for one in (loss, resumed):
        torch.manual_seed(1)
        values.append(one(features(), torch.tensor(TARGETS), layer()).smoothed)
    assert torch.equal(*values)


def test_evaluation_takes_the_softmax() -> None:
    loss, output = NoiseContrastive(vocab_size=VOCAB).eval(), layer()
    found, expected = (f(features(), torch.tensor(TARGETS), output) for f in (loss, CrossEntropy(smoothing=0)))
    assert torch.equal(found.nll, expected.nll)
    assert loss.counts.sum() == VOCAB


def test_products_in_bfloat16_stay_close() -> None:
    values = []
    for bfloat16 in (False, True):
        torch.manual_seed(1)
        loss = NoiseContrastive(vocab_size=VOCAB, noise_words=K, bfloat16=bfloat16)
        values.append(loss(features().float(), torch.tensor(TARGETS), layer().float()).smoothed)
    assert values[1].dtype == torch.float32
    assert not torch.equal(*values)
    torch.testing.assert_close(*values, rtol=2e-2, atol=0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"loss=nce needs a linear .* has ClassFactored; set loss=cross_entropy"):
        NoiseContrastive(vocab_size=VOCAB).check(ClassFactored(layer()))
    with pytest.raises(ConfigError, match=r"loss.vocab_size is 9, expected at least the 12 pieces"):
        NoiseContrastive(vocab_size=9)(features(), torch.tensor(TARGETS), layer())


def test_no_tokens_cost_nothing() -> None:
    loss = NoiseContrastive(vocab_size=VOCAB)
    assert float(loss(features(0), torch.empty(0, dtype=torch.int64), layer()).smoothed.detach()) == 0.0
