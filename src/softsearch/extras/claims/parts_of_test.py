"""Rows of parts of the test sentences, each with its score in resamples of these sentences."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch import lab
from softsearch.evaluation import Report, SystemReport
from softsearch.evaluation.parts import bleu_for
from softsearch.extras.claims.verdict import RESAMPLED, Row
from softsearch.text import UNK

ENDS = (5, 10, 15, 20, 30, 40, 50)  # words
RESAMPLES = 200


def resample_counts(part: Sequence[int]) -> NDArray[np.float64]:
    """Returns how often each sentence of a part is in each resample of it, ``[resamples, sentences]``.

    They are the same for every system, since ``part``, the numbers of the sentences, is the seed.
    """
    share = [1 / len(part)] * len(part)
    return np.random.default_rng(list(part)).multinomial(len(part), share, size=RESAMPLES).astype(np.float64)


def resampled_text(scores: Sequence[float]) -> str:
    """Returns scores of resamples as text, as verdicts read them."""
    return " ".join(f"{score:.5g}" for score in scores)


def resampled_ratio(
    name: str, parts: NDArray[np.floating | np.integer], wholes: NDArray[np.floating | np.integer]
) -> Row:
    """Returns the sum of ``parts`` divided by that of ``wholes``, as a score with this name, and that of resamples.

    Both have a value for each sentence; ``wholes`` are whole numbers, such as tokens. ``sentences`` are those with
    any; the resamples are of all.
    """
    if not wholes.any():
        return {"sentences": 0, name: None}
    counts = resample_counts(range(len(wholes)))
    ratios = (counts @ parts) / np.maximum(counts @ wholes, 1)  # few sentences may have none in a resample
    score = float(parts.sum() / wholes.sum())
    return {"sentences": int(np.count_nonzero(wholes)), name: score, name + RESAMPLED: resampled_text(ratios.tolist())}


def score_part(system: SystemReport, report: Report, part: Sequence[int]) -> Row:
    """Returns the number of sentences of a part, their BLEU, and that of their resamples."""
    run = lab.Run(Path(system.origin))
    bleu = bleu_for(run.source.text_form, report.tgt_lang)
    table = bleu.table(*([side[index] for index in part] for side in (system.hypotheses, report.references)))
    resampled = [bleu.score(counts @ table) for counts in resample_counts(part)]
    return {
        "sentences": len(part),
        "bleu": bleu.score(table.sum(axis=0)),
        f"bleu{RESAMPLED}": resampled_text(resampled),
    }


def by_length(system: SystemReport, report: Report, ends: Sequence[int]) -> Iterator[Row]:
    """Yields a row for each range of the sources' words up to each of the ``ends``, and beyond."""
    groups: dict[int, list[int]] = {}
    for index, source in enumerate(report.sources):
        groups.setdefault(bisect_left(ends, len(source.split())), []).append(index)
    bounds = [0, *ends]
    for number, part in sorted(groups.items()):
        name = f"{bounds[number] + 1:02}-{ends[number]:02}" if number < len(ends) else f"{ends[-1] + 1:02}+"
        words = [sum(len(side[index].split()) for index in part) for side in (system.hypotheses, report.references)]
        yield {"length": name, **score_part(system, report, part), "length_ratio": words[0] / max(1, words[1])}


def by_unknown(system: SystemReport, report: Report) -> Iterator[Row]:
    """Yields a row of sentences without unknown words in the source, and one of as many of the same lengths with some.

    As many of both have some in the reference, which a model that writes words cannot match. Of each length in source
    words, both have the number that the rarer kind has.
    """
    tokenizers = lab.Run(Path(system.origin)).tokenizers
    kinds: dict[tuple[tuple[int, bool], bool], list[int]] = defaultdict(list)
    for index, pair in enumerate(zip(report.sources, report.references, strict=True)):
        in_source, in_reference = (UNK in each.encode(line) for each, line in zip(tokenizers, pair, strict=True))
        kinds[(len(pair[0].split()), in_reference), in_source].append(index)
    both = Counter({alike: min(len(kinds[alike, False]), len(kinds[alike, True])) for alike, _ in [*kinds]})
    for some, name in ((False, "none"), (True, "some")):
        part = [index for alike, number in sorted(both.items()) for index in kinds[alike, some][:number]]
        if part:
            mean = float(np.mean([len(report.sources[index].split()) for index in part]))
            yield {"unknown": name, "words": mean, **score_part(system, report, part)}
