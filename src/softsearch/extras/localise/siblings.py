"""Which file has the source text of one in another language: the file with the source's language in its place."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from softsearch.extras.localise.catalog import language_of
from softsearch.extras.localise.toolkit import module

_CODE = re.compile(
    r"(?<![A-Za-z0-9])(?:b\+)?([a-z]{2,3}(?:[-_+](?:r?[A-Z]{2}|[A-Z][a-z]{3}|[0-9]{3}))*)(?![A-Za-z0-9])"
)

_NEW_CODES = {"in": "id", "iw": "he", "ji": "yi", "tl": "fil"}  # for those that Java and Android still write


class Sibling(NamedTuple):
    """The file of the source text, and both languages."""

    path: Path
    src_lang: str
    tgt_lang: str


def source_of(path: Path, src_lang: str = "") -> Sibling | None:
    """Returns the file with the source text of a file in another language; None if there is none.

    It has the same name without the language (``values/strings.xml`` for ``values-de/strings.xml``,
    ``app.properties`` for ``app_de.properties``), or with that of the source (``en/app.json`` for ``de/app.json``), or
    is in Apple's ``Base.lproj``.
    """
    data = module("lang.data")
    known = {language_of(code) for code in (*data.languages, *data.plural_tags)}
    src_lang = src_lang or "en"
    for index in reversed(range(len(path.parts))):
        for match in reversed([*_CODE.finditer(path.parts[index])]):
            first, *others = re.split("[-_+]r?", match[1])
            code = "-".join([_NEW_CODES.get(first, first), *others])
            if language_of(code) not in known or language_of(code) == language_of(src_lang):
                continue
            for name in _names(path.parts[index], match, src_lang):
                for candidate in _existing(path, index, name):
                    return Sibling(candidate, src_lang, code)
    return None


def _names(name: str, match: re.Match[str], src_lang: str) -> Iterator[str]:
    """Yields patterns of names that the source may have."""
    before, after = name[: match.start()], name[match.end() :]
    if shorter := before.rstrip("-_."):
        yield shorter + after
    for code in (src_lang, src_lang.replace("-", "_")):
        yield before + code + after
    if after == ".lproj":
        yield f"Base{after}"
    yield f"{before}{language_of(src_lang)}[-_]*{after}"


def _existing(path: Path, index: int, name: str) -> list[Path]:
    folder, rest = Path(*path.parts[:index]), path.parts[index + 1 :]
    named = sorted(folder.glob(name)) if "*" in name else [folder / name]
    return [found for each in named if (found := each.joinpath(*rest)).is_file() and found != path]
