"""The model card, which is the README of a bundle, and Markdown pages from templates."""

import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from softsearch.errors import printable


def model_card(
    name: str, facts: Mapping[str, Any], sizes: Mapping[str, int], single: Mapping[str, Any] | None = None
) -> str:
    """Returns Markdown that describes the model, its training and its quality, and how to use it.

    ``facts`` is the training section of the manifest: its ``evaluation`` has scores with intervals; without it, the
    final metrics of training, ``results``, are shown. ``sizes`` are file sizes in bytes; ``single`` describes the
    inputs and outputs of a single graph.
    """
    results = facts.get("results", {})
    scores = {key: value for key, value in results.items() if not key.startswith(("train/", "model/"))}
    values = {
        "name": name,
        "facts": facts,
        "results": results,
        "scores": scores,
        "evaluation": facts.get("evaluation"),
        "sizes": sizes,
        "single": single,
    }
    return render_markdown("softsearch.report", "model_card.md.jinja", values)


def render_markdown(package: str, template: str, values: dict[str, Any], **filters: Callable[[Any], str]) -> str:
    """Renders a template in the folder of ``package``."""
    environment = Environment(  # noqa: S701 - Markdown: `_clean` keeps values in their cells
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, finalize=_clean
    )
    environment.filters |= filters
    text = files(package).joinpath(template).read_text(encoding="utf-8")
    return environment.from_string(text).render(values)


def _clean(value: object) -> str:
    """Formats a value for a table: on one line, without bars, which would end the cell.

    A space at an end stays, because words of the template come through here, too.
    """
    return printable(re.sub(r"\s+", " ", str(value))).replace("|", "\\|")
