"""What is written of a translation: a line, its n best ones, or records as JSON lines."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from softsearch.runtime.block_translation import ENDS
from softsearch.runtime.output import Output
from softsearch.runtime.translation import Translation

Records = Callable[[Translation, int], list[dict[str, Any]]]  # from a line's translation and number
Write = Callable[[Translation, int], None]


def keeps_ends(keywords: Mapping[str, Any]) -> bool:
    """Tells whether lines, and so their translations, have their ends."""
    return bool(keywords.get("markup") or keywords.get("paragraphs"))


def lines_to(output: Output, keywords: Mapping[str, Any]) -> Write:
    """A function that writes translations as lines, or the n best of each, as the keywords of ``translate`` say."""
    n_best, end = "n_best" in keywords, "" if keeps_ends(keywords) else "\n"
    return lambda translation, line: output.write(_format(translation, line - 1, n_best=n_best, end=end).encode())


def json_to(output: Output, records: Records) -> Write:
    """A function that writes records of translations as JSON lines."""
    return lambda translation, line: output.write(_json_lines(records(translation, line)).encode())


def _format(translation: Translation, index: int, *, n_best: bool, end: str) -> str:
    if not n_best:
        return translation.text + end
    return "".join(
        f"{index} ||| {' '.join(ranked.text.rstrip(ENDS).split(chr(10)))} ||| {ranked.score:.6f}\n"
        for ranked in translation.n_best
    )


def alignment_records(translation: Translation, line: int) -> list[dict[str, Any]]:
    """The attention weights of each of the n best translations, rounded to 4 digits."""
    return [
        {
            "line": line,
            "rank": rank,
            "src_pieces": ranked.src_pieces,
            "tgt_pieces": ranked.tgt_pieces,
            "matrix": [] if ranked.alignments is None else np.round(ranked.alignments.astype(float), 4).tolist(),
        }
        for rank, ranked in enumerate(translation.n_best, start=1)
    ]


def trace_records(translation: Translation, line: int) -> list[dict[str, Any]]:
    """The searches for the parts of a line."""
    return [{"line": line} | trace for trace in translation.traces]


def confidence_records(translation: Translation, line: int) -> list[dict[str, Any]]:
    """The model's confidence in each of the n best translations, null without text."""
    from softsearch.search.confidence import FIGURES

    return [
        {"line": line, "rank": rank, "text": ranked.text, "tgt_pieces": ranked.tgt_pieces}
        | (dict.fromkeys(FIGURES) if ranked.confidence is None else ranked.confidence.facts())
        for rank, ranked in enumerate(translation.n_best, start=1)
    ]


def _json_lines(records: Sequence[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
