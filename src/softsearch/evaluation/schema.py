"""What an evaluation report says, as plain values: written to ``report.json`` and drawn by the page."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """One corpus score with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float
    signature: str = ""  # sacreBLEU's; "" where there is none


@dataclass(frozen=True)
class LengthRange:
    """The test sentences of one range of source lengths."""

    name: str  # as in "06-10"; words of the source
    sentences: int
    bleu: Score
    length_ratio: float  # words of the translations / words of the references


@dataclass(frozen=True)
class SearchPoint:
    """One way to search with one model on the whole test set."""

    name: str  # greedy, beam 5, exact, ...
    bleu: float
    mean_log_prob: float  # of a sentence's best hypothesis, nats
    mean_score: float  # after the length penalty
    seconds: float
    empty: float  # share of the sentences whose best hypothesis has no words
    search_errors: float | None  # share of the sentences where a better hypothesis than this one is known


@dataclass(frozen=True)
class Picture:
    """A picture of the report's folder."""

    file: str  # relative to the report's folder
    caption: str


@dataclass(frozen=True)
class SystemReport:
    """One system on the test set."""

    name: str
    origin: str  # path of the checkpoint or bundle; of an ensemble all of them
    backend: str  # torch, onnx or mixed
    architecture: str  # model config's name, as rnnsearch; of an ensemble several
    search: str  # as in "beam 5, length penalty 1.0"
    parameters: int
    size_bytes: int
    sentences_per_second: float
    tokens_per_second: float  # of the translations, EOS counted
    scores: dict[str, Score]  # bleu, chrf, ter, bleu_lc, ..., exact_match, bleu_no_unk
    nll: float | None  # mean -log p of a reference token, nats; None where it is infinite or no probability
    length_ratio: float
    by_length: list[LengthRange]
    hypotheses: list[str]
    sentence_chrf: list[float]  # 0 to 100, what the browsable list is sorted by
    search_curve: list[SearchPoint] = field(default_factory=list)
    aer: float | None = None  # alignment error rate, 0 to 1
    heatmaps: list[Picture] = field(default_factory=list)
    # Those that bleu_no_unk is of: no unknown word in the source and the reference, and translated with UNK banned.
    no_unk_sentences: int | None = None


@dataclass(frozen=True)
class Comparison:
    """Paired bootstrap of one system against the first one."""

    system: str
    baseline: str
    metric: str
    difference: float
    p_value: float


@dataclass(frozen=True)
class Report:
    """One or several systems on one test set."""

    test_set: str
    src_lang: str
    tgt_lang: str
    created: str  # ISO 8601, UTC
    softsearch_version: str
    machine: str
    sources: list[str]
    references: list[str]
    systems: list[SystemReport]
    comparisons: list[Comparison] = field(default_factory=list)
    overlap: dict[str, int] = field(default_factory=dict)  # test sentences that are in the training data, by kind
    warnings: list[str] = field(default_factory=list)
