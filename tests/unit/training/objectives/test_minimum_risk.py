"""Minimum risk training against the expected risk computed one translation at a time, in NumPy."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from softsearch.app.config.validation import build
from softsearch.data.dataset import Batch
from softsearch.models.loss import CrossEntropy
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, model_config, small_model
from softsearch.text.vocabulary import BOS, EOS, PAD
from softsearch.training.faults.step_guard import placeholder_batch
from softsearch.training.interface import TrainingStep, teacher_forcing
from softsearch.training.objectives import minimum_risk as module
from softsearch.training.objectives.minimum_risk import Subset, Tokens, minimum_risk, parts
from tests.unit.training.objectives.batches import BATCH, TOKENS, gradients, set_dropout

MODELS = ["rnnsearch", "transformer_tiny", "sutskever2014"]
REFERENCES = [(7, 8, 9), (5,), (11, 12)]
LISTS: list[list[Tokens]] = [  # samples of each sentence: duplicates, the reference, the empty translation
    [(7, 8), (7, 8, 9), (7, 8), (4, 4, 4, 4)],
    [],
    [(), (12, 11), (9,)],
]


def shared(translation: Sequence[int], reference: Sequence[int]) -> float:
    """The share of words that both have."""
    return len({*translation} & {*reference}) / len({*translation, *reference, -1})


def log_prob(model: Seq2Seq, state: Any, tokens: Tokens) -> float:
    """log P(tokens, EOS | src) without padding, a token at a time, by the decoder's step from that of the source."""
    total = 0.0
    for read, target in itertools.pairwise((BOS, *tokens, EOS)):
        logits, _, state = model.decoder.step(torch.tensor([read]), state)
        values = logits[0].double().numpy()
        total += values[target] - np.log(np.exp(values).sum())
    return float(total)


