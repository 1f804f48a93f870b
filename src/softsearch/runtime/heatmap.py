"""Attention between words as heatmaps: amber cells with percentages, on one scale from 0 to 100 %."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError, InputError
from softsearch.runtime.output import open_output
from softsearch.runtime.translation import Translation
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.vocabulary import EOS, LANGUAGE_TAG, SOURCE_TAG, SPECIALS
from softsearch.text.word_links import join_pieces, word_starts, word_weights

MAX_DRAWN = 20  # sentences in a file
NO_TEXT = "No line has text."
END, END_LABEL = SPECIALS[EOS], "end"
# By name, because the runtime has no matplotlib.
_WRITERS = {".html": "softsearch.runtime.heatmap:page", ".png": "softsearch.report.heatmap:png"}
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_STYLE = """:root {
  color-scheme: light dark;
  --card: light-dark(#ffffff, #1c2024);
  --soft: light-dark(#59636e, #a0a9b3);
  color: light-dark(#1c2126, #e4e7ea);
}
body { margin: 1rem; background: var(--card); font: 1rem/1.5 system-ui, sans-serif; }
figure { margin: 0 0 2.5rem; }
.scroll { overflow: auto; }
figcaption { margin-bottom: 0.4rem; overflow-wrap: anywhere; }
"""


class Attention(NamedTuple):
    """The attention of a sentence between words, ``</s>`` last unless truncated."""

    caption: str
    src: Sequence[str]
    tgt: Sequence[str]
    weights: NDArray[np.float32]  # [len(tgt), len(src)]


def _attention(translation: Translation, tokenizers: Tokenizers, number: int) -> Attention | None:
    """The attention of the translation of a line by its number; None of a line without text."""
    if translation.alignments is None or not translation.tgt_pieces:
        return None
    pieces = translation.src_pieces, translation.tgt_pieces
    starts = [
        word_starts(side, whole_words=tokenizer.has_words, unspaced=True)
        for side, tokenizer in zip(pieces, tokenizers, strict=True)
    ]
    src, tgt = map(join_pieces, pieces, starts)
    return Attention(f"sentence {number}: {translation.text}", src, tgt, word_weights(translation.alignments, *starts))


@contextmanager
def open_drawing(path: Path, tokenizers: Tokenizers, notes: list[str]) -> Iterator[Callable[[Translation, int], None]]:
    """Yields a function that takes translations with the numbers of their lines; draws the first ones at the end.

    ``notes`` gets what a reader of the file has to know.

    Raises:
        ConfigError: the file's name ends in the name of no format.
        InputError: it cannot be written, or it is a PNG and matplotlib is missing.
    """
    if path.suffix.lower() not in _WRITERS:
        raise ConfigError(f"--attention is {path}, expected a name that ends in {' or '.join(_WRITERS)}")
    try:
        write: Callable[[Sequence[Attention]], tuple[bytes, str]] = resolve_name(_WRITERS[path.suffix.lower()])
    except ModuleNotFoundError as error:
        raise InputError(
            f"--attention {path} needs matplotlib, which is not installed: pip install matplotlib, or name a file that "
            "ends in .html"
        ) from error
    drawn: list[Attention] = []
    left_out = 0

    def add(translation: Translation, number: int) -> None:
        nonlocal left_out
        if found := _attention(translation, tokenizers, number):
            left_out += len(drawn) == MAX_DRAWN
            drawn.extend([found] if not left_out else [])

    with open_output(path) as output:
        yield add
        content, note = write(drawn)
        output.write(content)
    if left_out:
        notes.append(f"{path} has the first {MAX_DRAWN} sentences; {left_out:,} more are not drawn")
    if note:
        notes.append(f"{path}: {note}")


def page(heatmaps: Sequence[Attention]) -> tuple[bytes, str]:
    """A page of heatmaps that a browser shows without a network, and nothing to note."""
    figures = "".join(
        f"<figure><figcaption>{text_of(each.caption)}</figcaption>"
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text_of(each.caption)}">'
        f"{table(*each[1:])}</div></figure>\n"
        for each in heatmaps
    )
    text = (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Attention</title>\n'
        f"<style>\n{_STYLE}{style_sheet()}\n</style>\n<main>\n{figures or NO_TEXT}</main>\n</html>\n"
    )
    return text.encode(), ""


def style_sheet() -> str:
    """The style sheet of tables, with a class for each per cent: the policy of report.html forbids inline styles."""
    css = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    return css + "".join(f".w{percent}{{--weight:{percent / 100}}}" for percent in range(101))


def table(src: Sequence[str], tgt: Sequence[str], weights: Sequence[Sequence[float]] | NDArray[np.floating]) -> str:
    """The HTML of a heatmap: a row for each target word, a column for each source word."""
    matrix = np.asarray(weights, dtype=float).reshape(len(tgt), len(src))
    percents = np.clip(np.rint(100 * matrix), 0, 100).astype(int)
    heads = "".join(f'<th scope="col">{_label(word)}</th>' for word in src)
    rows = "\n".join(
        f'<tr><th scope="row">{_label(word)}</th>'
        + "".join(f'<td class="w{percent}">{percent or ""}</td>' for percent in row)
        + "</tr>"
        for word, row in zip(tgt, percents.tolist(), strict=True)
    )
    caption = "<caption>In per cent; each row adds up to 100.</caption>"
    return (
        f'<table class="heatmap">{caption}\n<thead><tr><td></td>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>'
    )


def text_of(text: str) -> str:
    """Text for HTML, with U+FFFD for the characters that a page cannot hold."""
    return html.escape(clean(text))


def clean(text: str) -> str:
    """Text with U+FFFD for the characters that a page cannot hold."""
    return _NOT_TEXT.sub("\ufffd", text)


def label(word: str) -> tuple[str, bool]:
    """What a heatmap shows for a word or a token, and whether that is text: ``into de`` for the tag ``<2de>``."""
    if word == END:
        return END_LABEL, False
    for pattern, before in ((LANGUAGE_TAG, "into"), (SOURCE_TAG, "from")):
        if tag := pattern.fullmatch(word):
            return f"{before} {tag[1]}", False
    return word, True


def _label(word: str) -> str:
    shown, is_text = label(word)
    if not is_text:
        return f'<span class="end">{text_of(shown)}</span>'
    return f'<span dir="auto" title="{text_of(word)}">{text_of(word)}</span>'
