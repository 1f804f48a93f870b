"""Contract of every architecture with adapters: nothing changes at first, and then as if the matrices had changed."""

import pytest
import torch

from softsearch.models.interface import CountedDecoder
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import model_config, random_model
from softsearch.training.lora import LoRA, merged
from softsearch.training.optimizer.muon import parameter_groups
from tests.contract.test_training import READ, SRC
from tests.support.models import every_model

pytest.importorskip("peft")
OPTIONS = {"rank": 2, "alpha": 3}


def outputs(model: Seq2Seq) -> list[torch.Tensor]:
    """Teacher forcing, and the first step of a search."""
    width = model.encoder.description.feature_dim
    features = None if width is None else torch.linspace(-1, 1, 3 * 7 * width, dtype=torch.float64).view(3, 7, width)
    with torch.no_grad():
        state = model.encode(SRC, features)
        return [model(SRC, READ, features), model.decoder.step(READ[:, 0], state).logits]


def perturb(model: Seq2Seq) -> None:
    """Gives both factors of each adapter values as after training."""
    generator = torch.Generator().manual_seed(0)
    for name, weight in model.named_parameters():
        if ".lora_" in name:
            weight.data = torch.randn(weight.shape, generator=generator, dtype=weight.dtype) * 0.3


@pytest.mark.parametrize("case", every_model())
def test_an_adapter_changes_nothing_and_then_the_matrices(case: tuple[str, ...]) -> None:
    model, plain = (random_model(model_config(*case)).double().train() for _ in range(2))
    if isinstance(model.decoder, CountedDecoder):
        return
    before = outputs(model)
    weights = dict(model.state_dict())
    LoRA(**OPTIONS).adapt(model)
    for found, expected in zip(outputs(model), before, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)  # kernels round by how memory is aligned
    perturb(model)
    state = model.state_dict()
    expected_weights = dict(weights)
    for name in (n.removesuffix(".lora_A.default.weight") for n in state if n.endswith(".lora_A.default.weight")):
        a, b = state[f"{name}.lora_A.default.weight"], state[f"{name}.lora_B.default.weight"]
        expected_weights[f"{name}.weight"] = weights[f"{name}.weight"] + OPTIONS["alpha"] / OPTIONS["rank"] * b @ a
    found_weights = merged(state, OPTIONS)
    assert found_weights.keys() == weights.keys()
    for name, weight in found_weights.items():
        torch.testing.assert_close(weight, expected_weights[name], rtol=0, atol=1e-12)
    plain.load_state_dict(found_weights)
    for found, expected, first in zip(outputs(model), outputs(plain), before, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
        assert not torch.allclose(found, first)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert sum(len(group["params"]) for group in parameter_groups(model)) == len(trained)
    model(SRC, READ, *extra(model)).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in trained)


def extra(model: Seq2Seq) -> list[torch.Tensor]:
    width = model.encoder.description.feature_dim
    return [] if width is None else [torch.ones(3, 7, width, dtype=torch.float64)]
