"""How large the gradients of each part of a model are."""

import torch
from lightning.pytorch.strategies import FSDPStrategy, Strategy
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

TOTAL = "total"


def gradient_norms(model: nn.Module, strategy: Strategy) -> dict[str, Tensor]:
    """The L2 norm of the gradients of each part, and of all; under FSDP a collective of all processes.

    Args:
        model: has ``encoder`` and ``decoder``, and gradients.
        strategy: under FSDP, which cuts gradients into shares, the squares of all processes are added.
    """
    gradients: dict[str, list[Tensor]] = {}
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        group = gradients.setdefault("embeddings" if id(parameter) in embeddings else _part(name), [])
        if gradient is not None:
            # A row may be in a sparse gradient several times.
            dense = gradient.coalesce().values() if gradient.is_sparse else gradient
            group.append(dense.detach())
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
    return dict(zip((*gradients, TOTAL), norms.unbind(), strict=True))


def _part(name: str) -> str:
    """The part that a parameter belongs to, by its name in a :class:`softsearch.models.interface.Seq2Seq`."""
    if name.startswith("encoder."):
        return "encoder"
    if name.startswith("decoder.output."):
        return "output"
    # The decoder's attention to the source, whether it is one module or one in each layer.
    return "attention" if ".attention." in name or ".cross_attention." in name else "decoder"
