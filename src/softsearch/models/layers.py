"""Small layers that several architectures share."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Dropout(nn.Module):
    """Inverted dropout (Srivastava et al. 2014) at a rate in [0, 1), with a cheap mask on CPU.

    On CPU the mask comes from random bytes, eight for each draw of the generator, so the rate is a multiple of 1/256
    (0.3 becomes 77/256, and the kept values are scaled by 256/179: the expectation is exact).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drops entries of ``x`` while training."""
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():  # random_ would end the graph of torch.compile
            return functional.dropout(x, self.rate)
        threshold = min(round(self.rate * 256), 255)
        count = x.numel()
        draws = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        # As bytes: a comparison into booleans takes 30 times as long, and their conversion 8 times.
        keep = draws.view(torch.uint8)[:count].view(x.shape).ge_(threshold)
        return x * keep.to(x.dtype).mul_(256 / (256 - threshold))

    def extra_repr(self) -> str:
        """The rate, for ``print(model)``."""
        return f"rate={self.rate}"


class NormedLinear(nn.Linear):
    """LN(W x + b), with layer normalisation (Ba et al. 2016, arXiv:1607.06450)."""

    def __init__(self, input_dim: int, output_dim: int, *, bias: bool = True) -> None:
        super().__init__(input_dim, output_dim, bias=bias)
        self.norm = nn.LayerNorm(output_dim)

    def forward(self, x: Tensor) -> Tensor:
        """``[..., input_dim]`` -> ``[..., output_dim]``."""
        return self.norm(super().forward(x))


class Projections(nn.ModuleDict):
    """Linear maps of several inputs, whose products are added up; only the first has a bias.

    With ``layer_norm`` each product is normalised by itself, and each has a bias.
    """

    def __init__(self, output_dim: int, *, layer_norm: bool = False, **input_dims: int) -> None:
        super().__init__()
        linear = NormedLinear if layer_norm else nn.Linear
        for name, dim in input_dims.items():
            self[name] = linear(dim, output_dim, bias=layer_norm or len(self) == 0)

    def layers(self) -> list[nn.Linear]:
        """The maps in the order of the inputs."""
        return cast(list[nn.Linear], list(self.values()))

    def forward(self, **inputs: Tensor) -> Tensor:
        """The sum over the inputs that are not None."""
        products: list[Tensor] = [self[name](x) for name, x in inputs.items()]
        return sum(products[1:], products[0])


def maxout(x: Tensor) -> Tensor:
    """Maximum over neighbouring pairs (Goodfellow et al. 2013): ``[..., 2 * dim]`` -> ``[..., dim]``."""
    return x.unflatten(-1, (-1, 2)).amax(-1)


def xavier(layer: nn.Linear, blocks: int = 1) -> nn.Linear:
    """Initialises a layer's weight, ``blocks`` stacked matrices, as in Glorot & Bengio 2010, and its bias with 0.

    The layer keeps ``blocks`` for ``blocks_of``.
    """
    vars(layer)["blocks"] = blocks
    for weight in layer.weight.data.chunk(blocks):
        nn.init.xavier_uniform_(weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def weight_of(layer: nn.Linear) -> Tensor:
    """The weight that a layer applies, for code that reads it: a PEFT adapter changes it."""
    change = getattr(layer, "get_delta_weight", None)
    return layer.weight if change is None else layer.weight + change("default")


class Layer(nn.Module):
    """A layer of a stack, which may compute its activations again in the backward pass instead of keeping them."""

    keeps_activations = True

    def __call__(self, *inputs: Any) -> Any:
        """Calls the layer; a recomputation draws the same random numbers."""
        if self.keeps_activations or not torch.is_grad_enabled():
            return super().__call__(*inputs)
        return checkpoint(super().__call__, *inputs, use_reentrant=False)


def recompute_activations(model: nn.Module) -> bool:
    """Makes the layers of all stacks of a model recompute their activations; returns whether there are any."""
    layers = [module for module in model.modules() if isinstance(module, Layer)]
    for layer in layers:
        layer.keeps_activations = False
    return bool(layers)


def blocks_of(layer: nn.Module) -> int:
    """The number of matrices stacked in a layer's weight, for code that treats each matrix by itself."""
    return int(vars(layer).get("blocks", 1))


def random_vector(dim: int) -> nn.Parameter:
    """A vector of weights, uniform in [-dim^-0.5, dim^-0.5]."""
    return nn.Parameter(nn.init.uniform_(torch.empty(dim), -(dim**-0.5), dim**-0.5))
