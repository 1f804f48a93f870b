"""The plain values in ``report.json``, from which the page is drawn."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError
from softsearch.files import REPORT
from softsearch.text.plain_values import parse, read_json


@dataclass(frozen=True)
class Score:
    """A corpus score with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float
    signature: str = field(default="", repr=False)  # from sacreBLEU, if it has one


@dataclass(frozen=True)
class MetricFacts:
    """Facts about a metric for tables and figures."""

    title: str
    higher_is_better: bool | None = True  # None: neither
    percent: bool = False  # a share, 0 to 1
    limits: list[float | None] = field(default_factory=lambda: [None, None])  # lowest and highest

    def show(self, value: float, digits: int = 2, sign: str = "") -> str:
        """Formats a score; a difference has the ``sign`` +."""
        return f"{100 * value:{sign}.{digits}f} %" if self.percent else f"{value:{sign}.{digits}f}"


@dataclass(frozen=True)
class LengthRange:
    """Scores for a range of source lengths."""

    name: str  # numbers of words, such as "06-10"
    sentences: int
    score: Score  # by the report's first metric
    length_ratio: float  # words of the translations / words of the references


@dataclass(frozen=True)
class SearchPoint:
    """One search with one model on the whole test set."""

    name: str  # greedy, beam 5, exact, ...
    quality: float  # by the report's first metric
    mean_log_prob: float  # of the best hypotheses, in nats
    mean_score: float  # after the length penalty
    seconds: float
    empty: float  # share of translations without a word
    search_errors: float | None  # share of sentences for which another search found a better hypothesis
    length_ratio: float | None = None  # words of the translations / words of the references; older reports have none
    p_value: float | None = None  # of the difference in quality from the report's search, by paired bootstrap


@dataclass(frozen=True)
class Heatmap:
    """The attention of one translation."""

    caption: str
    src: list[str]  # words or pieces
    tgt: list[str]
    weights: list[list[float]]  # [tgt][src], each row a distribution over the source
    heads: dict[str, list[str]] = field(default_factory=dict)  # whole per cents by head; the default first
    picture: str | None = None  # PNG in base64, if the source is a picture; its patches are the source, in rows


@dataclass(frozen=True)
class SystemReport:
    """One system on the test set; of another program's translations only the scores are known."""

    name: str
    origin: str  # path of the checkpoint, bundle or translations; for an ensemble all of them
    backend: str  # torch, onnx or mixed; "" of another program
    architecture: str  # name of the model config, such as rnnsearch; for an ensemble several
    search: str  # for example "beam 5, length penalty 1.0"
    parameters: int | None
    size_bytes: int | None
    sentences_per_second: float | None
    tokens_per_second: float | None  # of translations, EOS included
    scores: dict[str, Score]  # by metric
    nll: float | None  # mean -log p of a reference token, in nats; None if it is infinite or not a probability
    length_ratio: float
    by_length: list[LengthRange] = field(repr=False)
    hypotheses: list[str] = field(repr=False)
    sentence_scores: list[float] = field(repr=False)  # by the report's sentence_metric
    search_curve: list[SearchPoint] = field(default_factory=list, repr=False)
    aer: float | None = None  # alignment error rate, 0 to 1
    heatmaps: list[Heatmap] = field(default_factory=list, repr=False)
    traces: list[dict[str, object]] = field(default_factory=list, repr=False)  # by line, see softsearch.search.trace
    no_unk_sentences: int | None = None  # sentences without unknown words on either side


def three_digits(value: float) -> str:
    """Formats a speed, time or loss with three significant digits."""
    rounded = float(f"{value:.3g}")
    if rounded == 0 or not math.isfinite(rounded):
        return f"{rounded:g}"
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def _in_bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:,.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


# How numbers of systems are called and shown, by their fields: rows of the command's table, and columns of the page.
FIGURES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "parameters": ("parameters", "{:,}".format),
    "size_bytes": ("size", _in_bytes),
    "sentences_per_second": ("sentences/s", three_digits),
    "tokens_per_second": ("tokens/s", three_digits),
    "length_ratio": ("length ratio", "{:.3f}".format),
    "nll": ("-log p per token", "{:.3f}".format),
    "aer": ("AER", "{:.1%}".format),
    "no_unk_sentences": ("sentences without unknown words", "{:,}".format),
}


def figures_of(systems: Sequence[SystemReport]) -> Iterator[tuple[str, list[str]]]:
    """Yields the title of each figure that any system has, and its text for each system."""
    for name, (title, show) in FIGURES.items():
        values = [getattr(system, name) for system in systems]
        if any(value is not None for value in values):
            yield title, ["" if value is None else show(value) for value in values]


@dataclass(frozen=True)
class Comparison:
    """A paired bootstrap test of a system against the first one."""

    system: str
    baseline: str
    metric: str
    difference: float
    p_value: float


@dataclass(frozen=True)
class Report:
    """Systems on one test set."""

    test_set: str
    src_lang: str
    tgt_lang: str
    created: str  # ISO 8601, UTC
    softsearch_version: str
    machine: str
    sources: list[str] = field(repr=False)
    references: list[str] = field(repr=False)
    systems: list[SystemReport]
    metrics: dict[str, MetricFacts] = field(repr=False)  # of scores; the first ranks systems, lengths and searches
    sentence_metric: str
    comparisons: list[Comparison] = field(default_factory=list)
    overlap: dict[str, int] = field(default_factory=dict)  # test sentences in the training data, by kind
    warnings: list[str] = field(default_factory=list)


def write_report(report: Report, folder: Path) -> Path:
    """Writes ``report.json`` and returns its path."""
    path = folder / REPORT
    text = json.dumps(asdict(report), ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
    return path


def read_report(path: Path) -> Report:
    """Reads ``report.json``; ``path`` is the file or its folder.

    Raises:
        ConfigError: it is missing or not a report.
    """
    path = path if path.suffix == ".json" else path / REPORT
    try:
        report: Report = parse(read_json(path), Report)
        if not report.systems or {len(s.hypotheses) for s in report.systems} != {len(report.references)}:
            raise ValueError("its systems do not have one translation per reference")
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        raise ConfigError(
            f"{path} cannot be read ({type(error).__name__}: {error}); name the folder of a report written by "
            "softsearch evaluate, or evaluate again"
        ) from error
    return report
