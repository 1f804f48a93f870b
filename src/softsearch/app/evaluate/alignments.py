"""Alignments in ``evaluate``: options, and files in the report's folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.app.config.options import Evaluate
from softsearch.app.results import file_name
from softsearch.errors import ConfigError
from softsearch.evaluation.alignment_error import Gold, alignment_error_rate, read_gold
from softsearch.evaluation.inference import TorchStepFunction, torch_model
from softsearch.evaluation.schema import SystemReport
from softsearch.evaluation.systems import LabSystem
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.word_alignment import Alignment, Sentence, Units, align, align_by_head, links, pharaoh
from softsearch.report.heatmap import heatmap
from softsearch.search.interface import Hypothesis
from softsearch.text.corpus import write_lines

_MAX_DRAWN = 40  # units per side of a readable picture
_FOLDER = "alignments"


def read_alignment_options(options: Evaluate, text: HeldOutText) -> list[Gold] | None:
    """Checks the line numbers of ``heatmaps`` and ``traces``; returns the gold alignments, if ``gold`` names a file.

    Raises:
        ConfigError: there is no such line.
        CorpusError: the file has another format, or is for another test set.
    """
    for name, drawn in (("heatmaps", options.heatmaps), ("traces", options.traces)):
        if isinstance(drawn, list) and max(drawn, default=0) > len(text.sources):
            raise ConfigError(
                f"{name} is {drawn!r}, expected a number of sentences to draw, or a list of line numbers from 1 to "
                f"{len(text.sources)}; change {name}"
            )
    if options.gold is None:
        return None
    sources, references = ([len(list(filter(None, line.split(" ")))) for line in side] for side in text.lines)
    counts = list(zip(sources, references, strict=True))
    return read_gold(options.gold, counts, first=options.gold_first)


def measure_alignments(
    system: LabSystem,
    text: HeldOutText,
    report: SystemReport,
    hypotheses: Sequence[Hypothesis],
    gold: list[Gold] | None,
    options: Evaluate,
) -> tuple[SystemReport, list[Alignment] | None]:
    """Returns a system's report with its alignment error rate on the references and heatmaps, and all alignments.

    Whatever is not asked for, or needs attention that the model lacks, is None.
    """
    src, references = (
        [Sentence(ids, line) for ids, line in zip(side, lines, strict=True)]
        for side, lines in zip(text.encode(system.tokenizers), text.lines, strict=True)
    )
    if gold is not None:
        forced = align(system.step_fn, system.tokenizers, src, references, units="words")
        aer = None if forced is None else alignment_error_rate([links(alignment) for alignment in forced], gold)
        report = replace(report, aer=aer)
    if not options.alignments:
        return report, None
    tgt, units = [Sentence(h.tokens, truncated=h.truncated) for h in hypotheses], options.alignment_units
    alignments = align(system.step_fn, system.tokenizers, src, tgt, units=units)
    if alignments is None:
        return report, None
    heatmaps = [
        heatmap(
            *alignments[index],
            f"sentence {index + 1}: {report.hypotheses[index]}",
            text.picture(index),
            _heads(system, alignments[index], (src[index], tgt[index]), units),
        )
        for index in _drawn_sentences(options.heatmaps, alignments)
    ]
    return replace(report, heatmaps=heatmaps), alignments


def _heads(
    system: LabSystem, usual: Alignment, pair: tuple[Sentence, Sentence], units: Units
) -> dict[str, NDArray[np.float32]]:
    """Returns what a heatmap may show for a Transformer, by name: alignments, the mean of all heads, and each head."""
    step_fn = system.step_fn
    heads = (
        align_by_head(step_fn, system.tokenizers, *pair, units=units) if isinstance(step_fn, TorchStepFunction) else {}
    )
    if not heads:
        return {}
    name = torch_model(step_fn).decoder.alignments_name
    return {f"{name} ({'guided' if system.guided else 'usual'})": usual.weights} | heads


def write_alignments(folder: Path, name: str, alignments: Sequence[Alignment], units: Units) -> None:
    """Writes the alignments of the system ``name``.

    ``alignments/SYSTEM.txt`` has a line for every sentence; with pieces, ``SYSTEM.src.txt`` and ``SYSTEM.tgt.txt`` hold
    the numbered pieces.
    """
    name = file_name(name)
    texts = {f"{name}.txt": [pharaoh(links(alignment)) for alignment in alignments]}
    if units == "pieces":
        texts[f"{name}.src.txt"] = [" ".join(alignment.src) for alignment in alignments]
        texts[f"{name}.tgt.txt"] = [" ".join(alignment.tgt) for alignment in alignments]
    (folder / _FOLDER).mkdir(exist_ok=True)
    for file, lines in texts.items():
        write_lines(folder / _FOLDER / file, lines)


def _drawn_sentences(heatmaps: int | list[int], alignments: Sequence[Alignment]) -> list[int]:
    """Returns the indices of the sentences to draw: the named lines, or evenly spaced ones that fit."""
    drawable = [
        index
        for index, alignment in enumerate(alignments)
        if min(len(alignment.src), len(alignment.tgt)) > 1 and max(alignment.weights.shape) <= _MAX_DRAWN
    ]
    return choose_sentences(heatmaps, drawable)


def choose_sentences(chosen: int | list[int], among: Sequence[int]) -> list[int]:
    """Returns the indices of sentences: the named lines, or evenly spaced ones from ``among``."""
    if isinstance(chosen, list):
        return [line - 1 for line in chosen]
    step = max(1, len(among) // max(chosen, 1))
    return list(among[::step][:chosen])
