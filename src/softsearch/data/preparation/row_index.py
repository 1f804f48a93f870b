"""The index of prepared data: the parts of each split, and the rows in them that are not dropped."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.data.dataset import TokenStore
from softsearch.data.preparation.cleaned_text import CleanedText
from softsearch.data.preparation.encode import SIDES, id_type, read_array
from softsearch.data.preparation.id_parts import id_folder
from softsearch.data.preparation.prepared import INDEX, ROWS, Part
from softsearch.data.preparation.selection import Marks
from softsearch.text.tokenizer import Tokenizers

_CHUNK = 1 << 20  # pairs at a time


def write_index(folder: Path, texts: Mapping[str, CleanedText], tokenizers: Tokenizers) -> dict[str, list[int]]:
    """Lists the parts in a new folder, and the rows in them that are not dropped; returns the tokens of each side."""
    index, tokens = dict[str, list[Part]](), dict[str, list[int]]()
    for split, text in texts.items():
        folders = [id_folder(part, tokenizers, text.cache_dir) for part in text.parts]
        corpora = [number for number, parts in enumerate(text.corpora) for _ in parts]
        index[split] = [
            Part(path.name, corpus, part.pairs) for path, corpus, part in zip(folders, corpora, text.parts, strict=True)
        ]
        rows = None if text.dropped is None else _write_rows(folder / f"{split}.{ROWS}", text.dropped)
        stores = (
            TokenStore.of_files([path / side for path in folders], id_type(tokenizer.vocab_size), rows)
            for side, tokenizer in zip(SIDES, tokenizers, strict=True)
        )
        tokens[split] = [*map(_count_tokens, stores)]
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")
    return tokens


def _write_rows(path: Path, dropped: Marks) -> NDArray[np.int64]:
    """Writes the numbers of the pairs that are not dropped, and returns them as a file."""
    with path.open("wb") as file:
        for begin in range(0, len(dropped), _CHUNK):
            file.write((begin + np.flatnonzero(~dropped[begin : begin + _CHUNK])).astype(np.int64).tobytes())
    return read_array(path, np.int64)


def _count_tokens(store: TokenStore) -> int:
    """Returns the number of tokens, some sentences at a time."""
    chunks = (np.arange(begin, min(begin + _CHUNK, len(store))) for begin in range(0, len(store), _CHUNK))
    return sum(int((store.lengths(chunk) - 1).sum(dtype=np.int64)) for chunk in chunks)
