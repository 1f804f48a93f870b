"""What is written from the options of searches: python -m tests.option_tables

The table of docs/search.md, the comments of configs/search and the keywords that editors know.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml

from softsearch.app.config.composition import CONFIGS
from softsearch.app.config.validation import imported
from softsearch.extras.serve.schema import search_options
from softsearch.option import kind_of, option
from softsearch.ranges import in_words
from softsearch.runtime.options import LENGTHS, STRATEGIES, option_of

DOCS = Path("docs/search.md")
KEYWORDS = Path("src/softsearch/runtime/translate_options.py")
_OTHER_TYPES = {  # than those of a search's own arguments
    **dict.fromkeys(LENGTHS, "int | str | Length"),
    "banned": "str | Sequence[str]",
    "rescore_length_penalty": "float",
    "rescore_weights": "Sequence[float]",
}
HEADER = "| option | searches | values | default | over HTTP | |\n|---|---|---|---|---|---|\n"
RETURNED = ("alignments",)  # asked for by the command, and in no config
_LINE = re.compile(r"( *)(\w+):(.*?)(?: # .*)?$")


def options() -> dict[str, tuple[Any, Any, list[str]]]:
    """The annotation, the default and the searches of each option."""
    found: dict[str, tuple[Any, Any, list[str]]] = {}
    for kind, strategy in STRATEGIES.items():
        defaults = {field.name: field.default for field in fields(strategy)}
        for name, hint in strategy.hints.items():
            found.setdefault(name, (hint, defaults[name], []))[2].append(kind)
    return found


def docs(text: str) -> str:
    """The page with its table anew."""
    before, _, rest = text.partition(HEADER.partition(" over HTTP")[0])
    assert rest, f"{DOCS} has no table of options"
    return f"{before}{HEADER}{''.join(_rows())}\n{rest.partition(chr(10) * 2)[2]}"


def _rows() -> Iterator[str]:
    taken = search_options()
    for name, (hint, default, searches) in options().items():
        values = re.sub(r"a (?:whole )?number of at least (\S+) and at most (\S+)", r"\1 to \2", in_words(hint))
        field = name.removesuffix("_offset")
        http = "yes" if name in taken else f"`{field}`" if field in taken else "no"
        cells = (f"`{name}`", ", ".join(searches), values, json.dumps(default), http, option(hint).help)
        yield f"| {' | '.join(cells)} |\n"


def keywords(text: str) -> str:
    """The module of the keywords of ``Translator.translate`` with those of searches anew."""
    before, begin, rest = text.partition('is the bundle\'s recommendation."""\n\n')
    types = {option_of(name): _type(hint) for name, (hint, _, _) in options().items()} | _OTHER_TYPES
    lines = (f"    {name}: {types[name]} | None\n" for name in sorted(types))
    return f"{before}{begin}{''.join(lines)}{rest[rest.index(chr(10) * 2) + 1 :]}"


def _type(hint: Any) -> str:
    kind, _ = kind_of(hint)
    choices = ", ".join(map(json.dumps, get_args(kind)))
    return f"Literal[{choices}]" if choices else str(kind.__name__)


def config(text: str) -> str:
    """A file of configs/search with the description of each option as its comment, and with options that it lacks."""
    lines, nodes = text.splitlines(), {"": yaml.safe_load(text)}
    for key, value in nodes[""].items():
        nodes |= {key: value} if isinstance(value, dict) else {}
    made, parent, seen = [], "", set[str]()
    for line in lines:
        if (found := _LINE.match(line)) is None:
            made.append(line)
            continue
        indent, key, value = found.groups()
        parent = parent if indent else key if key in nodes else ""
        seen |= set() if indent else {key}
        told = _hints(nodes[parent if indent else ""]).get(key)
        made.append(f"{indent}{key}:{value} # {option(told).help}" if option(told).help else line)
    defaults = _defaults(nodes[""].get("_target_"))
    for key, default in defaults.items():
        if key not in {*seen, *RETURNED} and (told := option(_hints(nodes[""])[key]).help):
            made.append(f"{key}: {json.dumps(default)} # {told}")
    return "\n".join(made) + "\n"


def _hints(node: Mapping[str, Any]) -> Mapping[str, Any]:
    target = imported(node["_target_"]) if "_target_" in node else None
    if target is None:
        return {}
    return target.hints if hasattr(target, "hints") else get_type_hints(target, include_extras=True)


def _defaults(target: str | None) -> dict[str, Any]:
    found: Any = imported(target) if target else None
    if not hasattr(found, "hints"):
        return {}
    return {field.name: field.default for field in fields(found) if field.default is not MISSING}


def files() -> dict[Path, str]:
    """The files with their contents anew."""
    searches = sorted((CONFIGS / "search").glob("*.yaml"))
    made = {path: config(path.read_text(encoding="utf-8")) for path in searches}
    made |= {KEYWORDS: keywords(KEYWORDS.read_text(encoding="utf-8"))}
    return {DOCS: docs(DOCS.read_text(encoding="utf-8")), **made}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
