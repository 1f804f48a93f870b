"""Rows of tables, and TMX."""

from pathlib import Path

from softsearch.data.corpora.rows import read_rows
from softsearch.data.corpora.separated import Column


def rows(path: Path, src: Column = "en", tgt: Column = "de") -> list[tuple[str, str]]:
    """The pairs of a table."""
    return list(read_rows(path, path.name, (src, tgt)))


def declared(encoding: str, text: str) -> bytes:
    """A TMX file of one unit that declares an encoding."""
    unit = f'<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><seg>{text}</seg></tuv></tu>'
    return f'<?xml version="1.0" encoding="{encoding}"?>\n<tmx version="1.4"><body>{unit}</body></tmx>'.encode("ascii")


def units(path: Path, *units: dict[str, str]) -> Path:
    """Writes TMX with units, each a text for some languages."""
    body = "".join(
        f"<tu>{''.join(f'<tuv xml:lang={code!r}><seg>{text}</seg></tuv>' for code, text in unit.items())}</tu>"
        for unit in units
    )
    path.write_text(f"<tmx><header><note/></header><body>{body}</body></tmx>")
    return path
