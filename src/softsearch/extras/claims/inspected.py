"""A model that is measured."""

from dataclasses import dataclass

from softsearch.data import ParallelSource
from softsearch.evaluation import TorchStepFunction
from softsearch.models import Seq2Seq
from softsearch.text import Tokenizers


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """The model of a run, on the CPU, where the functions of measures create tensors.

    Args:
        name: the run's name in the claim.
        model: the model, in evaluation mode.
        tokenizers: those of source and target.
        source: the data that it was trained on.
    """

    name: str
    model: Seq2Seq
    tokenizers: Tokenizers
    source: ParallelSource

    @property
    def step_fn(self) -> TorchStepFunction:
        """The step function of the model, for searches."""
        return TorchStepFunction(self.model)
