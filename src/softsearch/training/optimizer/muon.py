"""Muon for the matrices of hidden layers, Adam for all other parameters."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from softsearch.models.cells import Cell
from softsearch.models.layers import blocks_of
from softsearch.models.seq2seq import Seq2Seq
from softsearch.ranges import Positive, Range, Rate, Size
from softsearch.training.optimizer.lazy_adam import MixedAdam

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic polynomial, as chosen by the authors


class Muon(MixedAdam):
    """Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon) for groups with ``blocks``, Adam for others.

    M_t = momentum M_{t-1} + (1 - momentum) G_t; W_t = W_{t-1} - lr sqrt(max(1, rows / columns)) NS(G_t + momentum
    (M_t - G_t)), which is Nesterov's momentum. NS sets all singular values to about 1, by ``newton_schulz_steps`` of
    X <- a X + (b A + c A^2) X, A = X X^T, from the matrix divided by its norm. Matrices of one shape are iterated
    together; with DDP, each process iterates a part of them. The matrices in one parameter, such as those of a cell's
    gates, are iterated separately. The filters of a convolution are one matrix, with a row for each output channel.

    Args:
        params: groups of ``parameter_groups``.
        lr: learning rate of Adam for all other parameters; ``betas`` and ``eps`` are also Adam's.
        matrix_lr: lr in the equation above.
        bfloat16: iterate in bfloat16, as the authors do, instead of the precision of the matrices.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | list[dict[str, Any]],
        *,
        lr: Positive = 0.005,
        matrix_lr: Annotated[float, Range(0, 1e4, open_low=True)] = 0.02,
        momentum: Rate = 0.95,
        newton_schulz_steps: Size = 5,
        bfloat16: bool = True,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-9,
    ) -> None:
        super().__init__(params, lr=lr, betas=(betas[0], betas[1]), eps=eps)
        self.momentum, self.newton_schulz_steps, self.bfloat16 = momentum, newton_schulz_steps, bfloat16
        for group in self.param_groups:
            group["fused"] = True  # only for Adam's group: a fused optimizer would skip overflowing steps itself
            if "blocks" in group:
                group["lr"] = matrix_lr

    def update(self, group: dict[str, Any]) -> None:
        """Updates the matrices of a group that has ``blocks``."""
        if "blocks" not in group:
            return
        alike: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)  # matrices and updates of one shape
        for parameter, (dim, count) in zip(group["params"], group["blocks"], strict=True):
            if parameter.grad is None:
                continue
            gradient, state, parameter.grad = parameter.grad, self.state[parameter], None
            if not state:
                state["momentum"] = torch.zeros_like(parameter)
                state["step"] = torch.zeros(())  # Adam needs it to load a state
            mean = state["momentum"].lerp_(gradient, 1 - self.momentum)
            update = gradient.lerp(mean, self.momentum).flatten(1)  # filters become one matrix
            for matrix, change in zip(parameter.chunk(count, dim), update.chunk(count, dim), strict=True):
                alike[change.shape].append((matrix, change))
        for (rows, columns), found in alike.items():
            matrices, changes = map(list, zip(*found, strict=True))
            stack = torch.stack(changes)
            orthogonal = _orthogonalize_together(stack.bfloat16() if self.bfloat16 else stack, self.newton_schulz_steps)
            moves = orthogonal.to(stack.dtype).unbind()
            for matrix, change in zip(matrices, moves, strict=True):
                matrix.add_(change.reshape(matrix.shape), alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)


def _orthogonalize_together(matrices: Tensor, steps: int) -> Tensor:
    """Shares the work of ``orthogonalize`` among the processes of a training, which all have the same matrices."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return orthogonalize(matrices, steps)
    processes, count = distributed.get_world_size(), len(matrices)
    padded = functional.pad(matrices, (0, 0, 0, 0, 0, -count % processes))
    own = orthogonalize(padded.chunk(processes)[distributed.get_rank()], steps).contiguous()
    distributed.all_gather(list(padded.chunk(processes)), own)
    return padded[:count]


def orthogonalize(matrices: Tensor, steps: int) -> Tensor:
    """Runs the Newton-Schulz iteration of ``Muon`` on ``[count, rows, columns]`` matrices."""
    if matrices.shape[1] > matrices.shape[2]:
        return orthogonalize(matrices.mT, steps).mT
    a, b, c = _COEFFICIENTS
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def parameter_groups(model: Seq2Seq) -> list[dict[str, Any]]:
    """Returns two groups: the matrices and filters of hidden layers are the second, all other parameters the first.

    Embeddings, output layers, vectors and matrices with one row belong to the first. ``blocks`` of the second has, for
    each parameter, the dimension along which its matrices are stacked, and their number.
    """
    output = set(model.decoder.output_projection.parameters())
    blocks: dict[Tensor, tuple[int, int]] = {}
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv1d) and module.weight not in output:
            if len(module.weight) > 1:
                blocks[module.weight] = (0, blocks_of(module))
        elif isinstance(module, Cell):
            recurrent = (p for p in module.parameters(recurse=False) if p.dim() == 2)
            blocks.update((parameter, (1, parameter.shape[1] // module.hidden_dim)) for parameter in recurrent)
    blocks = {parameter: along for parameter, along in blocks.items() if parameter.requires_grad}
    others = [p for p in model.parameters() if p.requires_grad and p not in blocks]
    return [{"params": others}, {"params": [*blocks], "blocks": [*blocks.values()]}]
