"""Small layers that several architectures share."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError


class Dropout(nn.Module):
    """Inverted dropout (Srivastava et al. 2014), with a cheap mask on CPU.

    On CPU the mask comes from random bytes, eight for each draw of the generator, so the rate is a multiple of 1/256
    (0.3 becomes 77/256, and the kept values are scaled by 256/179: the expectation is exact).

    Raises:
        ConfigError: the rate is outside [0, 1).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ConfigError(
                f"dropout is {rate}, expected at least 0 and less than 1; change it in the model's config"
            )
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drops entries of ``x`` while training."""
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return functional.dropout(x, self.rate)
        threshold = min(round(self.rate * 256), 255)
        count = x.numel()
        draws = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        keep = draws.view(torch.uint8)[:count].view(x.shape) >= threshold
        return x * keep.to(x.dtype).mul_(256 / (256 - threshold))

    def extra_repr(self) -> str:
        """The rate, for ``print(model)``."""
        return f"rate={self.rate}"


class Maxout(nn.Module):
    """Maximum over neighbouring pairs (Goodfellow et al. 2013): t_j = max(t~_{2j-1}, t~_{2j})."""

    def forward(self, x: Tensor) -> Tensor:
        """``[..., 2 * dim]`` -> ``[..., dim]``."""
        return x.unflatten(-1, (-1, 2)).amax(-1)
