"""Sources of several corpora, and how often each is seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import ConfigError
from softsearch.ranges import Positive, Range


@dataclass(frozen=True, kw_only=True)
class WeightedSource(ParallelSource):
    """A source that may have several training corpora.

    Args:
        weights: how often each corpus's pairs are seen in an epoch: with 2.5, half of them twice and the others three
            times; with 0.5, half of them never.
        temperature: T, in place of weights: a corpus of n pairs gets a share of an epoch in proportion to n^(1/T)
            (Arivazhagan et al. 2019, arXiv:1907.05019, section 4.2). The largest corpus is seen once; a higher T
            repeats small corpora more often, 1 does not repeat them.
    """

    weights: Sequence[Positive] | None = None
    temperature: Annotated[float, Range(1)] | None = None

    def _check_weights(self, key: str, corpora: int) -> None:
        """Checks the weights for the number of ``corpora`` that the option ``key`` has.

        Raises:
            ConfigError: they do not fit, or a temperature is also set.
        """
        if self.weights is not None and self.temperature is not None:
            raise ConfigError("data.weights and data.temperature are both set; set one of them to null")
        if self.weights is not None and (corpora == 1 or len(self.weights) != corpora):
            raise ConfigError(
                f"data.weights is {self.weights!r}, expected a positive number for each of several corpora, but "
                f"{key} has {corpora}; change data.weights or {key}"
            )

    def repeats(self, sizes: Sequence[int]) -> list[float]:
        if self.weights is not None:
            return [float(weight) for weight in self.weights]
        return [(size / max(sizes)) ** (1 / (self.temperature or 1) - 1) for size in sizes]
