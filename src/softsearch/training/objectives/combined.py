"""Several training methods at once."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from torch import Tensor

from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import ConfigError
from softsearch.models.loss import Loss
from softsearch.models.seq2seq import Seq2Seq
from softsearch.ranges import NotNegative
from softsearch.text.tokenizer import Tokenizers
from softsearch.training.interface import TrainingMethod, TrainingPart, TrainingStep, for_data, training_parts


class Combined(TrainingPart):
    """A ``TrainingMethod``: the weighted sum of the losses of several methods, each with its own pass.

    A method's loss is logged as ``train/NAME/loss``, and what it logs as ``train/NAME/...``. The logged perplexity is
    that of the first.

    Args:
        methods: the methods by name.
        weights: their weights by name, 1 for those without.

    Raises:
        ConfigError: no method is given, or a weight has the name of none.
    """

    def __init__(
        self, *, methods: Mapping[str, TrainingMethod], weights: Mapping[str, NotNegative] | None = None
    ) -> None:
        if not methods:
            raise ConfigError(
                "method.methods is empty, expected at least one method; add +method@method.methods.r_drop=r_drop"
            )
        if unknown := sorted((weights or {}).keys() - methods.keys()):
            raise ConfigError(
                f"method.weights.{unknown[0]} is the weight of no method; name one of {', '.join(methods)}"
            )
        self.methods, self.weights = methods, dict.fromkeys(methods, 1.0) | dict(weights or {})

    def check(self, model: Seq2Seq, source: ParallelSource) -> None:
        for part in training_parts(*self.methods.values()):
            part.check(model, source)

    def for_data(self, source: ParallelSource, tokenizers: Tokenizers) -> "Combined":
        methods = {name: for_data(method, source, tokenizers) for name, method in self.methods.items()}
        return Combined(methods=methods, weights=self.weights)

    def __call__(self, step: TrainingStep) -> tuple[Loss, Tensor]:
        """Computes the losses of a batch, one after the other."""
        losses = {}
        for name, method in self.methods.items():
            own = replace(step, logged={})
            losses[name] = summed, tokens = method(own)
            for logged, value in {**own.logged, "loss": summed.smoothed / tokens}.items():
                step.log(f"{name}/{logged}", value)
        (first, tokens), *_ = losses.values()
        weighted = [self.weights[name] * summed.smoothed for name, (summed, _) in losses.items()]
        return Loss(reduce(Tensor.add, weighted), first.nll), tokens
