"""Gradient norms of the parts of a model."""

import torch
from lightning.pytorch.strategies import FSDPStrategy, Strategy
from torch import Tensor
from torch.nn.utils import get_total_norm

from softsearch.models.interface import Seq2Seq


def gradient_norms(model: Seq2Seq, strategy: Strategy) -> dict[str, Tensor]:
    """The L2 norm of the gradients of each of :meth:`Seq2Seq.parts`, and of all.

    Under FSDP, which cuts gradients into shares, all processes must call it, and their squares are added.
    """
    gradients = {
        part: [_values(parameter.grad) for parameter in parameters if parameter.grad is not None]
        for part, parameters in model.parts().items()
    }
    if not isinstance(strategy, FSDPStrategy):  # there a part may be none of this process's, but all must add the same
        gradients = {part: group for part, group in gradients.items() if group}
    if not gradients:
        return {}
    norms_of_parts = [get_total_norm(group).to(strategy.root_device, torch.float32) for group in gradients.values()]
    squares = torch.stack(norms_of_parts).square()
    if isinstance(strategy, FSDPStrategy):
        summed = strategy.reduce(squares, reduce_op="sum")
        assert isinstance(summed, Tensor)
        squares = summed
    norms = torch.cat([squares, squares.sum()[None]]).sqrt()
    return dict(zip((*gradients, "total"), norms.unbind(), strict=True))


def _values(gradient: Tensor) -> Tensor:
    """All numbers of a gradient; a row may be in a sparse one several times."""
    return (gradient.coalesce().values() if gradient.is_sparse else gradient).detach()
