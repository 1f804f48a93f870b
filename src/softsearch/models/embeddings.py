"""Token embeddings and the output layer, with the usual ways of sharing their weights (Press & Wolf 2017)."""

from collections.abc import Callable
from typing import Literal

from torch import nn

from softsearch.errors import ConfigError
from softsearch.models.output_layers import OutputLayer
from softsearch.ranges import Size

Tie = Literal["none", "output", "all"]


class Embeddings:
    """The embedding matrices of a model and the output layers that may share them.

    Args:
        src_vocab_size: rows of the source matrix.
        tgt_vocab_size: rows of the target matrix.
        dim: width of both.
        tie: ``none``; ``output``: target = output matrix; ``all``: source = target = output, one joint vocabulary.
        sparse: gradients hold only the rows that a batch used, for large vocabularies; needs an optimizer that supports
            them (``lazy_adam``), and where the output matrix is shared, saves memory only with ``sampled_softmax``.
        output_layer: called with the linear layer from features to logits, returns the ``OutputLayer`` to use
            instead; by default the linear layer itself.

    Raises:
        ConfigError: ``tie=all`` with two vocabularies.
    """

    def __init__(
        self,
        *,
        src_vocab_size: int,
        tgt_vocab_size: int,
        dim: Size,
        tie: Tie = "none",
        sparse: bool = False,
        output_layer: Callable[[nn.Linear], OutputLayer] | None = None,
    ) -> None:
        if tie == "all" and src_vocab_size != tgt_vocab_size:
            raise ConfigError(
                f"model.embeddings.tie=all needs one joint vocabulary, found {src_vocab_size} source and "
                f"{tgt_vocab_size} target pieces; set tokenizer.joint=true or model.embeddings.tie=output"
            )
        self.tie, self.dim, self.output_layer = tie, dim, output_layer
        self.tgt = _embedding(tgt_vocab_size, dim, sparse=sparse)
        self.src = self.tgt if tie == "all" else _embedding(src_vocab_size, dim, sparse=sparse)

    def make_output(self, feature_dim: int, option: str = "hidden_dim") -> nn.Linear | OutputLayer:
        """The layer from features to logits or log probabilities over the target vocabulary.

        ``option`` is the name of the decoder's option that sets ``feature_dim``, for messages.

        Raises:
            ConfigError: the weights are tied, and features and embeddings differ in width.
        """
        output = nn.Linear(feature_dim, self.tgt.num_embeddings)
        nn.init.zeros_(output.bias)
        if self.tie == "none":
            nn.init.xavier_uniform_(output.weight)
        elif feature_dim != self.dim:
            raise ConfigError(
                f"model.embeddings.tie={self.tie} needs features as wide as the embeddings, found model.embeddings.dim="
                f"{self.dim} and the decoder's {option}={feature_dim}; set {option}={self.dim} there, or "
                f"model.embeddings.dim={feature_dim}, or model.embeddings.tie=none"
            )
        else:
            output.weight = self.tgt.weight
        return output if self.output_layer is None else self.output_layer(output)


def _embedding(vocab_size: int, dim: int, *, sparse: bool) -> nn.Embedding:
    embedding = nn.Embedding(vocab_size, dim, sparse=sparse)
    nn.init.normal_(embedding.weight, std=dim**-0.5)
    return embedding
