"""Style, fonts and output formats of all figures.

Figures are created without pyplot, which would keep them in memory until they are closed.
"""

import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from xml.etree import ElementTree as ET

import matplotlib.style
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softsearch.runtime.heatmap import label

_FAMILY = "DejaVu Sans"  # comes with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew

COLOURS = ("#1a56b0", "#c2410c", "#0f766e", "#8b2fb8", "#946200", "#be1856", "#4a7309", "#4b5768")
AMBER = LinearSegmentedColormap.from_list("amber", ["#f7f7f5", "#f2b33d"])  # of heatmaps, as in heatmap.css
SOFT, LINE, GROUND = "#59636e", "#dcdfe3", "#ffffff"  # text and axes; grid; background
# Variables of the page's style sheet, which follow the light or dark scheme.
_VARIABLES = {SOFT: "var(--soft)", LINE: "var(--line)", GROUND: "var(--card)"}
_VARIABLES |= {colour: f"var(--s{number})" for number, colour in enumerate(COLOURS)}


def colour(number: int) -> str:
    """Returns the colour of a line by its number."""
    return COLOURS[number % len(COLOURS)]


def style() -> AbstractContextManager[None]:
    """Draws text literally: dollar signs do not begin a formula. A user's matplotlibrc has no effect."""
    options = {
        "font.family": _FAMILY,
        "text.parse_math": False,
        "text.usetex": False,
        "figure.dpi": 120,
        "savefig.dpi": 120,
        "svg.fonttype": "none",
    }
    return matplotlib.style.context(options, after_reset=True)


def drawable(text: str) -> str:
    """Returns ``text`` on one line, with U+FFFD for characters that are not in the font."""
    return "".join(c if c.isprintable() and ord(c) in _characters() else "\ufffd" for c in text)


def draw_heatmap(
    axes: Axes, src: Sequence[str], tgt: Sequence[str], weights: NDArray[np.floating], title: str = "", size: float = 8
) -> None:
    """Draws weights ``[len(tgt), len(src)]`` as the pages do: amber, from 0 to 100 %.

    ``size`` is that of the words, in points.
    """
    axes.imshow(weights, cmap=AMBER, vmin=0, vmax=1, aspect="auto")
    for (row, column), percent in np.ndenumerate(np.rint(100 * weights).astype(int)):
        if percent:
            axes.text(column, row, str(percent), ha="center", va="center", fontsize=0.8 * size)
    axes.tick_params(which="both", length=0, labelsize=size)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, rotation=90)
    for axis, words in ((axes.xaxis, src), (axes.yaxis, tgt)):
        labels = [label(word) for word in words]
        axis.set_ticks(range(len(words)), [drawable(shown) for shown, _ in labels])
        axis.set_ticks(np.arange(len(words) + 1) - 0.5, minor=True)
        for (_, is_text), tick in zip(labels, axis.get_ticklabels(), strict=True):
            tick.set_fontstyle("normal" if is_text else "italic")
    axes.grid(which="minor", color=GROUND)  # between the cells
    axes.spines[:].set_visible(False)
    axes.set_title(title, fontsize=size + 1)


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """Draws a figure as ``[height, width, 3]``; call it inside ``style``."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def svg(figure: Figure, name: str, notes: Mapping[int, Sequence[str]]) -> str:
    """Draws a figure as an SVG element of a page; call it inside ``style``.

    Colours are variables of the page's style sheet. There are no inline styles, which the page's policy forbids.
    ``name`` is unique in the page; ``notes``, by line number, are tooltips of the markers.
    """
    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):  # for unique and reproducible ids
        figure.savefig(file, format="svg", transparent=True)
    root = ET.fromstring(file.getvalue())  # noqa: S314 - matplotlib has just written it
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # HTML has no namespaces
        attributes = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        properties = (part.partition(": ") for part in attributes.pop("style", "").split("; ") if part)
        attributes |= {name: _VARIABLES.get(value, value) for name, _, value in properties if name != "font-family"}
        element.attrib = attributes
    del root[:2]  # metadata, and a style sheet that would apply to the whole page
    texts = {f"line-{number}": texts for number, texts in notes.items()}
    for group in root.iter("g"):
        for marker, text in zip(group.iter("use"), texts.get(group.attrib.pop("id", ""), ()), strict=False):
            ET.SubElement(marker, "title").text = text
    root.attrib = {"viewBox": root.attrib["viewBox"], "class": "chart"}
    return ET.tostring(root, encoding="unicode", method="html")


@cache
def _characters() -> frozenset[int]:
    return frozenset(font_manager.get_font(font_manager.findfont(_FAMILY)).get_charmap())
