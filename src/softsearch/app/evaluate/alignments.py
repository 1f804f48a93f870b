"""What each word was aligned with: as text, as pictures, and beside alignments made by people."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from softsearch.app.evaluate.measure import Measured
from softsearch.app.systems.test_set import HeldOutText
from softsearch.errors import ConfigError
from softsearch.evaluation.alignment_error import Gold, alignment_error_rate, read_gold
from softsearch.evaluation.schema import Picture, SystemReport
from softsearch.evaluation.word_alignment import Aligned, Units, align, links, pharaoh
from softsearch.report.folder import file_name
from softsearch.report.heatmap import draw_alignments
from softsearch.runtime.system import System
from softsearch.text.option_checks import require_choice
from softsearch.text.vocabulary import EOS

_LONGEST = 40  # units of a side of a picture that can be read
_FOLDER = "alignments"


def check_alignment_options(options: dict[str, Any], text: HeldOutText) -> list[Gold] | None:
    """Finds mistakes before anything is translated; returns the gold alignments of the test set, if there are any.

    Raises:
        ConfigError: an option is wrong.
        CorpusError: the file is not of the format, or not of this test set.
    """
    require_choice("alignment_units", options["alignment_units"], ("words", "pieces"))
    _check_heatmaps(options["heatmaps"], len(text.sources))
    if options["gold"] is None:
        return None
    if options["gold_first"] not in (0, 1):
        raise ConfigError(f"gold_first is {options['gold_first']!r}, expected 0 or 1; change gold_first")
    counts = [(len(_words(src)), len(_words(tgt))) for src, tgt in zip(*text.lines, strict=True)]
    return read_gold(Path(options["gold"]), counts, first=options["gold_first"])


def error_rate(system: System, gold: Sequence[Gold], text: HeldOutText) -> float | None:
    """The alignment error rate of the references' words; None for a model that does not attend."""
    if not system.step_fn.has_attention:
        return None
    found = align(system.step_fn, system.tokenizers, *text.lines, units="words")
    return None if found is None else alignment_error_rate([links(aligned) for aligned in found], gold)


def align_translations(system: System, measured: Measured, text: HeldOutText, units: Units) -> list[Aligned] | None:
    """Where a system looked while it wrote its translations; None for a model that does not attend."""
    if not system.step_fn.has_attention:
        return None
    written = [h.tokens if h.truncated else (*h.tokens, EOS) for h in measured.found]
    return align(system.step_fn, system.tokenizers, text.sources, written, units=units)


def write_alignments(
    folder: Path, report: SystemReport, found: Sequence[Aligned], options: dict[str, Any]
) -> SystemReport:
    """Writes the alignments of a system and its pictures, and returns its report with them.

    ``alignments/SYSTEM.txt`` has a line for each sentence; with pieces, ``SYSTEM.src.txt`` and ``SYSTEM.tgt.txt`` hold
    what is numbered.
    """
    name = file_name(report.name)
    texts = {f"{name}.txt": [pharaoh(links(aligned)) for aligned in found]}
    if options["alignment_units"] == "pieces":
        texts[f"{name}.src.txt"] = [" ".join(aligned.src) for aligned in found]
        texts[f"{name}.tgt.txt"] = [" ".join(aligned.tgt) for aligned in found]
    (folder / _FOLDER).mkdir(exist_ok=True)
    for file, lines in texts.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / _FOLDER / file).write_text(text, encoding="utf-8", newline="\n")
    pictures = []
    for place in chosen_sentences(options["heatmaps"], found):
        file = f"{_FOLDER}/{name}-{place + 1}.png"
        draw_alignments(found[place].weights, found[place].src, found[place].tgt, folder / file)
        pictures.append(Picture(file, f"sentence {place + 1}: {report.hypotheses[place]}"))
    return replace(report, heatmaps=pictures)


def chosen_sentences(heatmaps: int | list[int], found: Sequence[Aligned]) -> list[int]:
    """The places of the sentences to draw: the lines that are named, or so many, at equal distances, that fit."""
    if isinstance(heatmaps, list):
        return [line - 1 for line in heatmaps]
    drawable = [i for i, a in enumerate(found) if min(len(a.src), len(a.tgt)) > 1 and max(a.weights.shape) <= _LONGEST]
    step = max(1, len(drawable) // max(heatmaps, 1))
    return drawable[::step][:heatmaps]


def _check_heatmaps(heatmaps: object, lines: int) -> None:
    numbers = heatmaps if isinstance(heatmaps, list) else [heatmaps]
    least, most = (1, lines) if isinstance(heatmaps, list) else (0, lines)
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            raise ConfigError(
                f"heatmaps is {heatmaps!r}, expected how many sentences to draw, or a list of line numbers from 1 to "
                f"{lines}; change heatmaps"
            )


def _words(line: str) -> list[str]:
    return [word for word in line.split(" ") if word]
