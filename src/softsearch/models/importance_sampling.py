"""A loss that samples words from a proposal distribution, which follows the model."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.loss import CrossEntropy, Loss, Per
from softsearch.models.output_layers import OutputLayer, accumulation_dtype, linear_layer_of
from softsearch.ranges import Rate, Size

_UNIFORM = 0.05  # share of the proposal that is the same for all words, so that none becomes impossible
_RATE = 0.05  # of the proposal's adaptation, for each batch


class ImportanceSampling(CrossEntropy):
    """While training, adaptive importance sampling (Bengio & Senecal 2008, IEEE TNN 19); in evaluation, cross-entropy.

    With scores s, the gradient of -log P(w | h) is -ds(w, h) + sum_v P(v | h) ds(v, h). The sum is estimated from words
    w_1 to w_m of a proposal Q: with r_k = exp(s(w_k, h)) / Q(w_k), it is sum_k r_k ds(w_k, h) / sum_k r_k. This is the
    gradient of log sum_k r_k, so the loss is log (sum_k r_k / m) - s(w, h).

    The effective sample size (sum_k r_k)^2 / sum_k r_k^2 tells how many words of P itself would do as well. Blocks of
    words are drawn until its mean over the tokens is ``effective``; if they would be more words than the vocabulary
    has, all words are computed. Q adapts to P: Q <- Q + rate (E - Q), where E(v) is the mean over the tokens of
    sum_{k: w_k = v} r_k / sum_k r_k. The paper's Q is an n-gram model; here it is a unigram model, so that one product
    serves all tokens of a batch. It starts uniform, and checkpoints hold it.

    Args:
        vocab_size: at least the size of the target vocabulary.
        samples: words of a block.
        effective: the effective sample size.
        smoothing: label smoothing of the cross-entropy.
        per: as in ``CrossEntropy``.
        bfloat16: as in ``CrossEntropy``, where all words are computed.
    """

    proposal: Tensor  # [vocab_size]

    def __init__(
        self,
        *,
        vocab_size: Size,
        samples: Size = 500,
        effective: Size = 50,
        smoothing: Rate = 0.0,
        per: Per = "token",
        bfloat16: bool = False,
    ) -> None:
        super().__init__(smoothing=smoothing, per=per, bfloat16=bfloat16)
        self.samples, self.effective = samples, effective
        self.register_buffer("proposal", torch.full((vocab_size,), 1 / vocab_size))

    def forward(self, features: Tensor, targets: Tensor, output: nn.Linear | OutputLayer) -> Loss:
        output = self.check(output)
        vocab = output.out_features
        if not self.training or not len(targets):
            return super().forward(features, targets, output)
        own = self.proposal[:vocab] / self.proposal[:vocab].sum()
        log_q = ((1 - _UNIFORM) * own + _UNIFORM / vocab).log()
        words, log_ratios = targets.new_empty(0), features.new_empty(len(features), 0)
        while True:
            if len(words) + self.samples > vocab:
                return super().forward(features, targets, output)
            block = log_q.exp().multinomial(self.samples, replacement=True)
            scores = functional.linear(features, output.weight[block], output.bias[block])
            words = torch.cat((words, block))
            log_ratios = torch.cat((log_ratios, scores - log_q[block].to(scores)), dim=1)  # [tokens, samples]
            shares = log_ratios.detach().to(accumulation_dtype(features)).softmax(-1)  # r_k / sum r
            if (1 / shares.square().sum(-1)).mean() >= self.effective:
                break
        estimate = torch.zeros_like(own).index_add_(0, words, shares.mean(0).to(own))  # E
        self.proposal[:vocab] = torch.lerp(own, estimate, _RATE)
        log_z = log_ratios.to(accumulation_dtype(features)).logsumexp(-1) - math.log(len(words))
        target_scores = (features * output.weight[targets]).sum(-1) + output.bias[targets]
        total = (log_z - target_scores).sum()
        return Loss(total, total.detach())

    def check(self, output: nn.Linear | OutputLayer) -> nn.Linear:
        """Returns the output layer.

        Raises:
            ConfigError: it is not linear, or has more words than ``vocab_size``.
        """
        return linear_layer_of(output, "importance_sampling", len(self.proposal))
