"""Export formats: what ``softsearch export`` gives to the class that the config group ``format`` names."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from softsearch.export.parity import Parity
from softsearch.models.interface import Seq2Seq
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.options import Strategy
from softsearch.search.interface import StepFunction
from softsearch.text.tokenizer import Tokenizers


@dataclass(frozen=True, kw_only=True)
class ExportInputs:
    """A trained model, and the options of the command that a format may take."""

    model: Seq2Seq  # in evaluation mode
    reference: StepFunction  # the model as search sees it, which what is written is compared with
    exact: Callable[[], StepFunction]  # makes it in float64, which shows how much the model amplifies rounding
    tokenizers: Tokenizers  # of source and target
    languages: tuple[str, str]  # of source and target; "" where it is not given
    text_form: str  # plain or lc_tok: see softsearch.data.corpora.base
    tags: tuple[str, ...]  # of languages, with which sources begin
    search: Strategy  # that the runtime uses by default
    max_src_tokens: int  # longer sentences are translated in parts
    facts: dict[str, Any]  # about the training, plain values for people
    shortlist: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None  # ids by frequency, and of each source id
    lower: Callable[[Bundle], tuple[Bundle, dict[str, Any]]] | None = None  # to another precision, with facts about it


@dataclass(frozen=True, kw_only=True)
class ExportSummary:
    """What was written, for people."""

    backend: str  # the program that reads it, as in "ONNX"
    parity: Parity  # see softsearch.export.parity.compare
    following: str = ""  # what to do with it: a command, or several lines


class ExportFormat(ABC):
    """A file or folder that other programs read: its name, what it writes, and how that is checked."""

    name: ClassVar[str]  # as in format=NAME
    takes: ClassVar[Collection[str]] = ()  # of the options precision, report and shortlist, those that it has

    def check(self, search: Strategy, out: Path) -> None:  # noqa: B027 # most have nothing to refuse
        """Refuses what can be told before the checkpoint is read.

        Raises:
            SoftsearchError: the format cannot do the ``search``, or ``out`` is not a place for it.
        """

    @abstractmethod
    def write(self, inputs: ExportInputs, out: Path) -> ExportSummary:
        """Writes ``out``, if it computes what the model does: see :func:`softsearch.export.parity.compare`.

        Raises:
            ConfigError: the format has no such model, or ``out`` is not a place for it.
            BundleError: what was made differs from the model; nothing was written.
        """
