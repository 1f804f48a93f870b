"""Markdown pages from templates."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from softsearch.errors import printable


def render_markdown(package: str, template: str, values: dict[str, Any], **filters: Callable[[Any], str]) -> str:
    """The text of a template in the folder of ``package``."""
    environment = Environment(  # noqa: S701 - Markdown: `_clean` keeps values in their cells
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, finalize=_clean
    )
    environment.filters |= filters
    text = files(package).joinpath(template).read_text(encoding="utf-8")
    return environment.from_string(text).render(values)


def _clean(value: object) -> str:
    """A value on one line, without the bar that would end its cell."""
    return printable(" ".join(str(value).split())).replace("|", "\\|")
