"""One HTML file that needs nothing else: styles, script and pictures are in it, and nothing else may be loaded."""

import base64
import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from softsearch.errors import InputError
from softsearch.report.page.markup import Markup, join, tag

_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml"}


def write_document(path: Path, title: str, *body: Markup, data: Any = None) -> Path:
    """Writes a page in one step.

    Args:
        path: of the file.
        title: what the browser's tab says.
        body: what the page says.
        data: plain values for the script, which is left out where there are none.
    """
    style = _asset("page.css")
    script = _asset("page.js") if data is not None else ""
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    )
    scripts = join(_json(data), tag("script", Markup(script))) if data is not None else Markup()
    text = f"<!doctype html>\n{tag('html', head, tag('body', *body, scripts), lang='en')}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    os.replace(temporary, path)
    return path


def figure(folder: Path, file: str, caption: str) -> Markup:
    """A picture of ``folder`` with its caption, as part of the page.

    Raises:
        InputError: it is not in the folder, or no picture.
    """
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()) or path.suffix not in _TYPES or not path.is_file():
        raise InputError(
            f"the report's picture {file!r}: expected one of {', '.join(_TYPES)} inside {folder}; "
            "write it there before the page"
        )
    content = base64.b64encode(path.read_bytes()).decode()
    image = tag("img", src=f"data:{_TYPES[path.suffix]};base64,{content}", alt=caption)
    scrolled = tag("div", image, class_="picture", role="region", tabindex=0, aria_label=caption)
    return tag("figure", scrolled, tag("figcaption", caption))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(data: Any) -> Markup:
    """Data as JSON that cannot end its element, whatever text is in it."""
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return tag("script", Markup(text), type="application/json", id="data")
