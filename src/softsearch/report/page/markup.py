"""HTML in which every text is escaped once, by construction."""

import html
import re

_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class Markup(str):
    """HTML that is finished; any other string is text."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Text as HTML; what no HTML file can hold becomes U+FFFD."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(_NOT_TEXT.sub("\ufffd", text)))


def join(*parts: str) -> Markup:
    """Parts side by side, each escaped unless it is markup."""
    return Markup("".join(map(escape, parts)))


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """An element.

    Args:
        name: of the element.
        children: text, which is escaped, or markup.
        attributes: a final ``_`` is dropped and others become ``-``, as in ``class_`` and ``aria_label``; True is an
            attribute without a value, and None and False are none.
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    written = "".join(
        f" {key}" if value is True else f' {key}="{escape(_show(value))}"'
        for key, value in given.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def _show(value: str | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
