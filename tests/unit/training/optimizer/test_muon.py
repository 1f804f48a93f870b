"""Muon against a transcription of its update, PyTorch's own, and the parameters that it takes for matrices."""

import copy
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.app.config.composition import CONFIGS
from softsearch.models.layers import blocks_of, xavier
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import small_model
from softsearch.training.optimizer.muon import Muon, orthogonalize, parameter_groups

Array = NDArray[np.float64]


def newton_schulz(matrix: Array, steps: int) -> Array:
    """The iteration as its authors write it down."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix / np.linalg.norm(matrix)
    transposed = x.shape[0] > x.shape[1]
    x = x.T if transposed else x
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if transposed else x


def gradients(*shapes: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def step(optimizer: Muon, parameters: Sequence[nn.Parameter], values: Sequence[Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.grad = value.clone().to(parameter.dtype)
    optimizer.step()


@pytest.mark.parametrize("shape", [(3, 6, 6), (2, 4, 9), (2, 9, 4)])
def test_the_iteration_is_that_of_its_authors_and_flattens_singular_values(shape: tuple[int, ...]) -> None:
    (matrices,) = gradients(shape)
    found = orthogonalize(matrices, 5)
    for matrix, ours in zip(matrices, found, strict=True):
        np.testing.assert_allclose(ours, newton_schulz(matrix.numpy(), 5), rtol=1e-9)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.3
    assert values.max() < 1.3


def test_an_update_is_momentum_and_iteration_of_each_block() -> None:
    wide, stacked = (nn.Parameter(torch.zeros(shape, dtype=torch.float64)) for shape in ((4, 6), (6, 3)))
    optimizer = Muon(
        [{"params": [wide, stacked], "blocks": [(0, 1), (0, 2)]}], matrix_lr=0.1, newton_schulz_steps=3, bfloat16=False
    )
    expected = [np.zeros((4, 6)), np.zeros((6, 3))]
    means = [np.zeros((4, 6)), np.zeros((6, 3))]
    for seed in range(3):
        values = gradients((4, 6), (6, 3), seed=seed)
        step(optimizer, [wide, stacked], values)
        for place, (value, count) in enumerate(zip(values, (1, 2), strict=True)):
            gradient = value.numpy()
            means[place] = 0.95 * means[place] + 0.05 * gradient
            nesterov = 0.05 * gradient + 0.95 * means[place]
            blocks = [newton_schulz(block, 3) for block in np.split(nesterov, count)]
            expected[place] -= 0.1 * np.concatenate(blocks)
    for parameter, value in zip((wide, stacked), expected, strict=True):
        np.testing.assert_allclose(parameter.detach(), value, rtol=1e-9)


def test_blocks_may_lie_side_by_side() -> None:
    (value,) = gradients((3, 6))
    rows, columns = nn.Parameter(torch.zeros(6, 3).double()), nn.Parameter(torch.zeros(3, 6).double())
    step(Muon([{"params": [columns], "blocks": [(1, 2)]}], bfloat16=False), [columns], [value])
    step(Muon([{"params": [rows], "blocks": [(0, 2)]}], bfloat16=False), [rows], [torch.cat(value.chunk(2, 1))])
    torch.testing.assert_close(torch.cat(columns.chunk(2, 1)), rows)


def test_filters_are_a_matrix_with_a_row_for_each_output_channel() -> None:
    """As in the authors' code, which flattens the last dimensions of a convolution's weight."""
    convolution = nn.Conv1d(3, 4, 5).double()
    before = convolution.weight.detach().clone()
    (value,) = gradients((4, 3, 5))
    step(Muon([{"params": [convolution.weight], "blocks": [(0, 1)]}], bfloat16=False), [convolution.weight], [value])
    nesterov = (0.05 + 0.95 * 0.05) * value.numpy().reshape(4, 15)
    expected = -0.02 * newton_schulz(nesterov, 5).reshape(4, 3, 5)
    np.testing.assert_allclose((convolution.weight - before).detach(), expected, rtol=1e-9)


@pytest.mark.parametrize("shape", [(8, 16), (16, 8)])
def test_a_matrix_moves_as_by_pytorch(shape: tuple[int, int]) -> None:
    ours, theirs = (nn.Parameter(torch.zeros(shape)) for _ in range(2))
    mine = Muon([{"params": [ours], "blocks": [(0, 1)]}], matrix_lr=0.02)
    other = torch.optim.Muon([theirs], lr=0.02, weight_decay=0)
    for seed in range(3):
        (value,) = gradients(shape, seed=seed)
        step(mine, [ours], [value])
        theirs.grad = value.float()
        other.step()
    torch.testing.assert_close(ours, theirs, rtol=0.01, atol=2e-4)


def test_other_parameters_move_as_by_adam() -> None:
    ours, theirs = (nn.Parameter(torch.ones(5)) for _ in range(2))
    mine = Muon([{"params": [ours]}], lr=0.1)
    other = torch.optim.Adam([theirs], lr=0.1, betas=(0.9, 0.98), eps=1e-9, fused=True)
    for seed in range(3):
        (value,) = gradients((5,), seed=seed)
        step(mine, [ours], [value])
        theirs.grad = value.float()
        other.step()
    assert torch.equal(ours, theirs)


def test_a_resumed_optimizer_goes_on() -> None:
    model = small_model("nematus").float()
    optimizer = Muon(parameter_groups(model))
    values = [gradients(*(p.shape for p in model.parameters()), seed=seed) for seed in range(3)]
    step(optimizer, list(model.parameters()), values[0])
    other = copy.deepcopy(model)
    resumed = Muon(parameter_groups(other))
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for value in values[1:]:
        step(optimizer, list(model.parameters()), value)
        step(resumed, list(other.parameters()), value)
    for found, expected in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(found, expected)


def blocks(model: Seq2Seq) -> dict[str, tuple[int, int]]:
    group = parameter_groups(model)[1]
    named = {id(parameter): name for name, parameter in model.named_parameters()}
    return {named[id(p)]: found for p, found in zip(group["params"], group["blocks"], strict=True)}


def names(model: nn.Module, group: dict[str, list[nn.Parameter]]) -> set[str]:
    found = {parameter: name for name, parameter in model.named_parameters()}
    return {found[parameter] for parameter in group["params"]}


def test_hidden_matrices_of_a_transformer_are_its_projections() -> None:
    model = small_model("transformer_tiny")
    others, matrices = parameter_groups(model)
    assert {name.rpartition(".")[0].rpartition(".")[2] for name in names(model, matrices)} == {
        *("query_projection", "key_value_projection", "output_projection", "hidden_projection")
    }
    assert len(matrices["params"]) + len(others["params"]) == len(list(model.parameters()))
    keys_and_values = blocks(model)["encoder.layers.0.self_attention.key_value_projection.weight"]
    assert keys_and_values == (0, 2)


def test_each_gate_of_a_recurrent_model_is_a_matrix() -> None:
    model = small_model("nematus")
    found = blocks(model)
    assert found["encoder.layers.0.forward_cell.input_projection.weight"] == (0, 3)
    assert found["encoder.layers.0.forward_cell.recurrent_gate_weight"] == (1, 2)
    assert found["encoder.layers.0.forward_cell.recurrent_candidate_weight"] == (1, 1)
    others = parameter_groups(model)[0]
    assert {name for name in names(model, others) if not name.endswith(("bias", "energy_weight"))} == {
        "encoder.embedding.weight"  # tied to the output layer
    }


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONFIGS / "model").glob("*.yaml")))
def test_adam_gets_no_matrix_of_a_hidden_layer(name: str) -> None:
    """It gets embeddings, output layers, gates with one row, and the kernels of Kalchbrenner, one for each unit."""
    model = small_model(name)
    others = {*parameter_groups(model)[0]["params"]}
    found = {path for path, p in model.named_parameters() if p in others and p.dim() > 1 and len(p) > 1}
    allowed = ("embedding.weight", "decoder.output_projection.weight", "kernels")
    assert not {path for path in found if not path.endswith(allowed)}


def test_a_layer_knows_its_blocks() -> None:
    assert blocks_of(xavier(nn.Linear(2, 6), blocks=3)) == 3
    assert blocks_of(nn.Linear(2, 6)) == 1


def test_a_step_that_overflowed_in_float16_changes_nothing() -> None:
    model = small_model("transformer_tiny")
    before = copy.deepcopy(model.state_dict())
    optimizer, scaler = Muon(parameter_groups(model)), torch.amp.GradScaler("cpu")
    loss = sum(parameter.sum() for parameter in model.parameters())
    scaler.scale(loss * torch.inf).backward()
    scaler.step(optimizer)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