@torch.no_grad()
def risk(model: Seq2Seq, alpha: float, lists: Sequence[Sequence[Tokens]] = LISTS) -> float:
    """Equations 11 and 12 for the batch."""
    total = 0.0
    for src, reference, samples in zip(BATCH.src_tokens, REFERENCES, lists, strict=True):
        subset = [reference, *sorted({*samples} - {reference})]
        state = model.encode(src[src != PAD][None])
        scaled = [np.exp(alpha * log_prob(model, state, tokens)) for tokens in subset]
        costs = [-shared(tokens, reference) for tokens in subset]
        total += sum(p * cost for p, cost in zip(scaled, costs, strict=True)) / sum(scaled)
    return total


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples are those of ``LISTS``."""
    monkeypatch.setattr(module, "_draw", lambda *_: LISTS)


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("alpha", [5e-3, 0.5, 1.0])
@pytest.mark.parametrize("name", MODELS)
def test_is_the_expected_risk_of_the_subset(name: str, alpha: float) -> None:
    model = small_model(name).train()
    loss, tokens = minimum_risk(TrainingStep(model, CrossEntropy(), BATCH), utility=shared, alpha=alpha)
    assert int(tokens) == TOKENS
    assert float(loss.smoothed.detach()) == pytest.approx(risk(model, alpha), rel=1e-5)
    torch.testing.assert_close(loss.nll, teacher_forcing(TrainingStep(model, CrossEntropy(), BATCH))[0].nll)
    assert not loss.nll.requires_grad


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    model = small_model(name).double().train()
    found = gradients(
        minimum_risk(TrainingStep(model, CrossEntropy(), BATCH), utility=shared, alpha=0.7)[0].smoothed, model
    )
    generator = torch.Generator().manual_seed(0)
    for parameter, gradient in zip(model.parameters(), found, strict=True):
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter += sign * 1e-4 * direction
                values.append(risk(model, 0.7))
                parameter -= sign * 1e-4 * direction
        expected = (values[0] - values[1]) / 2e-4
        assert float((gradient * direction).sum()) == pytest.approx(expected, rel=1e-4, abs=1e-7)
    assert sum(float(gradient.abs().sum()) for gradient in found) > 0.01


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("name", MODELS)
def test_parts_of_the_batch_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(name).double().train()

    def together(size: int | None) -> tuple[Tensor, list[Tensor]]:
        cuts = [slice(0, 3)] if size is None else [slice(i, i + size) for i in range(0, 3, size)]
        monkeypatch.setattr(module, "parts", lambda *_: cuts)
        loss = minimum_risk(TrainingStep(model, CrossEntropy(), BATCH), utility=shared)[0]
        return loss.smoothed, gradients(loss.smoothed, model)

    for size in (1, 2):
        torch.testing.assert_close(together(size), together(None))


def test_the_beginning_of_a_batch_that_takes_its_place_when_memory_runs_out() -> None:
    batch = placeholder_batch(Batch(torch.arange(4, 11)[None], torch.tensor([[BOS, *range(4, 12), EOS]])))
    loss, tokens = minimum_risk(TrainingStep(small_model("rnnsearch"), CrossEntropy(), batch), utility=shared)
    assert bool(loss.smoothed.isfinite())
    assert int(tokens) == 7


def test_parts_hold_so_many_tokens_or_one_sentence() -> None:
    subsets = [
        Subset([(4,) * length] * rows, [0.0] * rows) for rows, length in ((2, 3), (1, 8), (3, 1), (9, 9), (1, 0))
    ]
    assert list(parts(subsets, 1)) == [slice(i, i + 1) for i in range(5)]
    assert list(parts(subsets, 1000)) == [slice(0, 5)]
    assert list(parts(subsets, 30)) == [slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5)]
    assert list(parts([], 5)) == [slice(0, 0)]


@pytest.mark.parametrize("name", MODELS)
def test_samples_come_as_often_as_the_model_says(name: str) -> None:
    """And without its dropout, in training mode too."""
    torch.manual_seed(1)
    model, samples = small_model(name).eval(), 4000
    with torch.no_grad():  # nothing that samples never have; and an early end, so that all have one
        model.decoder.output_projection.bias[[PAD, BOS]] = -100.0
        model.decoder.output_projection.bias[EOS] += 3.0
        state = model.encode(BATCH.src_tokens[:1])
        expected = {tokens: np.exp(log_prob(model, state, tokens)) for tokens in [(), (5,), (9,), (7, 7)]}
    set_dropout(model, 0.5)
    found = module._draw(model, BATCH, samples)
    assert model.training
    assert len(found) == 3
    for tokens, p in expected.items():
        spread = 4 * (p * (1 - p) / samples) ** 0.5
        assert abs(found[0].count(tokens) / samples - p) < spread + 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_padding_and_the_beginning_are_never_drawn(name: str) -> None:
    model = small_model(name)
    with torch.no_grad():
        model.decoder.output_projection.bias[[PAD, BOS]] = 100.0  # all probability, where it counted
    drawn = set(itertools.chain(*itertools.chain(*module._draw(model, BATCH, 50))))
    assert len(drawn) > 3
    assert not drawn & {PAD, BOS}


def test_what_does_not_end_is_no_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("rnnsearch")
    with torch.no_grad():
        model.decoder.output_projection.bias[EOS] -= 100.0
    assert module._draw(model, BATCH, 3) == [[], [], []]
    loss, _ = minimum_risk(TrainingStep(model, CrossEntropy(), BATCH), utility=shared, samples=3)
    certain = -sum(shared(reference, reference) for reference in REFERENCES)
    assert float(loss.smoothed.detach()) == pytest.approx(certain)
    assert all(float(gradient.abs().max()) == 0 for gradient in gradients(loss.smoothed, model))


def test_sources_may_be_feature_vectors() -> None:
    model: Seq2Seq = build(model_config("show_attend_tell"), src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
    width = model.encoder.description.feature_dim
    features = torch.randn(*BATCH.src_tokens.shape, width, generator=torch.Generator().manual_seed(0))
    batch = BATCH._replace(src_features=features * (BATCH.src_tokens != EOS)[..., None])
    loss, _ = minimum_risk(TrainingStep(model, CrossEntropy(), batch), utility=shared, samples=3)
    assert sum(float(gradient.abs().sum()) for gradient in gradients(loss.smoothed, model)) > 0


@pytest.mark.nightly
def test_it_learns_what_the_utility_likes() -> None:
    """Words that it does not count become rare, though no reference was ever imitated."""
    torch.manual_seed(3)
    model = small_model("rnnsearch").train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batch = Batch(BATCH.src_tokens, torch.tensor([[BOS, 7, EOS]] * 3))
    before = sum(shared(tokens, (7,)) for tokens in itertools.chain(*module._draw(model, batch, 200))) / 600
    for step in range(40):
        optimizer.zero_grad()
        loss, _ = minimum_risk(
            TrainingStep(model, CrossEntropy(), batch, number=step), utility=shared, samples=8, alpha=1.0
        )
        loss.smoothed.backward()
        optimizer.step()
    after = sum(shared(tokens, (7,)) for tokens in itertools.chain(*module._draw(model, batch, 200))) / 600
    assert after > before + 0.2
