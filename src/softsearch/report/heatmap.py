"""Heatmaps of attention (Bahdanau et al. 2015, figure 3), on pictures where the source is one (Xu et al. 2015)."""

import base64
import io
from collections.abc import Mapping, Sequence
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from softsearch.evaluation.schema import Heatmap

_CELL = 12  # pixels of a weight
_SIDE = 144  # pixels of a picture, and the share of the attention's brightness in it
_BRIGHTNESS = 0.65


def heatmap(
    src: Sequence[str],
    tgt: Sequence[str],
    weights: NDArray[np.floating],
    caption: str,
    picture: NDArray[np.uint8] | None = None,
    heads: Mapping[str, NDArray[np.floating]] | None = None,
) -> Heatmap:
    """Attention ``[len(tgt), len(src)]`` as plain values, and that of each head by name.

    ``picture`` is the source, ``[height, width, 3]``.
    """
    png = None if picture is None else _png(Image.fromarray(picture))
    percents = {
        name: [" ".join(map(str, row)) for row in np.rint(100 * matrix).astype(int).tolist()]
        for name, matrix in (heads or {}).items()
    }
    return Heatmap(caption, list(src), list(tgt), np.round(weights.astype(float), 4).tolist(), percents, png)


def pictures(heatmap: Heatmap) -> list[Image.Image]:
    """The source, and for each target word the source under its weights: the brightest region has the largest weight.

    As in Xu et al. 2015, figure 5: the weights of the patches, row by row, are enlarged smoothly to the picture's size.
    """
    assert heatmap.picture is not None
    source = Image.open(io.BytesIO(base64.b64decode(heatmap.picture))).convert("RGB").resize((_SIDE, _SIDE))
    side = isqrt(len(heatmap.src))  # without </s>
    grids = np.asarray(heatmap.weights)[:, : side**2].reshape(-1, side, side)
    light = 255 * grids / np.maximum(grids.max(axis=(1, 2), keepdims=True), 1e-9)
    masks = (Image.fromarray(grid.astype(np.uint8)).resize(source.size, Image.Resampling.BICUBIC) for grid in light)
    return [source, *(Image.blend(source, mask.convert("RGB"), _BRIGHTNESS) for mask in masks)]


def pixels_without_text(heatmap: Heatmap) -> NDArray[np.uint8]:
    """The heatmap as pixels, ``[height, width, 3]``: text would need fonts of all scripts."""
    if heatmap.picture is not None:
        return np.concatenate([np.asarray(image) for image in pictures(heatmap)], axis=1)
    grey = np.kron(255 * np.asarray(heatmap.weights), np.ones((_CELL, _CELL))).round().astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=-1)


def data_url(image: Image.Image) -> str:
    """A picture inside a page."""
    return f"data:image/png;base64,{_png(image)}"


def _png(image: Image.Image) -> str:
    """The image's file in Base64."""
    file = io.BytesIO()
    image.save(file, format="png")
    return base64.b64encode(file.getvalue()).decode()
