"""Text that can be drawn, and a style that nothing around it changes."""

import gc
import weakref

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from softsearch.report.drawing import drawable, pixels, style


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("▁straße", "▁straße"),
        ("привет שלום λόγος", "привет שלום λόγος"),
        ("$x_1$", "$x_1$"),
        ("a\nb\tc", "a\ufffdb\ufffdc"),
        ("\ue123", "\ufffd"),  # private use: in no font
        ("", ""),
    ],
)
def test_what_no_font_has_is_replaced(text: str, expected: str) -> None:
    assert drawable(text) == expected


@pytest.mark.parametrize(
    "text", ["日本語 한국어 ไทย हिन्दी", "a\ufe0f\u200d\U0001f642", "\x00\u202e\ud800", "$\\frac{", "^_"]
)
def test_any_text_is_drawn_without_a_warning(text: str) -> None:
    """Warnings are errors here; Matplotlib warns of each glyph that it lacks."""
    with style():
        figure = Figure(figsize=(2, 1))
        figure.text(0.1, 0.5, drawable(text))
        image = pixels(figure)
    assert image.shape == (120, 240, 3)
    assert image.min() < 128


def test_a_users_settings_have_no_say() -> None:
    def draw() -> np.ndarray:
        with style():
            figure = Figure(figsize=(2, 1))
            figure.text(0.1, 0.5, "$x$")
            return pixels(figure)

    plain = draw()
    with mpl.rc_context({"text.usetex": True, "text.color": "red", "font.family": ["no such font"], "figure.dpi": 30}):
        assert np.array_equal(draw(), plain)
        assert mpl.rcParams["figure.dpi"] == 30


def test_no_figure_is_kept() -> None:
    figure = Figure(figsize=(1, 1))
    kept = weakref.ref(figure)
    with style():
        pixels(figure)
    del figure
    gc.collect()
    assert plt.get_fignums() == []
    assert kept() is None
