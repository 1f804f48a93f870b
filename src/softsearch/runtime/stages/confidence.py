"""Confidence: how sure the model is of each translation, which it is forced to write again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from softsearch.option import Option
from softsearch.ranges import Range
from softsearch.runtime.stages.stage import Searched, Stage
from softsearch.search.options import MAX_BEAM

if TYPE_CHECKING:
    from softsearch.runtime.translation import Candidates


@dataclass(frozen=True, kw_only=True)
class ConfidenceStage(Stage):
    """Measures the confidence in translations, and the agreement of samples with them."""

    unavailable: ClassVar = {
        "prompt": "it shows scores; write --confidence FILE",
        "libretranslate": "its answers have no such field",
        "page": "its search tree has the probabilities of tokens",
    }

    confidence: Annotated[bool, Option("return the model's confidence in each translation", True)] = False
    agreement: Annotated[
        int, Range(0, MAX_BEAM), Option("confidence with the agreement of N samples with the translation", 10)
    ] = 0

    @property
    def is_slow(self) -> bool:
        """With samples."""
        return self.agreement > 0

    def written(self, candidates: "Candidates", searched: Searched) -> "Candidates":
        """Adds the confidence to each translation."""
        from softsearch.search.confidence import measure_confidence  # here, because --help needs none of it

        measured = iter(
            measure_confidence(
                searched.system.step_fn,
                searched.system.tokenizers[1],
                searched.strategy,
                searched.src,
                [[each.hypothesis for each in n_best] for n_best in candidates],
                prefixes=searched.prefixes,
                samples=self.agreement,
                workers=searched.workers,
            )
        )
        return [[each._replace(confidence=next(measured)) for each in n_best] for n_best in candidates]
