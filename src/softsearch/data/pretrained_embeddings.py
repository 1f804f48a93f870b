"""Pretrained embeddings in the text format of word2vec and fastText, read line by line and strictly."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import CorpusError
from softsearch.text.corpus import read_lines
from softsearch.text.vocabulary import SPECIALS

_SPACE = "\u2581"  # begins a piece that begins a word
_MAX_FLOAT32 = float(np.finfo(np.float32).max)


def fill_vectors(matrix: NDArray[np.float32], pieces: Sequence[str], path: Path) -> str:
    """Copies the vectors in ``path`` into their pieces' rows of ``matrix``; other rows stay unchanged.

    Lines are ``token v1 ... vd``, where a token may contain spaces (GloVe); a first line ``count d`` is optional. A
    piece gets the vector of the token with its name, or else with its name without a leading U+2581. Values of unknown
    tokens are only counted.

    Args:
        matrix: ``[vocab, dim]``, changed in place.
        pieces: the name of each row, the special ones first.
        path: a UTF-8 file, plain or compressed.

    Returns:
        One line with the number of pieces that have a vector.

    Raises:
        CorpusError: the file cannot be read or is cut off, has vectors of the wrong width, a value that is not a finite
            number, a token of the vocabulary twice, or no token of the vocabulary.
    """
    dim = matrix.shape[1]
    rows = dict(list(enumerate(pieces))[len(SPECIALS) :])
    exact = {piece: row for row, piece in rows.items()}
    stripped = {piece[1:]: row for row, piece in rows.items() if piece.startswith(_SPACE) and len(piece) > 1}
    lines: dict[str, int] = {}  # token of the vocabulary -> its line
    is_exact: dict[int, bool] = {}  # row with a vector -> whether the vector has exactly its name
    number, header = 0, None
    for number, line in enumerate(read_lines(path), start=1):
        token, values = _split(line.rstrip(" "), dim)
        if number == 1 and token.isdecimal() and values.isdecimal() and dim > 1:
            header = int(token)
            _check_width(int(values), dim, f"{path}:1")
            continue
        _check_width(values.count(" ") + bool(values), dim, f"{path}:{number}")
        matches = [(table[token], table is exact) for table in (exact, stripped) if token in table]
        if matches and lines.setdefault(token, number) != number:
            raise CorpusError(
                f"{path}:{number} is the second vector of {token!r}, the first is on line {lines[token]}; expected one "
                "for each token, remove one"
            )
        for row, own_name in matches:
            if own_name or row not in is_exact:
                matrix[row] = _parse(values, f"{path}:{number}")
                is_exact[row] = own_name
    tokens = number - (header is not None)
    if header is not None and tokens != header:
        raise CorpusError(f"{path} has {tokens:,} vectors, but its first line says {header:,}; download it again")
    count = sum(is_exact.values())
    summary = (
        f"{path}: {len(is_exact):,} of {len(rows):,} pieces found among {tokens:,} "
        f"({count:,} exactly, {len(is_exact) - count:,} without the space mark)"
    )
    if not is_exact:
        raise CorpusError(f"{summary}; expected words from the training text; check language and letter case")
    return summary


def _split(line: str, dim: int) -> tuple[str, str]:
    """The token and the values of a line: the last ``dim`` words, unless all those before are numbers too."""
    token, _, values = line.partition(" ")
    further = values.split(" ")[:-dim]
    if further and not all(map(_is_number, further)):
        return " ".join([token, *further]), " ".join(values.split(" ")[-dim:])
    return token, values


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _check_width(width: int, dim: int, where: str) -> None:
    if width != dim:
        raise CorpusError(
            f"{where} has {width} values, expected a token and model.embeddings.dim={dim} values, one space between "
            "them; use other vectors or change model.embeddings.dim"
        )


def _parse(values: str, where: str) -> list[float]:
    numbers: list[float] = []
    for field in values.split(" "):
        try:
            number = float(field)
        except ValueError:
            number = math.nan
        if not abs(number) <= _MAX_FLOAT32:  # or NaN
            raise CorpusError(f"{where}: value {len(numbers) + 1} is {field!r}, expected a finite number; fix the line")
        numbers.append(number)
    return numbers
