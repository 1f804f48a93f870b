"""Norms of the gradients of a model's parts."""

import torch
from lightning.pytorch.strategies import FSDPStrategy, Strategy
from torch import Tensor
from torch.nn.utils import get_total_norm

from softsearch.models.seq2seq import Seq2Seq
from softsearch.training.optimizer.lazy_adam import gradient_values


def gradient_norms(model: Seq2Seq, strategy: Strategy) -> dict[str, Tensor]:
    """Returns the L2 norms of the gradients of all ``Seq2Seq.parts``, and of the whole model.

    FSDP splits gradients among processes, so all must call this; their squares are added.
    """
    gradients = {part: gradient_values(parameters) for part, parameters in model.parts().items()}
    if not isinstance(strategy, FSDPStrategy):  # with FSDP all processes must add the same parts, even empty ones
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
