"""The keywords of ``Translator.translate``, for type checkers and editors; a test compares them with the options."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from softsearch.runtime.glossary import Glossary
from softsearch.runtime.options import Length, Search


class SearchKeywords(TypedDict, total=False):
    """Options of searches: docs/search.md; None is the bundle's recommendation."""

    alignments: bool | None
    banned: str | Sequence[str] | None
    beam: int | None
    coverage_penalty: float | None
    diversity: float | None
    exact_stop: bool | None
    groups: int | None
    length_norm: Literal["power", "gnmt"] | None
    length_penalty: float | None
    max_length: int | str | Length | None
    max_nodes: int | None
    min_length: int | str | Length | None
    n_best: int | None
    no_repeat_ngram: int | None
    rescore_length_penalty: float | None
    rescore_weights: Sequence[float] | None
    seed: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None


class TranslateOptions(SearchKeywords, total=False):
    """Also the options of our stages; None is the Translator's value, or the default."""

    agreement: int | None
    confidence: bool | None
    glossary: Path | str | Mapping[str, str] | Glossary | None
    glossary_bonus: float | None
    head: str | None
    keep: Sequence[str] | None
    keep_usual: bool | None
    markup: bool | None
    paragraphs: bool | None
    replace_unknown: bool | Mapping[str, str] | None
    src: str | None
    tgt: str | None
    trace: bool | None


class StreamOptions(TranslateOptions, total=False):
    """The keywords of ``Translator.stream``."""

    search: str | Search | None
