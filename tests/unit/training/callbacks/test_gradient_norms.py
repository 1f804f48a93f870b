"""Gradient norms of the parts of a model."""

from typing import Any

import pytest
import torch
from lightning.pytorch.strategies import FSDPStrategy, SingleDeviceStrategy
from torch import Tensor, nn

from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import small_model
from softsearch.training.callbacks.gradient_norms import gradient_norms

ALONE = SingleDeviceStrategy()
SRC, TGT = torch.tensor([[4, 5, 2], [6, 2, 0]]), torch.tensor([[1, 7, 8], [1, 5, 2]])


def trained(name: str, *options: str) -> Seq2Seq:
    model = small_model(name, *options).float()
    model(SRC, TGT).square().sum().backward()
    return model


def named(model: nn.Module, *prefixes: str) -> list[Tensor]:
    chosen = (p.grad for name, p in model.named_parameters() if name.startswith(prefixes))
    return [gradient for gradient in chosen if gradient is not None]


def norm(gradients: list[Tensor]) -> float:
    return float(torch.cat([g.to_dense().flatten() for g in gradients]).norm())


def test_each_parameter_counts_in_its_part() -> None:
    model = trained("rnnsearch", "model.embeddings.tie=none")
    embeddings = named(model, "encoder.embedding.", "decoder.embedding.")
    expected = {
        "embeddings": embeddings,
        "encoder": [g for g in named(model, "encoder.") if all(g is not e for e in embeddings)],
        "attention": named(model, "decoder.attention."),
        "output": named(model, "decoder.output_projection."),
        "decoder": named(model, "decoder.initial", "decoder.cell", "decoder.readout"),
        "total": named(model, ""),
    }
    found = gradient_norms(model, ALONE)
    assert set(found) == set(expected)
    for part, gradients in expected.items():
        assert gradients
        assert float(found[part]) == pytest.approx(norm(gradients), rel=1e-5), part
    assert sum(len(gradients) for gradients in expected.values()) == 2 * len(expected["total"])


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("transformer_tiny", {"embeddings", "encoder", "attention", "decoder", "output"}),
        ("luong2015", {"embeddings", "encoder", "attention", "decoder", "output"}),
        ("gru", {"embeddings", "encoder", "decoder", "output"}),
    ],
)
def test_parts_of_other_models(name: str, parts: set[str]) -> None:
    model = trained(name, "model.embeddings.tie=none")
    assert set(gradient_norms(model, ALONE)) == parts | {"total"}


def test_a_matrix_that_embeds_and_predicts_counts_once() -> None:
    model = trained("transformer_tiny", "model.embeddings.tie=all")
    found = {part: float(value) for part, value in gradient_norms(model, ALONE).items()}
    total = found.pop("total")
    assert sum(value**2 for value in found.values()) == pytest.approx(total**2, rel=1e-5)
    assert total == pytest.approx(norm(named(model, "")), rel=1e-5)


def test_rows_of_sparse_gradients_are_added_up_first() -> None:
    dense, sparse = (trained("rnnsearch", "model.embeddings.tie=none") for _ in range(2))
    for module in sparse.modules():
        if isinstance(module, nn.Embedding):
            module.sparse = True
    sparse.zero_grad()
    sparse(SRC, TGT).square().sum().backward()
    assert any(p.grad is not None and p.grad.is_sparse for p in sparse.parameters())
    found, expected = gradient_norms(sparse, ALONE), gradient_norms(dense, ALONE)
    torch.testing.assert_close(found, expected)


def test_what_is_frozen_has_no_part() -> None:
    model = small_model("rnnsearch").float()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("decoder.output_projection."))
    model(SRC, TGT).sum().backward()
    assert set(gradient_norms(model, ALONE)) == {"output", "total"}
    assert gradient_norms(small_model("rnnsearch"), ALONE) == {}


class Shares(FSDPStrategy):
    """Four processes that hold the same shares."""

    root_device = torch.device("cpu")

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Tensor:
        assert reduce_op == "sum"
        return 4 * tensor


def test_shares_of_a_gradient_are_added_as_squares() -> None:
    model = trained("rnnsearch")
    alone, together = gradient_norms(model, ALONE), gradient_norms(model, Shares())
    assert {part: 2 * float(value) for part, value in alone.items()} == pytest.approx(
        {part: float(value) for part, value in together.items()}
    )


def test_a_process_without_a_share_of_a_part_adds_as_many_numbers_as_the_others() -> None:
    """FSDP leaves parameters of other processes without gradients; sums of unequal length would never end."""
    model = trained("rnnsearch", "model.embeddings.tie=none")
    parts = set(gradient_norms(model, ALONE))
    for name, parameter in model.named_parameters():
        if name.startswith("decoder."):
            parameter.grad = None
    found = gradient_norms(model, Shares())
    assert set(found) == parts
    assert float(found["decoder"]) == float(found["output"]) == 0 < float(found["encoder"])
