"""Speed of a bundle on this machine: throughput in batches, latency of single sentences, memory and loading time."""

import statistics
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from softsearch.errors import CorpusError
from softsearch.machine import peak_memory
from softsearch.runtime.providers import Provider
from softsearch.runtime.translator import Translator
from softsearch.text.corpus import is_blank, read_lines

_SENTENCES, _SINGLES, _ROUNDS = 1000, 200, 3


def bench(
    bundle: Path, src: Path, options: Mapping[str, Any], *, threads: int | None, provider: Provider
) -> Iterator[str]:
    """Yields a line per measurement; translates the first 1,000 sentences of ``src``, 200 of them one by one.

    Args:
        bundle: the bundle's folder.
        src: sentences, one per line (plain or compressed).
        options: search options, see ``Translator.translate``.
        threads: batches translated in parallel; by default one for each core.
        provider: ONNX Runtime's, see ``Translator``.

    Raises:
        SoftsearchError: a file cannot be read, or an option is wrong.
    """
    lines = list(islice((line for line in read_lines(src) if not is_blank(line)), _SENTENCES))
    if not lines:
        raise CorpusError(f"{src} has only blank lines, expected sentences; name another file")
    start = time.perf_counter()
    translator = Translator(bundle, threads=threads, provider=provider)
    translator.translate(lines[:1], **options)
    yield f"{'load and first sentence':25}{time.perf_counter() - start:.2f} s"
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        translations = translator.translate(lines, **options)
        seconds.append(time.perf_counter() - start)
    tokens = sum(len(translation.tgt_pieces) for translation in translations)
    middle, spread = statistics.median(seconds), f"{min(seconds):.2f} to {max(seconds):.2f} s"
    yield (
        f"{f'{len(lines):,} in batches':25}"
        f"{len(lines) / middle:,.0f} sentences/s, {tokens / middle:,.0f} target tokens/s ({spread})"
    )
    singles = []
    for line in lines[:_SINGLES]:
        start = time.perf_counter()
        translator.translate([line], **options)
        singles.append(1000 * (time.perf_counter() - start))
    p50, p90, p99 = np.percentile(singles, [50, 90, 99])
    yield (f"{f'{len(singles)} one by one':25}median {p50:.1f} ms, 90 % within {p90:.1f} ms, 99 % within {p99:.1f} ms")
    if memory := peak_memory():
        yield f"{'peak memory':25}{memory / 2**20:,.0f} MiB"
