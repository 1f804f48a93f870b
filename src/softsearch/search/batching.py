"""Batched translation: sentences sorted by length, cut into batches by a token budget, and put back in order."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from softsearch.errors import ConfigError, InputError
from softsearch.search.interface import Hypothesis, PrefixStrategy, SearchStrategy, Sentences, StepFunction

if TYPE_CHECKING:
    from softsearch.search.terms import Terms


def translate_ids(
    step_fn: StepFunction,
    strategy: SearchStrategy,
    sources: Sentences,
    *,
    batch_tokens: int,
    prefixes: Sentences | None = None,
    terms: "Sequence[Terms | None] | None" = None,
    workers: int = 1,
    on_done: Callable[[int], None] | None = None,
) -> list[list[Hypothesis]]:
    """Translates any number of sentences; returns their n-best lists in the same order.

    Args:
        step_fn: the model; with ``workers > 1`` it must be thread-safe.
        strategy: the search.
        sources: token ids.
        batch_tokens: the most source tokens in a batch, padding included; a longer sentence gets its own batch.
        prefixes: see ``PrefixStrategy``.
        terms: for each source, the terms that its translations must contain.
        workers: threads that search batches in parallel; does not change the batches.
        on_done: called after each batch with its number of sentences.

    Raises:
        ConfigError: ``batch_tokens`` or ``workers`` is below 1, or the strategy takes no prefixes.
        InputError: the model returned NaN, a prefix cannot be written, or the number of prefixes is wrong.
    """
    for name, value in (("batch_tokens", batch_tokens), ("workers", workers)):
        if value < 1:
            raise ConfigError(f"{name} is {value}, expected at least 1; change {name}")
    if prefixes is not None and len(prefixes) != len(sources):
        raise InputError(f"{len(prefixes)} target prefixes for {len(sources)} sources, expected one for each")
    results: list[list[Hypothesis]] = [[] for _ in sources]
    if terms is not None and any(terms):
        from softsearch.search.term_search import TermSearch, lacking

        with_terms = TermSearch(strategy)

    def translate(batch: list[int]) -> list[list[Hypothesis]]:
        src = [sources[index] for index in batch]
        if prefixes is None:
            return strategy(step_fn, src)
        if not isinstance(strategy, PrefixStrategy):
            raise ConfigError(f"{type(strategy).__name__} cannot continue target prefixes; leave prefixes out")
        return strategy(step_fn, src, prefixes=[prefixes[index] for index in batch])

    batches = plan_batches([len(ids) + 1 for ids in sources], batch_tokens)
    _in_batches(translate, batches, results, workers, on_done)
    if terms is None or not any(terms):
        return results
    numbers = list(again := lacking(results, terms))

    def translate_again(batch: list[int]) -> list[list[Hypothesis]]:
        src, needed, lists = zip(*((sources[index], again[index], results[index]) for index in batch), strict=True)
        starts = prefixes and [prefixes[index] for index in batch]
        return with_terms(step_fn, src, needed, lists, prefixes=starts)

    batches = plan_batches([len(sources[index]) + 1 for index in numbers], batch_tokens)
    _in_batches(translate_again, [[numbers[at] for at in batch] for batch in batches], results, workers)
    return results


def _in_batches(
    translate: Callable[[list[int]], list[list[Hypothesis]]],
    batches: Sequence[list[int]],
    results: list[list[Hypothesis]],
    workers: int,
    on_done: Callable[[int], None] | None = None,
) -> None:
    """Puts the n-best lists of batches into their places, in threads if there are several threads and batches."""
    pool = ThreadPoolExecutor(workers)
    try:
        # A new thread has its own memory arena, which costs a single batch more than a tenth of its time.
        done = pool.map(translate, batches) if workers > 1 and len(batches) > 1 else map(translate, batches)
        for batch, hypotheses in zip(batches, done, strict=True):
            for index, n_best in zip(batch, hypotheses, strict=True):
                results[index] = n_best
            if on_done is not None:
                on_done(len(batch))
    finally:
        # On an error or a signal, wait for the running batches only.
        pool.shutdown(cancel_futures=True)


def plan_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Cuts sentences of these lengths, longest first, into batches with ``sentences * longest <= batch_tokens``.

    A longer sentence gets its own batch. Batches hold indices into ``lengths``.
    """
    batches: list[list[int]] = []
    # Longest first: a batch that does not fit into memory fails at once, and threads finish together.
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = lengths[batches[-1][0]] if batches else 0
        if batches and (len(batches[-1]) + 1) * longest <= batch_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
