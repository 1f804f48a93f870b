"""Heatmaps of alignments (Bahdanau et al. 2015, figure 3)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softsearch.report.drawing import drawable, pixels, style

_MARGIN, _CHARACTER = 1.1, 0.09  # inches
_LONGEST = 24  # characters of a label


def draw_alignments(
    alignments: NDArray[np.floating], src_pieces: Sequence[str], tgt_pieces: Sequence[str], path: Path
) -> None:
    """Writes a heatmap as PNG: rows are target pieces, columns are source pieces, white is 1.

    ``alignments`` are ``[len(tgt_pieces), len(src_pieces)]``; rows are distributions over the source.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with style():
        _figure(alignments, src_pieces, tgt_pieces).savefig(path, format="png")


def alignment_image(
    alignments: NDArray[np.floating], src_pieces: Sequence[str], tgt_pieces: Sequence[str]
) -> NDArray[np.uint8]:
    """The same heatmap as pixels, ``[height, width, 3]``; see :func:`draw_alignments`."""
    with style():
        return pixels(_figure(alignments, src_pieces, tgt_pieces))


def _figure(alignments: NDArray[np.floating], src_pieces: Sequence[str], tgt_pieces: Sequence[str]) -> Figure:
    columns, rows = ([_label(piece) for piece in side] for side in (src_pieces, tgt_pieces))
    width = _MARGIN + _CHARACTER * max(map(len, rows), default=0) + 0.34 * len(columns)
    height = _MARGIN + _CHARACTER * max(map(len, columns), default=0) + 0.30 * len(rows)
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(alignments, cmap="gray", vmin=0, vmax=1, aspect="auto")
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(src_pieces)), columns, rotation=60, ha="left")
    axes.set_yticks(range(len(tgt_pieces)), rows)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, label="alignment weight", shrink=0.8)
    return figure


def _label(piece: str) -> str:
    text = drawable(piece)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
