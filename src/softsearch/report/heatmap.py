"""Heatmaps of attention (Bahdanau et al. 2015, figure 3), drawn over the source if it is a picture (Xu et al. 2015)."""

import base64
import io
from collections.abc import Mapping, Sequence
from math import isqrt
from textwrap import wrap

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from softsearch.evaluation.schema import Heatmap
from softsearch.report.drawing import AMBER, GROUND, SOFT, draw_heatmap, drawable, pixels, style
from softsearch.runtime.heatmap import NO_TEXT, Attention, label

_CELL = 12  # pixels per weight
_WIDTH, _HEIGHT, _LETTER, _LINE = 0.32, 0.26, 0.083, 0.16  # inches of a cell, a letter, and a line in a PNG
_MARGIN, _LEAST_WIDTH, _DPI = 0.2, 3.5, 120
_MAX_PIXELS = 4000  # of a side
_SIDE = 144  # pixels of a picture, and the share of its brightness that attention controls
_BRIGHTNESS = 0.65


def heatmap(
    src: Sequence[str],
    tgt: Sequence[str],
    weights: NDArray[np.floating],
    caption: str,
    picture: NDArray[np.uint8] | None = None,
    heads: Mapping[str, NDArray[np.floating]] | None = None,
) -> Heatmap:
    """Returns attention ``[len(tgt), len(src)]`` as plain values, and that of each head by name.

    ``picture`` is the source, ``[height, width, 3]``.
    """
    png = None if picture is None else _png(Image.fromarray(picture))
    percents = {
        name: [" ".join(map(str, row)) for row in np.rint(100 * matrix).astype(int).tolist()]
        for name, matrix in (heads or {}).items()
    }
    return Heatmap(caption, list(src), list(tgt), np.round(weights.astype(float), 4).tolist(), percents, png)


def pictures(heatmap: Heatmap) -> list[Image.Image]:
    """Draws the source, and for each target word the source with its weights: brighter regions have larger weights.

    As in Xu et al. 2015, figure 5, the weights of the patches (in rows) are smoothly enlarged to the picture's size.
    """
    assert heatmap.picture is not None
    source = Image.open(io.BytesIO(base64.b64decode(heatmap.picture))).convert("RGB").resize((_SIDE, _SIDE))
    side = isqrt(len(heatmap.src))  # excluding </s>
    grids = np.asarray(heatmap.weights)[:, : side**2].reshape(-1, side, side)
    light = 255 * grids / np.maximum(grids.max(axis=(1, 2), keepdims=True), 1e-9)
    masks = (Image.fromarray(grid.astype(np.uint8)).resize(source.size, Image.Resampling.BICUBIC) for grid in light)
    return [source, *(Image.blend(source, mask.convert("RGB"), _BRIGHTNESS) for mask in masks)]


def pixels_without_text(heatmap: Heatmap) -> NDArray[np.uint8]:
    """Draws the heatmap as pixels ``[height, width, 3]``, without text, which would need fonts for all scripts."""
    if heatmap.picture is not None:
        return np.concatenate([np.asarray(image) for image in pictures(heatmap)], axis=1)
    amber: NDArray[np.uint8] = AMBER(np.asarray(heatmap.weights, dtype=float), bytes=True)[..., :3]
    return amber.repeat(_CELL, axis=0).repeat(_CELL, axis=1)


def png(heatmaps: Sequence[Attention]) -> tuple[bytes, str]:
    """Draws heatmaps as one picture; also returns a note on characters that are not in its font, or ""."""
    with style():
        drawn = [Image.fromarray(pixels(_figure(each))) for each in heatmaps]
        drawn = drawn or [Image.fromarray(pixels(_text(NO_TEXT)))]
    size = max(image.width for image in drawn), sum(image.height for image in drawn)
    whole, top = Image.new("RGB", size, GROUND), 0
    for image in drawn:
        whole.paste(image, (0, top))
        top += image.height
    file = io.BytesIO()
    whole.save(file, format="png")
    lacking = {c for each in heatmaps for word in (*each.src, *each.tgt) for c in word if drawable(c) != c}
    note = f"its font lacks {' '.join(sorted(lacking)[:10])}; a file that ends in .html has them" if lacking else ""
    return file.getvalue(), note


def _figure(heatmap: Attention) -> Figure:
    """Draws a heatmap with its caption; cells and words have the same size in all figures."""
    caption, src, tgt, weights = heatmap
    left, top = (_MARGIN + _LETTER * max(len(label(word)[0]) for word in words) for words in (tgt, src))
    longest = _LETTER * max(map(len, caption.split()))  # words are never broken
    width = max(left + _WIDTH * len(src), _LEAST_WIDTH, _MARGIN + longest) + _MARGIN
    lines = wrap(drawable(caption), int((width - 2 * _MARGIN) / _LETTER))
    bottom = _MARGIN + _LINE * len(lines)
    height = top + _HEIGHT * len(tgt) + bottom
    figure = Figure(figsize=(width, height), dpi=min(_DPI, _MAX_PIXELS / max(width, height)))
    box = left / width, bottom / height, _WIDTH * len(src) / width, _HEIGHT * len(tgt) / height
    draw_heatmap(figure.add_axes(box), src, tgt, weights, size=9)
    figure.text(_MARGIN / width, 0.8 * _MARGIN / height, "\n".join(lines), color=SOFT, fontsize=9)
    return figure


def _text(text: str) -> Figure:
    figure = Figure(figsize=(_LEAST_WIDTH, 0.6))
    figure.text(0.05, 0.4, text)
    return figure


def data_url(image: Image.Image) -> str:
    """Returns a picture as a data URL for a page."""
    return f"data:image/png;base64,{_png(image)}"


def _png(image: Image.Image) -> str:
    """Returns the image file in Base64."""
    file = io.BytesIO()
    image.save(file, format="png")
    return base64.b64encode(file.getvalue()).decode()
