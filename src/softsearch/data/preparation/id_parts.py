"""Token ids in parts: a folder for each part of cleaned text and each pair of tokenizers."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path

from softsearch.data.preparation.cache_folder import PARTS, damage, make_folder, named_folder
from softsearch.data.preparation.encode import LINES, SIDES, Tokens, TokenWriter, encode_sides
from softsearch.data.preparation.processes import ordered_map
from softsearch.data.preparation.text_parts import TextChunk, TextPart
from softsearch.data.sentencepiece_file import digest_of_pieces
from softsearch.text.tokenizer import Tokenizers

_FORMAT = 1
_Encoded = tuple[int, tuple[Tokens, Tokens]]


def id_folder(part: TextPart, tokenizers: Tokenizers, cache_dir: Path) -> Path:
    """Returns the path of a part's token ids."""
    sides = [(digest_of_pieces(tokenizer.model), tokenizer.reverse) for tokenizer in tokenizers]
    identity = repr((_FORMAT, part.folder.name, sides))
    return named_folder(cache_dir / PARTS, "ids", identity)


def make_id_parts(
    parts: Iterable[TextPart],
    tokenizers: Tokenizers,
    cache_dir: Path,
    *,
    processes: int,
    progress: Callable[[int, int], object],
) -> None:
    """Makes the token ids that are missing, of all pairs of the parts.

    ``progress`` is called with the number of pairs done, and that of all.

    Raises:
        CorpusError: the disk is full.
    """
    missing = [part for part in parts if damage(id_folder(part, tokenizers, cache_dir)) is not None]
    chunks = ((number, chunk) for number, part in enumerate(missing) for chunk in part.chunks())
    encoded = ordered_map(partial(_encode, tokenizers), chunks, processes)
    shown = _watched(encoded, progress, sum(part.pairs for part in missing))
    for number, group in groupby(shown, lambda found: found[0]):
        make_folder(id_folder(missing[number], tokenizers, cache_dir), partial(_write, missing[number], group))


def _encode(tokenizers: Tokenizers, item: tuple[int, TextChunk]) -> _Encoded:
    number, chunk = item
    return number, encode_sides(tokenizers, chunk.read())


def _watched(encoded: Iterable[_Encoded], progress: Callable[[int, int], object], total: int) -> Iterator[_Encoded]:
    done = 0
    for number, sides in encoded:
        done += len(sides[0][1])
        progress(done, total)
        yield number, sides


def _write(part: TextPart, encoded: Iterable[_Encoded], folder: Path) -> None:
    with ExitStack() as stack:
        writers = [TokenWriter(folder / side, stack) for side in SIDES]
        for _, sides in encoded:
            for writer, tokens in zip(writers, sides, strict=True):
                writer.append(*tokens)
    shutil.copyfile(part.folder / LINES, folder / LINES)
