"""Export formats: the interface of the classes in the config group ``format``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from softsearch.export.parity import Parity
from softsearch.models.seq2seq import Seq2Seq
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.options import Strategy
from softsearch.search.interface import StepFunction
from softsearch.text.tokenizer import Tokenizers


@dataclass(frozen=True, kw_only=True)
class ExportInputs:
    """A trained model, and the options that a format may use."""

    model: Seq2Seq  # in evaluation mode
    reference: StepFunction  # the model's step function, to compare the export with
    exact: Callable[[], StepFunction]  # makes it in float64, which shows how much the model amplifies rounding errors
    tokenizers: Tokenizers  # of source and target
    languages: tuple[str, str]  # of source and target; "" if not given
    text_form: str  # plain or lc_tok (softsearch.data.corpora.base)
    tags: tuple[str, ...]  # language tags with which sources begin
    search: Strategy  # the default of the runtime
    max_src_tokens: int  # longer sentences are translated in parts
    facts: dict[str, Any]  # plain values about training, for people
    shortlist: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None  # ids by frequency, and per source id
    lower: Callable[[Bundle], tuple[Bundle, dict[str, Any]]] | None = None  # to another precision, with facts


@dataclass(frozen=True, kw_only=True)
class ExportSummary:
    """Description of the export, for people."""

    backend: str  # the program that reads it, such as "ONNX"
    parity: Parity  # from softsearch.export.compare
    following: str = ""  # what to do next: a command, or several lines


class ExportFormat(ABC):
    """A kind of file or folder that other programs read."""

    name: ClassVar[str]  # as in format=NAME
    takes: ClassVar[Collection[str]] = ()  # which of the options precision, report and shortlist it supports

    def check(self, search: Strategy, out: Path) -> None:  # noqa: B027 # most formats refuse nothing
        """Refuses unsupported options before the checkpoint is read.

        Raises:
            SoftsearchError: the format does not support the ``search``, or ``out`` is not suitable.
        """

    @abstractmethod
    def write(self, inputs: ExportInputs, out: Path) -> ExportSummary:
        """Writes ``out`` if it computes the same numbers as the model (``softsearch.export.compare``).

        Raises:
            ConfigError: the format does not support the model, or ``out`` is not suitable.
            BundleError: the outputs differ from the model's; nothing was written.
        """
