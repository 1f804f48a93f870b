"""Alignments of ``evaluate``: their options, and their files in the report's folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from softsearch.app.config.options import Evaluate
from softsearch.errors import ConfigError
from softsearch.evaluation.alignment_error import Gold, read_gold
from softsearch.evaluation.schema import Picture, SystemReport
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.word_alignment import Alignment, links, pharaoh
from softsearch.report.folder import file_name
from softsearch.report.heatmap import draw_alignments

_MAX_DRAWN = 40  # units of a side of a picture that can be read
_FOLDER = "alignments"


def read_alignment_options(options: Evaluate, text: HeldOutText) -> list[Gold] | None:
    """Checks the line numbers of ``heatmaps`` and returns the gold alignments, if ``gold`` names a file.

    Raises:
        ConfigError: there is no such line.
        CorpusError: the file is not of the format, or not of this test set.
    """
    if isinstance(options.heatmaps, list) and max(options.heatmaps, default=0) > len(text.sources):
        raise ConfigError(
            f"heatmaps is {options.heatmaps!r}, expected how many sentences to draw, or a list of line numbers from 1 "
            f"to {len(text.sources)}; change heatmaps"
        )
    if options.gold is None:
        return None
    counts = [(len(_words(src)), len(_words(tgt))) for src, tgt in zip(*text.lines, strict=True)]
    return read_gold(options.gold, counts, first=options.gold_first)


def write_alignments(
    folder: Path, report: SystemReport, alignments: Sequence[Alignment], options: Evaluate
) -> SystemReport:
    """Writes the alignments of a system and pictures of some, and returns its report with these.

    ``alignments/SYSTEM.txt`` has a line for each sentence; with pieces, ``SYSTEM.src.txt`` and ``SYSTEM.tgt.txt`` hold
    the numbered pieces.
    """
    name = file_name(report.name)
    texts = {f"{name}.txt": [pharaoh(links(alignment)) for alignment in alignments]}
    if options.alignment_units == "pieces":
        texts[f"{name}.src.txt"] = [" ".join(alignment.src) for alignment in alignments]
        texts[f"{name}.tgt.txt"] = [" ".join(alignment.tgt) for alignment in alignments]
    (folder / _FOLDER).mkdir(exist_ok=True)
    for file, lines in texts.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / _FOLDER / file).write_text(text, encoding="utf-8", newline="\n")
    pictures = []
    for index in _drawn_sentences(options.heatmaps, alignments):
        file = f"{_FOLDER}/{name}-{index + 1}.png"
        draw_alignments(alignments[index].weights, alignments[index].src, alignments[index].tgt, folder / file)
        pictures.append(Picture(file, f"sentence {index + 1}: {report.hypotheses[index]}"))
    return replace(report, heatmaps=pictures)


def _drawn_sentences(heatmaps: int | list[int], alignments: Sequence[Alignment]) -> list[int]:
    """Indices of the sentences to draw: the lines that are named, or so many, at equal distances, that fit."""
    if isinstance(heatmaps, list):
        return [line - 1 for line in heatmaps]
    drawable = [
        index
        for index, alignment in enumerate(alignments)
        if min(len(alignment.src), len(alignment.tgt)) > 1 and max(alignment.weights.shape) <= _MAX_DRAWN
    ]
    step = max(1, len(drawable) // max(heatmaps, 1))
    return drawable[::step][:heatmaps]


def _words(line: str) -> list[str]:
    return [word for word in line.split(" ") if word]
