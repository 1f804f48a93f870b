"""Output layers other than a linear softmax, built around the linear layer, whose weights may be tied."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from softsearch.errors import ConfigError
from softsearch.models.layers import xavier
from softsearch.ranges import Size

ROWS = 256  # rows of logits alive at a time on a CPU: 8 MB for a vocabulary of 8,000, about a core's share of cache
LOGITS = 2**24  # most logits alive at a time, 64 MB: a vocabulary over 65,536 has fewer rows at a time
GPU_LOGITS = 2**27  # on a GPU, which is faster with few large products: 256 MB in bfloat16


def rows_at_a_time(vocab: int, device: torch.device) -> int:
    """The most rows of logits to hold in memory at a time."""
    return max(1, min(ROWS, LOGITS // vocab) if device.type == "cpu" else GPU_LOGITS // vocab)


class OutputLayer(nn.Module):
    """Turns features ``[..., dim]`` into log probabilities ``[..., vocab]``, each row independently."""

    out_features: int  # the vocabulary's size

    def forward(self, features: Tensor) -> Tensor:
        """The log probabilities of all words."""
        raise NotImplementedError

    def cross_entropy(self, features: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """The loss with and without smoothing, summed over features ``[tokens, dim]`` and targets ``[tokens]``.

        Log probabilities are computed a few rows at a time, and again in the backward pass.
        """
        rows = rows_at_a_time(self.out_features, features.device)
        parts = [
            checkpoint(self._part, *chunk, smoothing, use_reentrant=False, preserve_rng_state=False)
            for chunk in zip(features.split(rows), targets.split(rows), strict=True)
        ]
        smoothed, nll = zip(*parts, strict=True)
        return torch.stack(smoothed).sum(), torch.stack(nll).sum()

    def _part(self, features: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        return _sums(self(features), targets, smoothing)


class ClassFactored(OutputLayer):
    """p(w | t) = p(class(w) | t) p(w | class(w), t), both linear softmaxes (Goodman 2001, arXiv:cs/0108006).

    Kalchbrenner & Blunsom 2013 train with such an output. As in Mikolov et al. 2011 words are grouped by frequency;
    here the classes are ranges of ids, because vocabularies list their frequent words first. All classes have the same
    size, but the last one may be smaller. Training computes only the classes and the words of the target's class.

    Label smoothing applies to both softmaxes: -log p(w) becomes the smoothed cross-entropy of the class, plus that of
    the word within the target's class.

    Args:
        word_projection: the linear layer from features to logits of all words.
        num_classes: maximum number of classes; by default the square root of the vocabulary's size, which is fastest.

    Raises:
        ConfigError: there are fewer words than classes.
    """

    def __init__(self, word_projection: nn.Linear, *, num_classes: Size | None = None) -> None:
        super().__init__()
        self.word_projection, self.out_features = word_projection, word_projection.out_features
        if num_classes is not None and num_classes > self.out_features:
            raise ConfigError(
                f"model.embeddings.output_layer.num_classes is {num_classes}, expected at most the {self.out_features} "
                "pieces of the target vocabulary; change it"
            )
        self.class_size = -(-self.out_features // (num_classes or math.isqrt(self.out_features)))
        num_classes = -(-self.out_features // self.class_size)
        self.class_projection = xavier(nn.Linear(word_projection.in_features, num_classes))

    def forward(self, features: Tensor) -> Tensor:
        classes = self.class_projection(features).log_softmax(-1, dtype=accumulation_dtype(features))
        logits = self.word_projection(features)
        missing = -self.out_features % self.class_size  # words that the last class lacks
        words = functional.pad(logits, (0, missing), value=-torch.inf).unflatten(-1, (-1, self.class_size))
        log_probs = classes[..., None] + words.log_softmax(-1, dtype=classes.dtype)
        return log_probs.flatten(-2)[..., : self.out_features]

    def cross_entropy(self, features: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """The cross-entropy, class by class."""
        classes = targets // self.class_size
        smoothed, nll = _softmax_sums(self.class_projection(features), classes, smoothing)
        order = classes.argsort()
        counts = torch.bincount(classes, minlength=self.class_projection.out_features).tolist()
        words = (targets % self.class_size)[order].split(counts)
        # One split: the gradient of a slice for each class would be as large as the whole matrix.
        layers = (p.split(self.class_size) for p in (self.word_projection.weight, self.word_projection.bias))
        for x, within, weight, bias in zip(features[order].split(counts), words, *layers, strict=True):
            if within.shape[0]:
                part = _softmax_sums(functional.linear(x, weight, bias), within, smoothing)
                smoothed, nll = smoothed + part[0], nll + part[1]
        return smoothed, nll


class HierarchicalSoftmax(OutputLayer):
    """p(w | t) = the product of binary decisions from the root of a tree to the word's leaf (Morin & Bengio 2005).

    p(left at n | t) = sigmoid(q_n' t + b_n): the node's vector is outside the hidden layer as in Mnih & Hinton 2008; in
    the paper (section 4) it is inside, where a search would need a hidden layer for each node. The paper's tree
    comes from WordNet. Here it is the complete binary tree whose leaves are the words in the order of their ids:
    node n has the children 2n and 2n + 1, the root is 1, and word w is node V + w. Its depth is log2(V), at most one
    less for the first words, which are the frequent ones. Nodes are not words, so their vectors are never tied to
    embeddings.

    Training computes only the decisions on the target's path. Label smoothing applies to each; the paper has none.

    Args:
        word_projection: the linear layer that it replaces.
    """

    def __init__(self, word_projection: nn.Linear) -> None:
        super().__init__()
        self.out_features = word_projection.out_features
        self.node_projection = xavier(nn.Linear(word_projection.in_features, self.out_features - 1))  # q_n, b_n

    def forward(self, features: Tensor) -> Tensor:
        """The log probabilities, level by level of the tree."""
        logits = self.node_projection(features).to(accumulation_dtype(features))
        log_probs, first = torch.zeros_like(logits[..., :1]), 1  # of the nodes on a level; number of the first one
        leaves: list[Tensor] = []
        while log_probs.shape[-1]:
            inner = min(log_probs.shape[-1], max(0, self.out_features - first))
            leaves.append(log_probs[..., inner:])
            decisions = logits[..., first - 1 : first - 1 + inner]
            pairs = torch.stack((-functional.softplus(-decisions), -functional.softplus(decisions)), dim=-1)
            log_probs = (log_probs[..., :inner, None] + pairs).flatten(-2)
            first *= 2
        return torch.cat(leaves, dim=-1)

    def _part(self, features: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        node = (targets + self.out_features)[:, None]
        up = torch.arange(1, (2 * self.out_features - 1).bit_length(), device=targets.device)
        path, is_right = node >> up, (node >> (up - 1)) % 2 == 1  # [tokens, depth]; 0 is above the root
        weight, bias = (parameter[(path - 1).clamp(min=0)] for parameter in self.node_projection.parameters())
        logits = ((weight @ features[..., None])[..., 0] + bias).to(accumulation_dtype(features))
        right = functional.softplus(logits)  # -log p(right)
        left = right - logits
        real = path > 0
        nll = (right.where(is_right, left) * real).sum()
        return (1 - smoothing) * nll + smoothing / 2 * ((left + right) * real).sum(), nll


def linear_layer(output: nn.Linear | OutputLayer, user: str, advice: str) -> nn.Linear:
    """Returns the output layer for a ``user`` that needs rows of its matrix.

    Raises:
        ConfigError: the layer is not linear; the message ends with ``advice``.
    """
    if isinstance(output, OutputLayer):
        raise ConfigError(f"{user} needs a linear output layer, but the model has {type(output).__name__}; {advice}")
    return output


def linear_layer_of(output: nn.Linear | OutputLayer, loss: str, vocab_size: int) -> nn.Linear:
    """Returns the output layer for a ``loss`` that keeps a number for each of ``vocab_size`` words.

    Raises:
        ConfigError: the layer is not linear, or has more words.
    """
    linear = linear_layer(output, f"loss={loss}", "set loss=cross_entropy")
    if linear.out_features > vocab_size:
        raise ConfigError(
            f"loss.vocab_size is {vocab_size}, expected at least the {linear.out_features} pieces of the target "
            "vocabulary; change it"
        )
    return linear


def check_shortlist(decoder: Any) -> None:
    """Refuses a shortlist for a decoder whose steps cannot compute only some of the words.

    Raises:
        ConfigError: they cannot.
    """
    if not decoder.takes_shortlist:
        raise ConfigError(f"a {type(decoder).__name__} takes no shortlist; leave it out")
    linear_layer(decoder.output_projection, "a shortlist", "leave it out")


def accumulation_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype for log probabilities and sums: float32, or that of the tensor if it is wider."""
    return torch.promote_types(tensor.dtype, torch.float32)


def _softmax_sums(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    return _sums(logits.log_softmax(-1, dtype=accumulation_dtype(logits)), targets, smoothing)


def _sums(log_probs: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The summed cross-entropies with and without smoothing."""
    nll = -log_probs.gather(-1, targets[:, None]).sum()
    return (1 - smoothing) * nll - smoothing * log_probs.mean(-1).sum(), nll
