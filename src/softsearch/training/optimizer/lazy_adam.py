"""Adam for sparse gradients with few rows of a large matrix, and clipping of sparse and dense gradients."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm


class MixedAdam(torch.optim.Adam):
    """Adam for the parameters that subclasses do not update themselves."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self.update(group)
        super().step()  # skips parameters without a gradient
        return loss

    def update(self, group: dict[str, Any]) -> None:
        """Updates the parameters of a group that Adam does not update, and clears their gradients."""
        raise NotImplementedError


class LazyAdam(MixedAdam):
    """Adam (Kingma & Ba 2015, arXiv:1412.6980) that updates only the rows with a gradient, moments included.

    Parameters with a dense gradient get Adam's own step. Sparse gradients are handled as in ``torch.optim.SparseAdam``,
    which does not support dense ones.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        *,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, lr=lr, betas=(betas[0], betas[1]), eps=eps)

    def update(self, group: dict[str, Any]) -> None:
        """Updates parameters with a sparse gradient."""
        for parameter in group["params"]:
            if parameter.grad is not None and parameter.grad.is_sparse:
                self._step_rows(parameter, group)
                parameter.grad = None

    def _step_rows(self, parameter: Tensor, group: dict[str, Any]) -> None:
        """Applies algorithm 1 of the paper to the rows of the gradient; bias correction counts all steps."""
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = (torch.zeros_like(parameter) for _ in range(2))
        state["step"] += 1
        step, (beta1, beta2) = float(state["step"]), group["betas"]
        assert parameter.grad is not None
        gradient = parameter.grad.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
        mean = state["exp_avg"][rows].lerp_(values, 1 - beta1)
        square = state["exp_avg_sq"][rows].mul_(beta2).addcmul_(values, values, value=1 - beta2)
        state["exp_avg"][rows], state["exp_avg_sq"][rows] = mean, square
        denominator = square.div_(1 - beta2**step).sqrt_().add_(group["eps"])
        parameter[rows] -= group["lr"] / (1 - beta1**step) * mean / denominator


def clip_by_norm(parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Clips all gradients to a total norm of ``max_norm``, which may be infinite; returns the norm before clipping."""
    parameters = [*parameters]
    norm = get_total_norm(gradient_values(parameters))
    if max_norm < math.inf:
        clip_grads_with_norm_(parameters, max_norm, norm)
    return norm


def clip_by_value(parameters: Iterable[nn.Parameter], limit: float) -> None:
    """Clips every element of all gradients to the range from ``-limit`` to ``limit``."""
    for values in gradient_values(parameters):
        values.clamp_(-limit, limit)


def gradient_values(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """Returns the values of gradients as dense tensors that share their memory; coalesces sparse gradients."""
    values = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()  # a row may occur several times
            values.append(parameter.grad.values() if parameter.grad.is_sparse else parameter.grad)
    return values
