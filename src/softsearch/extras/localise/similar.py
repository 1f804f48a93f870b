"""Neural fuzzy repair: a model reads its message and the translation of the most similar one.

Bulté & Tezcan (2019, "Neural Fuzzy Repair: Integrating Fuzzy Matches into Neural Machine Translation", ACL) put the
translation behind the source; here it stands before it, and ``<0>`` between them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from softsearch.errors import ConfigError
from softsearch.process import how_to_install
from softsearch.text.parts import MATCH

LEAST = 50.0  # per cent, in training
LEAST_TO_TRANSLATE = 70.0  # less similar ones do no good there: docs/results.md
_STEPS = (75.0, LEAST)  # most texts have a match of the first, for which fewer lengths are compared
_QUERIES = 256  # at a time; their similarities to 200,000 texts are 50 MB


class Similar(NamedTuple):
    """The place of a text in its list, and its similarity to another one in per cent."""

    place: int
    similarity: float


class Texts:
    """Texts in the order of their lengths, which others can be added to; their places are those of adding."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.by_length: list[str] = []
        self.places: list[int] = []
        self.lengths: list[int] = []
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Adds texts; few to many take little, since sorting what is nearly sorted does."""
        numbered = [*zip(self.by_length, self.places, strict=True), *zip(texts, count(len(self.places)), strict=False)]
        numbered.sort(key=lambda each: len(each[0]))
        self.by_length = [text for text, _ in numbered]
        self.places = [place for _, place in numbered]
        self.lengths = [*map(len, self.by_length)]


def with_matches(
    sources: Sequence[str],
    texts: Texts,
    targets: Sequence[str],
    *,
    least: float = LEAST,
    other: bool = False,
    progress: Callable[[int], object] = lambda _done: None,
) -> list[str]:
    """Returns each source with the translation of the most similar text, if one is similar enough.

    Args:
        sources: messages with symbols.
        texts: those of a memory, with symbols too.
        targets: their translations.
        least: how similar it must be, in per cent.
        other: leave equal sources out, so that a message of the memory never matches itself.
        progress: called with the number of sources done.
    """
    found = most_similar(sources, texts, least=least, other=other, progress=progress)
    return [
        source if best is None else behind(source, targets[best.place])
        for source, best in zip(sources, found, strict=True)
    ]


def behind(source: str, target: str) -> str:
    """Returns a source behind the translation of a similar one, as models read it."""
    return f"{target} {MATCH} {source}"


def most_similar(
    queries: Sequence[str],
    texts: Texts,
    *,
    other: bool = False,
    least: float = LEAST,
    progress: Callable[[int], object] = lambda _done: None,
) -> list[Similar | None]:
    """Returns the most similar of ``texts`` for each query by RapidFuzz's ``ratio``; None below ``least`` per cent.

    The ratio is 200 c / (a + b) for texts of a and b characters with a longest common subsequence of c, so that only
    texts of similar length are compared. Of equally similar texts the shortest is taken, and then the first.

    Raises:
        ConfigError: RapidFuzz is not installed.
    """
    lengths = texts.lengths
    waiting = sorted(range(len(queries)), key=lambda index: len(queries[index]))
    best: list[Similar | None] = [None] * len(queries)
    done = 0
    for step in (*(step for step in _STEPS if step > least), least):
        still = []
        for begin in range(0, len(waiting), _QUERIES):
            block = waiting[begin : begin + _QUERIES]
            ratio = step / (200 - step) if step else 0.0
            first = bisect_left(lengths, ratio * len(queries[block[0]]))
            last = bisect_right(lengths, len(queries[block[-1]]) / ratio) if ratio else len(lengths)
            found = _best_of([queries[index] for index in block], texts.by_length[first:last], step, other=other)
            for index, similar in zip(block, found, strict=True):
                if similar is None:
                    still.append(index)
                else:
                    best[index] = Similar(texts.places[first + similar.place], similar.similarity)
                    done += 1
            progress(done)
        waiting = still
    progress(len(queries))
    return best


def _best_of(queries: Sequence[str], texts: Sequence[str], least: float, *, other: bool) -> list[Similar | None]:
    try:
        from rapidfuzz import fuzz, process
    except ImportError as error:
        raise ConfigError(f"similar messages are found by RapidFuzz: {how_to_install('localise')}") from error
    if not texts:
        return [None] * len(queries)
    ratios = process.cdist(queries, texts, scorer=fuzz.ratio, score_cutoff=least, dtype=np.float32, workers=-1)
    if other:
        ratios[ratios == 100] = 0
    chosen = ratios.argmax(axis=1).tolist()
    found = [Similar(index, float(ratios[row, index])) for row, index in enumerate(chosen)]
    return [similar if similar.similarity > 0 else None for similar in found]
