"""Information about the models on a page: ``softsearch web --about FILE``.

The file is JSON: ``{"title", "text", "examples": [{"text", "note"}], "models": {NAME: {...}}}``, where NAME is the name
of an export's folder. All values are plain text: nothing is interpreted as HTML.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from softsearch.errors import ConfigError
from softsearch.ranges import Range
from softsearch.text.parts import parse, read_json

_MAX_CHARACTERS = 2000  # largest text
_MAX_BYTES = 1 << 20
Percent = Annotated[float, Range(0, 100)]


@dataclass(frozen=True, kw_only=True)
class Flow:
    """The data flow of an encoder-decoder, for a diagram on the page.

    Args:
        encoder: how source positions exchange information; ``none``: one network reads the source and continues it.
        bridge: what the decoder reads from the source: the encoder's ``last`` state at its start, one ``summary`` at
            every step, a column for each target position, or a sum of all positions by ``attention``; ``copy`` also
            copies source tokens.
        decoder: how a target position gets information from those before.
    """

    encoder: Literal["forward", "backward", "bidirectional", "convolution", "self-attention", "none"]
    bridge: Literal["last", "summary", "columns", "attention", "copy"]
    decoder: Literal["recurrent", "self-attention"]


@dataclass(frozen=True, kw_only=True)
class About:
    """A model on the page.

    Args:
        title: shown instead of the model's name.
        year: year of the paper; cards are sorted by it.
        authors: authors of the paper.
        paper: title of the paper.
        link: address of the paper, with ``https://``.
        idea: what is new in the paper.
        equation: on one line, such as ``c_i = ∑_j α_{i j} h_j``: scripts of several characters are in braces, a word of
            several Latin letters is one name; ``;`` begins a new line.
        flow: the data flow for the diagram.
        bleu: BLEU on the test set.
        errors: typical errors.
        note: how the model was trained or exported.
    """

    title: str = ""
    year: Annotated[int, Range(1900, 2100)] | None = None
    authors: str = ""
    paper: str = ""
    link: str = ""
    idea: str = ""
    equation: str = ""
    flow: Flow | None = None
    bleu: Percent | None = None
    errors: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A sentence to try, and what it shows."""

    text: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class PageAbout:
    """The page as a whole."""

    title: str = ""
    text: str = ""
    examples: tuple[Example, ...] = ()
    models: Mapping[str, About] = field(default_factory=dict)

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Sorts names of models by year, those without one last."""
        years = {name: about.year for name, about in self.models.items() if about.year}
        return sorted(names, key=lambda name: years.get(name, math.inf))


def read_about(path: Path, names: Collection[str] | None = None) -> PageAbout:
    """Reads and checks the file of ``--about``.

    Args:
        path: path of the file.
        names: names of the models on the page; None if they have not been exported yet.

    Raises:
        ConfigError: it cannot be read, or a value in it is unknown, missing, too long, or has the wrong type.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES:,} bytes")
        tree = read_json(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is not JSON that describes models ({error}); see docs/browser.md") from error
    try:
        page: PageAbout = parse(tree, PageAbout, check=_check_text)
        for name, about in page.models.items():
            if names is not None and name not in names:
                raise ValueError(f"models.{name}: there is no such export, expected some of {', '.join(names)}")
            if about.link and not about.link.startswith("https://"):
                raise ValueError(f"models.{name}.link is {about.link!r}, expected https://...")
    except ValueError as error:
        raise ConfigError(f"{path}: {error}; change it") from error
    return page


def _check_text(path: str, value: object) -> None:
    """Refuses text that is long or has several lines."""
    if isinstance(value, str) and (len(value) > _MAX_CHARACTERS or any(ord(char) < 32 for char in value)):
        expected = f"one line of at most {_MAX_CHARACTERS:,} characters"
        raise ValueError(f"{path} has {len(value):,} characters or several lines, expected {expected}")
