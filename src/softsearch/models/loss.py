"""Cross-entropy with label smoothing that never holds all logits (as in Cut Cross-Entropy, Wijmans et al. 2025)."""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.ranges import Rate

Per = Literal["token", "sentence"]
ROWS = 256  # rows of logits alive at a time: 8 MB for a vocabulary of 8,000, about a core's share of cache
LOGITS = 2**24  # most logits alive at a time, 64 MB: a vocabulary over 65,536 has fewer rows at a time


class Loss(NamedTuple):
    """Sums over the target tokens, in nats."""

    smoothed: Tensor  # scalar: what training minimises
    nll: Tensor  # scalar: -log p(target), without smoothing and without gradient; perplexity = exp(nll / tokens)


class CrossEntropy(nn.Module):
    """-sum_v q(v) log p(v), q = (1 - smoothing) * target + smoothing / vocab (Szegedy et al. 2016).

    Args:
        smoothing: share of the probability spread over the whole vocabulary.
        per: what training minimises the mean of: the loss of a token, or that of a sentence, which is the sum of its
            tokens' losses and has gradients larger by the length of a sentence. Learning rates, clipping thresholds and
            Adadelta's eps hold for one of the two only: recurrent models' papers give them for sentences (ADR 0014).

    Raises:
        ConfigError: smoothing is outside [0, 1).
    """

    def __init__(self, *, smoothing: Rate = 0.1, per: Per = "token") -> None:
        super().__init__()
        if not 0 <= smoothing < 1:
            raise ConfigError(
                f"loss.smoothing is {smoothing}, expected at least 0 and less than 1; change loss.smoothing"
            )
        self.smoothing, self.per = smoothing, per

    def forward(self, features: Tensor, targets: Tensor, output: nn.Linear) -> Loss:
        """The loss of ``features`` ``[tokens, dim]`` against ``targets`` ``[tokens]`` through the output layer."""
        return self.over(output.weight, output.bias, features, targets)

    def over(self, weight: Tensor, bias: Tensor, features: Tensor, targets: Tensor) -> Loss:
        """The same through an output layer's rows ``[vocab, dim]`` and ``[vocab]``, by which the targets count."""
        smoothed, nll = _ChunkedCrossEntropy.apply(
            features, weight, bias, targets, self.smoothing, torch.is_grad_enabled()
        )
        return Loss(smoothed, nll)


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Forms the gradient in the forward pass, chunk by chunk: d loss / d logits = softmax - q."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, training: bool
    ) -> tuple[Tensor, Tensor]:
        device = features.device.type
        autocast = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if autocast else weight.dtype
        needs_grad = training and any(ctx.needs_input_grad[:3])
        vocab = weight.shape[0]
        w, b = weight.detach().to(dtype), bias.detach().to(dtype)
        x = features.detach().to(dtype)
        d_x = torch.empty_like(x) if needs_grad else None
        d_weight, d_bias = (torch.zeros_like(t) if needs_grad else t for t in (weight, bias))
        chunk = max(1, min(ROWS, LOGITS // vocab))
        smoothed = torch.zeros((), dtype=torch.float64 if weight.dtype == torch.float64 else torch.float32)
        smoothed = smoothed.to(x.device)
        nll = torch.zeros_like(smoothed)
        with torch.autocast(device, enabled=False):
            for begin in range(0, x.shape[0], chunk):
                rows = slice(begin, begin + chunk)
                logits = torch.addmm(b, x[rows], w.T).to(smoothed.dtype)
                target = targets[rows, None]
                log_normaliser = logits.logsumexp(-1)
                chunk_nll = (log_normaliser - logits.gather(1, target)[:, 0]).sum()
                nll += chunk_nll
                smoothed += (1 - smoothing) * chunk_nll
                smoothed += smoothing * (log_normaliser - logits.mean(-1)).sum()
                if d_x is not None:
                    d_logits = logits.sub_(log_normaliser[:, None]).exp_()
                    d_logits -= smoothing / vocab
                    d_logits.scatter_add_(1, target, torch.full_like(target, smoothing - 1, dtype=d_logits.dtype))
                    d_bias += d_logits.sum(0)
                    d_logits = d_logits.to(dtype)
                    torch.mm(d_logits, w, out=d_x[rows])
                    d_weight += d_logits.T @ x[rows]
        if d_x is not None:
            ctx.save_for_backward(d_x.to(features.dtype), d_weight, d_bias)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        d_features, d_weight, d_bias = ctx.saved_tensors
        return (
            d_features * d_smoothed.to(d_features.dtype),
            d_weight * d_smoothed,
            d_bias * d_smoothed,
            None,
            None,
            None,
        )
