"""Cross-entropy that never holds all logits (as in Cut Cross-Entropy, Wijmans et al. 2025), and sampled losses."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.output_layers import (
    LOGITS,
    OutputLayer,
    accumulation_dtype,
    linear_layer,
    linear_layer_of,
    rows_at_a_time,
)
from softsearch.ranges import Rate, Size

Per = Literal["token", "sentence"]
_CHUNKS = 4  # at most, multiplied at once for the weights' gradient, which then sums fewer products
_MULTIPLE = 32  # row counts are padded to a multiple of it: the CPU compiles new kernels for every new row count


class Loss(NamedTuple):
    """Sums over the target tokens, in nats."""

    smoothed: Tensor  # scalar: what training minimises
    nll: Tensor  # scalar: -log p(target), without smoothing and without gradient; perplexity = exp(nll / tokens)


@dataclass(frozen=True, kw_only=True)
class StepContext:
    """A training step, as a loss sees it.

    Args:
        number: optimizer steps taken so far.
        logged: what ``log`` was given, by name.
    """

    number: int = 0
    logged: dict[str, Tensor] = field(default_factory=dict)

    def log(self, name: str, value: Tensor | float) -> None:
        """Logs a number of the step as ``train/NAME``, a mean over all processes; each of them logs the same names."""
        self.logged[name] = torch.as_tensor(value).detach()


class CrossEntropy(nn.Module):
    """-sum_v q(v) log p(v), q = (1 - smoothing) * target + smoothing / vocab (Szegedy et al. 2016).

    Training minimises the mean loss ``per`` token or per sentence (the sum over its tokens). Learning rates, clipping
    thresholds and Adadelta's eps are for one of the two: papers on recurrent models give them for sentences (ADR 0014).
    With ``bfloat16`` a linear output layer is multiplied in bfloat16 in training, even if the model is in float32; the
    gradients of its weights are summed in float32.

    A loss of your own overrides ``forward``; if it changes from step to step, or logs, also ``begin_step``.
    """

    def __init__(self, *, smoothing: Rate = 0.1, per: Per = "token", bfloat16: bool = False) -> None:
        super().__init__()
        self.smoothing, self.per, self.in_bfloat16 = smoothing, per, bfloat16  # nn.Module has a method bfloat16

    @property
    def varies_by_step(self) -> bool:
        """Tells whether equal features may have another loss at another step, or whether ``forward`` is overridden.

        CUDA graphs record ``from_linear`` with the numbers of one step, so they need a loss that says False. A subclass
        that does not say is taken to vary.
        """
        return type(self) is not CrossEntropy

    def begin_step(self, step: StepContext) -> None:
        """Prepares for a training step; to be overridden."""

    def check(self, output: nn.Linear | OutputLayer) -> nn.Linear | OutputLayer:
        """Returns the output layer.

        Raises:
            ConfigError: the loss cannot be computed with it.
        """
        return output

    def forward(self, features: Tensor, targets: Tensor, output: nn.Linear | OutputLayer) -> Loss:
        """The loss of ``features`` ``[tokens, dim]`` for ``targets`` ``[tokens]`` with the output layer."""
        if isinstance(output, OutputLayer):
            smoothed, nll = output.cross_entropy(features, targets, self.smoothing)
            return Loss(smoothed, nll.detach())
        return self.from_linear(output.weight, output.bias, features, targets)

    def from_linear(
        self, weight: Tensor, bias: Tensor, features: Tensor, targets: Tensor, real: Tensor | None = None
    ) -> Loss:
        """The loss with some rows of an output layer, ``[words, dim]`` and ``[words]``; targets index these rows.

        Where ``real`` ``[tokens]`` is False, a token does not count; by default all do.
        """
        training = torch.is_grad_enabled()
        dtype = torch.bfloat16 if self.in_bfloat16 and training else weight.dtype
        if torch.is_autocast_enabled(features.device.type):
            dtype = torch.get_autocast_dtype(features.device.type)
        if real is not None:  # products with zeros leave tokens out
            features = features * real[:, None]
        return Loss(*_ChunkedCrossEntropy.apply(features, weight, bias, targets, real, self.smoothing, training, dtype))


class SampledSoftmax(CrossEntropy):
    """While training, the cross-entropy over a subset V' of the target vocabulary; in evaluation, over all of it.

    Jean, Cho, Memisevic & Bengio 2015 (arXiv:1412.2007), for very large vocabularies.

    The gradient of the log normaliser is estimated by importance sampling (section 3.1): sum over V' of w_k / sum_k'
    w_k' * grad E(y_k), w_k = exp(E(y_k) - log Q(y_k)), where E(y) is a logit. Q is uniform on V', so log Q cancels,
    which leaves p(y) = exp E(y) / sum over V' of exp E.

    The paper divides the corpus into parts with ``tau`` different target words. Here V' changes with each batch: it is
    the batch's targets and the words seen last before them, ``tau`` in all. At first these are the lowest ids, which in
    SentencePiece are the frequent words. Checkpoints hold V', so a resumed run continues with the same one.

    A batch with more than ``tau`` different targets has a larger V'. Smoothing is spread over V' while training. With
    ``sparse`` only the rows of V' get a gradient in the output matrix (see ``Embeddings``).
    """

    recent_words: Tensor  # [tau] different target words, the most recent first

    def __init__(
        self,
        *,
        tau: Size = 15_000,
        smoothing: Rate = 0.1,
        per: Per = "token",
        bfloat16: bool = False,
        sparse: bool = False,
    ) -> None:
        super().__init__(smoothing=smoothing, per=per, bfloat16=bfloat16)
        self.sparse = sparse
        self.register_buffer("recent_words", torch.arange(tau))

    def forward(self, features: Tensor, targets: Tensor, output: nn.Linear | OutputLayer) -> Loss:
        """The sampled loss while training, unless V' could hold the whole vocabulary."""
        output = self.check(output)
        if not self.training or self.recent_words.numel() >= output.out_features:
            return super().forward(features, targets, output)
        subset = self._next_subset(targets)
        weight = functional.embedding(subset, output.weight, sparse=self.sparse)  # [words, dim]
        return self.from_linear(weight, output.bias[subset], features, torch.searchsorted(subset, targets))

    def check(self, output: nn.Linear | OutputLayer) -> nn.Linear:
        """Returns the output layer.

        Raises:
            ConfigError: it is not linear.
        """
        return linear_layer(output, "loss=sampled_softmax", "set loss=cross_entropy")

    def _next_subset(self, targets: Tensor) -> Tensor:
        """Returns V', sorted; remembers its words, those of this batch first."""
        batch_words = targets.unique()
        earlier_words = self.recent_words[torch.isin(self.recent_words, batch_words, invert=True)]
        tau = self.recent_words.numel()
        words = torch.cat((batch_words, earlier_words))[: max(tau, batch_words.numel())]
        self.recent_words.copy_(words[:tau])  # in place: DDP copies the first process's words to all
        return words.sort().values


