"""Dropout, maxout and the start of a layer."""

import pytest
import torch

from softsearch.models.layers import Dropout, maxout, xavier

COUNT = 200_000


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_dropout_rate_and_expectation(rate: float) -> None:
    torch.manual_seed(0)
    dropped = Dropout(rate)(torch.ones(COUNT))
    actual = round(rate * 256) / 256
    kept = dropped[dropped != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - actual)))
    sigma = (actual * (1 - actual) / COUNT) ** 0.5
    assert abs(float((dropped == 0).double().mean()) - actual) < 4 * sigma
    assert abs(float(dropped.double().mean()) - 1) < 4 * sigma / (1 - actual)


def test_dropout_is_off_in_evaluation_and_at_rate_zero() -> None:
    x = torch.randn(5, 3)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_dropout_depends_on_the_seed_alone() -> None:
    dropout, x = Dropout(0.5), torch.ones(3, 7, 5)  # 105 entries: no multiple of the eight bytes of a draw

    def drawn(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return dropout(x)

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    torch.manual_seed(1)
    assert not torch.equal(dropout(x), dropout(x))


def test_dropout_scales_the_gradient_like_the_value() -> None:
    x = torch.full((1000,), 3.0, requires_grad=True)
    dropped = Dropout(0.4)(x)
    dropped.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * 3, dropped.detach())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_dropout_keeps_shape_and_dtype(dtype: torch.dtype) -> None:
    x = torch.ones(3, 5, dtype=dtype)
    assert Dropout(0.5)(x).dtype == dtype
    assert Dropout(0.5)(x).shape == x.shape
    assert Dropout(0.5)(x[:0]).shape == (0, 5)


def test_rate_close_to_one_keeps_something() -> None:
    torch.manual_seed(0)
    dropped = Dropout(0.999)(torch.ones(COUNT))
    assert 0 < int((dropped != 0).sum()) < COUNT // 100
    assert torch.isfinite(dropped).all()


def test_maxout_takes_the_larger_neighbour() -> None:
    x = torch.tensor([[1.0, 2.0, -3.0, -4.0, 5.0, 5.0]])
    assert maxout(x).tolist() == [[2.0, -3.0, 5.0]]


def test_xavier_counts_each_block_by_itself() -> None:
    torch.manual_seed(0)
    layer = xavier(torch.nn.Linear(100, 300), blocks=3)
    bound = (6 / (100 + 100)) ** 0.5
    for block in layer.weight.detach().chunk(3):
        assert 0.95 * bound < float(block.abs().max()) <= bound
    assert layer.bias.eq(0).all()
