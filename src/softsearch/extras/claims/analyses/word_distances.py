"""How long after a source word a model without attention writes the word that corresponds to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from softsearch.evaluation.test_set import HeldOutText
from softsearch.extras.claims.analyses.aligners import read_test_links
from softsearch.runtime.system import System

_FIRST = 3  # words


def word_distances(system: System, text: HeldOutText, cache_dir: Path) -> Iterator[dict[str, Any]]:
    """A row of means over the sentences' gold links, in words that are read or written in between.

    Of all links (``mean``), of the shortest one of each sentence (``minimal``, the minimal time lag of Sutskever et al.
    2014, section 3.3), and of those of the ``first`` three target words.
    """
    backwards = system.tokenizers[0].reverse
    everything, minimal, first = list[int](), list[int](), list[int]()
    for links, source in zip(read_test_links(system, text, cache_dir), text.sources, strict=True):
        length = len(source.split())
        found = {(i, j): (i if backwards else length - 1 - i) + 1 + j for i, j in links.possible}
        everything += found.values()
        minimal += [min(found.values())] if found else []
        first += [distance for (_, j), distance in found.items() if j < _FIRST]
    yield {name: float(np.mean(each)) for name, each in (("mean", everything), ("minimal", minimal), ("first", first))}
