"""R-Drop: regularised dropout (Liang et al. 2021, arXiv:2106.14448)."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from softsearch.data.dataset import Batch
from softsearch.models.interface import Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.models.output_layers import OutputLayer, rows_at_a_time, wide
from softsearch.ranges import NotNegative


def r_drop(
    model: Seq2Seq, loss: CrossEntropy, batch: Batch, step: int, *, alpha: NotNegative = 5.0
) -> tuple[Loss, Tensor]:
    """A :data:`TrainingMethod`: the distributions P_1 and P_2 of two passes with different dropout are made similar.

    The paper minimises -log P_1 - log P_2 + alpha/2 [KL(P_1 || P_2) + KL(P_2 || P_1)] (equations 1 to 4). Here it is
    half of that, so that without dropout it is the loss of teacher forcing. Both passes are one, over a batch with
    every pair twice (section 2.2). The divergence is over the whole vocabulary, even with a sampled loss; its weight
    ``alpha`` is 5 in the paper's translation systems.
    """
    del step
    src_tokens, read = (tokens.repeat(2, 1) for tokens in (batch.src_tokens, batch.tgt_tokens[:, :-1]))
    src_features = None if batch.src_features is None else batch.src_features.repeat(2, 1, 1)
    features = model.features(src_tokens, read, src_features)  # [2 * batch, tgt_len, features]
    places = batch.target_places()
    targets = batch.tgt_tokens[:, 1:].flatten()[places]
    first, second = (half.flatten(0, 1)[places] for half in features.chunk(2))  # [tokens, features] each
    output = model.decoder.output_projection
    both = loss(torch.cat((first, second)), targets.repeat(2), output)
    divergence = symmetric_divergence(first, second, output)
    summed = Loss((both.smoothed + alpha / 2 * divergence) / 2, both.nll / 2)
    return summed, places.new_full((), len(places))


def symmetric_divergence(first: Tensor, second: Tensor, output: nn.Linear | OutputLayer) -> Tensor:
    """KL(P_1 || P_2) + KL(P_2 || P_1), summed over the rows of ``first`` and ``second`` ``[tokens, features]``.

    Logits are computed some rows at a time, and recomputed in the backward pass.
    """
    rows = rows_at_a_time(output.out_features, first.device)
    total = first.new_zeros((), dtype=wide(first))
    for chunk in zip(first.split(rows), second.split(rows), strict=True):
        part = checkpoint(_divergence, *chunk, output, use_reentrant=False, preserve_rng_state=False)
        assert isinstance(part, Tensor)
        total = total + part
    return total


def _divergence(first: Tensor, second: Tensor, output: nn.Linear | OutputLayer) -> Tensor:
    """sum_v (p_1(v) - p_2(v)) (log p_1(v) - log p_2(v)), which is the sum of both divergences."""
    log_p, log_q = (output(features).log_softmax(-1, dtype=wide(first)) for features in (first, second))
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum()
