"""Computes the gradients of matrices that a loop over time multiplies in every step once, for all steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_MATMUL = (torch.Tensor.matmul, torch.Tensor.__matmul__, torch.matmul)


@contextmanager
def one_gradient_per_matrix() -> Iterator[None]:
    """Computes gradients of matrices in ``x @ matrix`` and linear layers once, at the end of the backward pass.

    The gradient of n steps is then one product, ``[inputs, n * rows] @ [n * rows, outputs]``, instead of n small ones
    and their sum; and under autocast a matrix is cast once, not in every step. If a backward pass leaves out a matrix
    (``torch.autograd.grad`` for other tensors), no other pass may go through the same graph.
    """
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        with _Matrices():
            yield
    else:
        yield


class _Uses:
    """A matrix and what the backward pass needs from its products."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix  # [..., inputs, outputs]
        self.transposed = matrix.mT if matrix.dim() == 2 else matrix.mT.contiguous()  # else oneDNN copies it each time
        self.inputs: list[Tensor] = []
        self.gradients: list[Tensor] = []


class _Matrices(TorchFunctionMode):
    """Replaces products with matrices that need a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, tuple[Tensor, Tensor, _Uses]] = {}  # by identity; the first keeps it alive

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replaces a product if its matrix needs a gradient; calls any other function unchanged."""
        if func is functional.linear and args[1].requires_grad:
            product = self._product(args[0], args[1], linear=True)
            bias = args[2] if len(args) > 2 else (kwargs or {}).get("bias")
            return product if bias is None else product + bias.to(product.dtype)
        if func in _MATMUL and _is_matrix(*args):
            return self._product(*args)
        return func(*args, **(kwargs or {}))

    def _product(self, x: Tensor, matrix: Tensor, *, linear: bool = False) -> Tensor:
        if id(matrix) not in self.known:
            device = x.device.type
            dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else matrix.dtype
            uses = _Uses((matrix.detach().T if linear else matrix.detach()).to(dtype))
            self.known[id(matrix)] = (matrix, _Begin.apply(matrix, uses, linear), uses)
        _, begin, uses = self.known[id(matrix)]
        product: Tensor = _Product.apply(x, begin, uses)
        return product


def _is_matrix(x: Tensor, matrix: Tensor) -> bool:
    """Tells whether the gradient of ``matrix`` can be deferred: it is a matrix, or a stack that is not broadcast."""
    fits = matrix.dim() == 2 or (matrix.dim() > 2 and x.shape[:-2] == matrix.shape[:-2])
    return fits and matrix.requires_grad and matrix.shape[-1] > 1


class _Begin(torch.autograd.Function):
    """A scalar that all products with a matrix depend on, so that its backward pass follows theirs."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, uses: _Uses, linear: bool) -> Tensor:
        ctx.uses, ctx.linear, ctx.dtype = uses, linear, matrix.dtype
        return matrix.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None, None]:
        uses = ctx.uses
        x, y = torch.cat(uses.inputs, dim=-2), torch.cat(uses.gradients, dim=-2)
        uses.inputs, uses.gradients = [], []
        return (y.mT @ x if ctx.linear else x.mT @ y).to(ctx.dtype), None, None


class _Product(torch.autograd.Function):
    """The product of one step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, begin: Tensor, uses: _Uses) -> Tensor:
        x = x.to(uses.matrix.dtype)
        ctx.uses = uses
        ctx.save_for_backward(x, begin)
        return x @ uses.matrix

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x, begin = ctx.saved_tensors
        uses, flat = ctx.uses, ctx.uses.matrix.dim() == 2
        uses.inputs.append(x.flatten(0, -2) if flat else x)
        uses.gradients.append(gradient.flatten(0, -2) if flat else gradient)
        return gradient @ uses.transposed if ctx.needs_input_grad[0] else None, begin, None
