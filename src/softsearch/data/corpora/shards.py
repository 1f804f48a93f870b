"""Corpora in many files, named by patterns: ``corpus/*.en.gz`` with ``corpus/*.de.gz``."""

import glob
import re
from collections.abc import Sequence
from pathlib import Path

from softsearch.data.corpora.base import FilePair
from softsearch.errors import CorpusError

_WILDCARD = re.compile(r"\*\*/|\*|\?")
_MEANING = {"**/": "((?:[^/]+/)*)", "*": "([^/]*)", "?": "([^/])"}


def is_pattern(path: str | Path) -> bool:
    """Tells whether a path has a wildcard (``*``, ``?``, ``**``); a file with that name is not a pattern."""
    return bool(_WILDCARD.search(str(path))) and not Path(path).is_file()


def files_of(pattern: str | Path) -> dict[tuple[str, ...], Path]:
    """Returns the files that match a pattern, in the order of their names, by what its wildcards stand for."""
    path = Path(pattern)
    root = Path(path.anchor)
    parts = re.split(f"({_WILDCARD.pattern})", str(path.relative_to(root)))
    escaped = "".join(part if part in _MEANING else glob.escape(part) for part in parts)
    wanted = re.compile("".join(_MEANING.get(part) or re.escape(part) for part in parts))
    found = {}
    for file in sorted(root.glob(escaped)):
        match = wanted.fullmatch(file.relative_to(root).as_posix())
        if match and file.is_file():
            found[match.groups()] = file
    return found


def shards(key: str, pair: Sequence[str | Path]) -> list[FilePair]:
    """Returns the files of two patterns whose wildcards stand for the same, in the order of their names.

    Raises:
        CorpusError: no file matches, or one has no counterpart.
    """
    src, tgt = map(files_of, pair)
    if odd := sorted(str(src.get(name) or tgt[name]) for name in src.keys() ^ tgt.keys()):
        others = f" and {len(odd) - 1} more" if odd[1:] else ""
        raise CorpusError(
            f"{key}: {odd[0]}{others} matches one of {pair[0]} and {pair[1]}, but no file matches the other with the "
            "same text for the wildcards; rename or remove files, or change the patterns"
        )
    if not src:
        raise CorpusError(f"{key}: no files match {pair[0]} and {pair[1]}; check the patterns")
    return [(src[name], tgt[name]) for name in src]
