"""Pictures of the course's notebooks."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray


def draw_alignments(
    src: Sequence[str], tgt: Sequence[str], weights: NDArray[np.floating], title: str = "", axes: Axes | None = None
) -> None:
    """Draws alignments as in figure 3 of Bahdanau et al. 2015: white is 1, a row for each target word.

    Args:
        src: labels of the columns.
        tgt: labels of the rows.
        weights: ``[len(tgt), len(src)]``, from 0 to 1.
        title: above the picture.
        axes: the place of the picture; None: a new figure.
    """
    if axes is None:
        axes = plt.subplots(figsize=(1.5 + 0.35 * len(src), 1 + 0.3 * len(tgt)), layout="constrained")[1]
    axes.imshow(weights, cmap="gray", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(src)), src, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set_yticks(range(len(tgt)), tgt, fontsize=8)
    axes.set_title(title, fontsize=9)
