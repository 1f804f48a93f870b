"""Softmax over a small part of a very large target vocabulary (Jean, Cho, Memisevic & Bengio 2015, arXiv:1412.2007)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.errors import ConfigError
from softsearch.models.loss import CrossEntropy, Loss, Per
from softsearch.ranges import Rate, Size


class SampledSoftmax(CrossEntropy):
    """While training, the cross-entropy over a subset V' of the target vocabulary; in evaluation, over all of it.

    The gradient of the log normaliser, E_P[grad E(y)], is estimated by importance sampling (section 3.1):
    sum over V' of w_k / sum_k' w_k' * grad E(y_k), w_k = exp(E(y_k) - log Q(y_k)), where E(y) is a logit. Q is
    uniform on V' and zero elsewhere, so that log Q cancels and what is left is p(y) = exp E(y) / sum over V' of exp E.

    The paper goes through the corpus, collects target words until there are ``tau`` different ones, and takes those for
    that part. Here that part moves with the batches: V' is the batch's targets and the words seen last before them,
    ``tau`` in all; in the beginning, the first ids of the vocabulary, which in SentencePiece are the frequent words. V'
    is in the checkpoint, so a resumed run goes on with the same one.

    Args:
        tau: words in V', or as many as the batch has different targets where that is more.
        smoothing: as in :class:`CrossEntropy`, spread over V' while training.
        per: as in :class:`CrossEntropy`.
        sparse: give the output matrix a gradient of V's rows alone (see :class:`Embeddings`).

    Raises:
        ConfigError: a value is out of range.
    """

    recent: Tensor  # [tau] different target words, the last seen first

    def __init__(self, *, tau: Size = 15_000, smoothing: Rate = 0.1, per: Per = "token", sparse: bool = False) -> None:
        super().__init__(smoothing=smoothing, per=per)
        if tau < 1:
            raise ConfigError(f"loss.tau is {tau}, expected at least 1; change loss.tau")
        self.sparse = sparse
        self.register_buffer("recent", torch.arange(tau))

    def forward(self, features: Tensor, targets: Tensor, output: nn.Linear) -> Loss:
        """See :class:`CrossEntropy`; a vocabulary that V' could hold is used whole."""
        if not self.training or self.recent.numel() >= output.out_features:
            return super().forward(features, targets, output)
        subset = self._next_subset(targets)
        weight = functional.embedding(subset, output.weight, sparse=self.sparse)  # [words, dim]
        return self.over(weight, output.bias[subset], features, torch.searchsorted(subset, targets))

    def _next_subset(self, targets: Tensor) -> Tensor:
        """V', sorted; remembers its words, those of this batch first."""
        now = targets.unique()
        before = self.recent[torch.isin(self.recent, now, invert=True)]
        tau = self.recent.numel()
        words = torch.cat((now, before))[: max(tau, now.numel())]
        self.recent.copy_(words[:tau])  # in place: DDP gives every process the words of the first
        return words.sort().values
