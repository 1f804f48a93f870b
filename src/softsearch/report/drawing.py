"""What all pictures share: a style that a user's matplotlibrc cannot change, text that can be drawn, pixels.

Figures are made without pyplot, which would keep each of them until it is closed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

FAMILY = "DejaVu Sans"  # comes with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew
_OTHERS = (  # used for what it lacks, where they are installed
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
)
_REPLACEMENT = "\ufffd"


@contextmanager
def style() -> Iterator[None]:
    """Draws text as it is: a piece with dollar signs is no formula."""
    options: Any = {  # matplotlib types each name
        "font.family": list(_families()),
        "text.parse_math": False,
        "text.usetex": False,
        "figure.dpi": 120,
        "savefig.dpi": 120,
    }
    with mpl.rc_context(options):
        yield


def drawable(text: str) -> str:
    """``text`` in one line, with U+FFFD for each character that no font here has."""
    return "".join(c if c.isprintable() and ord(c) in _characters() else _REPLACEMENT for c in text)


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """Draws a figure, inside :func:`style`: ``[height, width, 3]``."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


@cache
def _families() -> tuple[str, ...]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return (FAMILY, *(name for name in _OTHERS if name in installed))


@cache
def _characters() -> frozenset[int]:
    files = (font_manager.findfont(font_manager.FontProperties(family=name)) for name in _families())
    return frozenset().union(*(font_manager.get_font(file).get_charmap() for file in files))
