"""R-Drop: regularised dropout (Liang et al. 2021, arXiv:2106.14448)."""

from typing import Any

import torch
from torch import Tensor, nn

from softsearch.models.loss import Loss
from softsearch.models.output_layers import OutputLayer, accumulation_dtype, rows_at_a_time
from softsearch.ranges import NotNegative
from softsearch.training.interface import TrainingStep


def r_drop(step: TrainingStep, *, alpha: NotNegative = 5.0) -> tuple[Loss, Tensor]:
    """A ``TrainingMethod`` that makes the distributions P_1 and P_2 of two passes with different dropout similar.

    The paper minimises -log P_1 - log P_2 + alpha/2 [KL(P_1 || P_2) + KL(P_2 || P_1)] (equations 1 to 4). This
    is half of that, so that it equals the loss of teacher forcing without dropout. Both passes are computed as one,
    over a batch with every pair twice (section 2.2). The divergence is over the whole vocabulary, even with a sampled
    loss; its weight ``alpha`` is 5 in the paper's translation systems.
    """
    model, batch = step.model, step.batch
    src_tokens, read = (tokens.repeat(2, 1) for tokens in (batch.src_tokens, batch.tgt_tokens[:, :-1]))
    src_features = None if batch.src_features is None else batch.src_features.repeat(2, 1, 1)
    features = model.features(src_tokens, read, src_features)  # [2 * batch, tgt_len, features]
    places = batch.target_places()
    targets = batch.tgt_tokens[:, 1:].flatten()[places]
    first, second = (half.flatten(0, 1)[places] for half in features.chunk(2))  # [tokens, features] each
    output = model.decoder.output_projection
    both = step.loss(torch.cat((first, second)), targets.repeat(2), output)
    divergence = symmetric_divergence(first, second, output)
    summed = Loss((both.smoothed + alpha / 2 * divergence) / 2, both.nll / 2)
    return summed, places.new_full((), len(places))


def symmetric_divergence(first: Tensor, second: Tensor, output: nn.Linear | OutputLayer) -> Tensor:
    """Returns KL(P_1 || P_2) + KL(P_2 || P_1), summed over the rows of the features ``[tokens, features]``."""
    parameters = (parameter for parameter in output.parameters() if parameter.requires_grad)
    divergence = _SymmetricDivergence.apply(first, second, output, *parameters)
    assert isinstance(divergence, Tensor)
    return divergence


class _SymmetricDivergence(torch.autograd.Function):
    """Computes the gradient in the forward pass, some rows at a time, so that few logits exist at once."""

    @staticmethod
    def forward(
        ctx: Any, first: Tensor, second: Tensor, output: nn.Linear | OutputLayer, *parameters: Tensor
    ) -> Tensor:
        rows = rows_at_a_time(output.out_features, first.device)
        total = first.new_zeros((), dtype=accumulation_dtype(first))
        d_features, d_parameters = [], [torch.zeros_like(parameter) for parameter in parameters]
        for chunk in zip(first.split(rows), second.split(rows), strict=True):
            inputs = [features.detach().requires_grad_() for features in chunk]
            with torch.enable_grad():
                logits = [output(features) for features in inputs]
            divergence, d_logits = _divergence(*logits)
            total += divergence
            gradients = torch.autograd.grad(logits, (*inputs, *parameters), d_logits)
            d_features.append(gradients[:2])
            for d_parameter, gradient in zip(d_parameters, gradients[2:], strict=True):
                d_parameter += gradient
        ctx.save_for_backward(*(torch.cat(parts) for parts in zip(*d_features, strict=True)), *d_parameters)
        return total

    @staticmethod
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor | None, ...]:
        d_first, d_second, *d_parameters = (gradient * d_total.to(gradient.dtype) for gradient in ctx.saved_tensors)
        return d_first, d_second, None, *d_parameters


@torch.no_grad()
def _divergence(first: Tensor, second: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Returns the divergence of the distributions with these logits ``[rows, vocab]``, and its gradient.

    The gradient of KL(P || Q) is p (log p - log q - KL(P || Q)) for the logits of P, and q - p for those of Q.
    """
    log_p, log_q = (logits.log_softmax(-1, dtype=accumulation_dtype(first)) for logits in (first, second))
    p, q = log_p.exp(), log_q.exp()
    ratio = log_p.sub_(log_q)  # in place, here and below, because memory access takes most of the time
    kl_p, kl_q = ((weight * ratio).sum(-1, keepdim=True) for weight in (p, q))  # KL(P || Q); -KL(Q || P)
    d_first = (ratio + (1 - kl_p)).mul_(p).sub_(q)
    d_second = ((1 + kl_q) - ratio).mul_(q).sub_(p)
    return (kl_p - kl_q).sum(), (d_first.to(first.dtype), d_second.to(second.dtype))