class NoiseContrastive(CrossEntropy):
    """While training, noise-contrastive estimation (Mnih & Teh 2012, arXiv:1206.6426); in evaluation, cross-entropy.

    A classifier tells target words from k words of a noise distribution P_n (section 3):
    p(D = 1 | w, h) = P(w | h) / (P(w | h) + k P_n(w)), J = -log p(D = 1 | w) - sum_i log p(D = 0 | w_i).
    P(w | h) = exp(s(w, h)) / Z with one constant Z for all contexts (section 3.1): Z = V here, which is the paper's 1
    with biases that start at -log V. P_n is the unigram distribution of the target words seen in training, with 1 added
    to each count. Checkpoints hold the counts.

    The noise words are drawn once for all tokens of a batch, so a large k costs one product; the paper has k = 25 and
    draws them for each token. Training has no smoothing, and logs the perplexity of J.

    Args:
        vocab_size: at least the size of the target vocabulary.
        noise_words: k.
        smoothing: label smoothing of the cross-entropy in evaluation.
        per: as in ``CrossEntropy``.
        bfloat16: as in ``CrossEntropy``, for the product with the noise words.
    """

    counts: Tensor  # [vocab_size] int64

    def __init__(
        self,
        *,
        vocab_size: Size,
        noise_words: Size = 500,
        smoothing: Rate = 0.0,
        per: Per = "token",
        bfloat16: bool = False,
    ) -> None:
        super().__init__(smoothing=smoothing, per=per, bfloat16=bfloat16)
        self.noise_words = noise_words
        self.register_buffer("counts", torch.ones(vocab_size, dtype=torch.int64))

    def forward(self, features: Tensor, targets: Tensor, output: nn.Linear | OutputLayer) -> Loss:
        output = self.check(output)
        if not self.training:
            return super().forward(features, targets, output)
        vocab = output.out_features
        counts = self.counts[:vocab]
        counts.index_add_(0, targets, torch.ones_like(targets))
        noise = counts / counts.sum()  # P_n
        words = noise.multinomial(self.noise_words, replacement=True)
        offset = (self.noise_words * noise).log() + math.log(vocab)  # log(k P_n(w) Z)
        target_scores = (features * output.weight[targets]).sum(-1) + output.bias[targets]
        dtype = torch.bfloat16 if self.in_bfloat16 else features.dtype
        weight, bias = output.weight[words].to(dtype), output.bias[words].to(dtype)
        noise_scores = functional.linear(features.to(dtype), weight, bias)  # [tokens, k]
        is_target = functional.softplus(offset[targets] - target_scores.to(accumulation_dtype(features))).sum()
        is_noise = functional.softplus(noise_scores.to(accumulation_dtype(features)) - offset[words]).sum()
        return Loss(is_target + is_noise, (is_target + is_noise).detach())

    def check(self, output: nn.Linear | OutputLayer) -> nn.Linear:
        """Returns the output layer.

        Raises:
            ConfigError: it is not linear, or has more words than ``vocab_size``.
        """
        return linear_layer_of(output, "nce", len(self.counts))


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Forms the gradient in the forward pass, chunk by chunk: d loss / d logits = softmax - q.

    The uniform part of q is one vector for all rows, and is added at the end. Features of tokens that are not ``real``
    are zeros, as are the rows added to reach a multiple. In training -log p is at most 87 in
    float32 and bfloat16, where p is rounded to zero, and 708 in float64; gradients have no such limit.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        real: Tensor | None,
        smoothing: float,
        training: bool,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        needs_grad = training and any(ctx.needs_input_grad[:3])
        (tokens, vocab), rows = (len(features), len(weight)), rows_at_a_time(len(weight), features.device)
        features = functional.pad(features, (0, 0, 0, -tokens % min(_MULTIPLE, rows)))
        w, b, x = (tensor.detach().to(dtype) for tensor in (weight, bias, features))
        accumulator = accumulation_dtype(w)
        count = tokens if real is None else real.sum(dtype=accumulator)
        counts = functional.pad(x.new_ones(1, tokens) if real is None else real.to(dtype)[None], (0, len(x) - tokens))
        d_x = torch.empty_like(x) if needs_grad else None
        d_weight, d_bias = (torch.zeros_like(t) if needs_grad else t for t in (weight, bias))
        nll, log_normalisers = (x.new_zeros((), dtype=accumulator) for _ in range(2))
        chunk = max(1, min(x.shape[0], rows))
        # Allocated once: memory that is freed and allocated again may come from the system each time.
        group = chunk * max(1, min(_CHUNKS, LOGITS // (vocab * chunk))) if needs_grad else 0
        space, all_probs = x.new_empty(chunk, vocab), x.new_empty(min(group, x.shape[0]), vocab)
        row_begins = torch.arange(0, chunk * vocab, vocab, device=x.device)
        with torch.autocast(features.device.type, enabled=False):
            for begin in range(0, tokens, chunk):
                x_rows, target = x[begin : begin + chunk], targets[begin : begin + chunk]
                logits, end = space[: x_rows.shape[0]], begin + x_rows.shape[0]
                torch.addmm(b, x_rows, w.T, out=logits)
                own = logits[: target.shape[0]]
                target_logits = own.gather(1, target[:, None])[:, 0].to(accumulator)
                if d_x is None:
                    chunk_nll = own.to(accumulator).logsumexp(-1) - target_logits
                else:
                    first = begin - begin % group
                    probs = torch.softmax(logits, -1, out=all_probs[begin - first : end - first])
                    places, flat = row_begins[: target.shape[0]] + target, probs.view(-1)
                    target_probs = flat[places].to(accumulator)
                    chunk_nll = -target_probs.clamp(min=torch.finfo(accumulator).tiny).log()
                    flat.index_add_(0, places, x.new_full(places.shape, smoothing - 1))  # scatter_add_ is slow
                    d_bias += torch.mm(counts[:, begin:end], probs)[0]
                    torch.mm(probs, w, out=d_x[begin:end])
                    if end == first + group or end == x.shape[0]:
                        d_weight += all_probs[: end - first].T @ x[first:end]
                counted = counts[0, begin : begin + target.shape[0]]
                nll += (chunk_nll * counted).sum()
                log_normalisers += ((chunk_nll + target_logits) * counted).sum()
            x_sum, w_mean = x.sum(0, dtype=accumulator), w.mean(0, dtype=accumulator)
            logit_means = x_sum @ w_mean + count * b.mean(dtype=accumulator)  # summed over the rows
            smoothed = (1 - smoothing) * nll + smoothing * (log_normalisers - logit_means)
        if d_x is not None:
            d_weight -= (smoothing / vocab) * x_sum
            d_bias -= smoothing * count / vocab
            d_features = d_x[:tokens].to(features.dtype) - smoothing * w_mean.to(features.dtype)
            ctx.save_for_backward(d_features, d_weight, d_bias)
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        d_features, d_weight, d_bias = ctx.saved_tensors
        d_features = d_features * d_smoothed.to(d_features.dtype)
        return d_features, d_weight * d_smoothed, d_bias * d_smoothed, *(None,) * 5
