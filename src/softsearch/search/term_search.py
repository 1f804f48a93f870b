"""Beam search for translations that contain given terms, by dynamic beam allocation.

Post & Vilar 2018 (arXiv:1804.06609) divide the beam among hypotheses by how much of the terms they contain; Hu et al.
2019 (naacl-main N19-1090) do it for a batch. Here terms are found in the hypotheses' text
(``softsearch.search.terms``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search.beam import Batch, BeamSearch, Choice, Observer
from softsearch.search.blocks import Ending
from softsearch.search.constraints import Constraints
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Candidates, Hypothesis, SearchStrategy, Sentences, StepFunction
from softsearch.search.options import MAX_BEAM
from softsearch.search.terms import Terms
from softsearch.text.vocabulary import EOS

_SLOTS = 4  # hypotheses of a sentence for each step of writing its terms
_MAX_WORK = 16_384  # hypotheses of a sentence in all steps to its length limit; 16 s at a millisecond each
_MAX_ROWS = 1024  # of a batch; the probabilities of all their tokens are in memory
_WRITING = 4  # tokens that write a term, tried for each hypothesis
_BLOCK = 64  # tokens whose maximum is compared first


@dataclass(frozen=True)
class TermSearch:
    """Searches again for sentences whose translations lack terms.

    Only translations that contain all terms may end, and none has an exact term too often. Terms with a bonus are not
    required: a hypothesis ranks higher by the bonus, in nats, once it contains the term, and by a part of it while
    writing the term. Of its results, those with more of the terms are ranked among the first translations in the same
    way. Log probabilities and scores are the model's. Translations that end are better than those that are cut off. The
    beam has at least four hypotheses for each step of writing the missing terms. If that finds nothing that ends, or
    would take too long, a hasty search has four for each term, and always keeps those that have written most: it finds
    a translation unless the terms do not fit into the length limit.

    Args:
        search: the search that found the first translations.
        observer: called with each step of a sentence that is searched alone.

    Raises:
        ConfigError: the search is neither greedy nor a beam search.
    """

    search: SearchStrategy
    observer: Observer | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.search, Greedy | BeamSearch):
            name = type(self.search).__name__
            raise ConfigError(f"terms and text to copy need beam or greedy search, found {name}; change search")

    def __call__(
        self,
        step_fn: StepFunction,
        src: Sentences,
        terms: Sequence[Terms],
        lists: Sequence[Sequence[Hypothesis]],
        *,
        prefixes: Sentences | None = None,
    ) -> list[list[Hypothesis]]:
        """Returns the sources' n-best lists; those in ``lists`` if the terms do not fit into the length limit.

        Raises:
            InputError: see PrefixStrategy.
        """
        search = self.search
        beam = search if isinstance(search, BeamSearch) else BeamSearch(beam=1, **vars(search))
        results = [list(n_best) for n_best in lists]
        unmet = [each.unmet_in(n_best[0].tokens) for each, n_best in zip(terms, lists, strict=True)]
        left = list(range(len(src)))
        for hasty in (False, True):
            watched = [np.ones_like(each) for each in unmet] if hasty else unmet
            sizes = [(_beam_size(beam, terms[n], None if hasty else watched[n], len(src[n])), n) for n in left]
            left = [number for size, number in sizes if not size]
            for size, numbers in _batches(sorted(each for each in sizes if each[0])):
                sources, given = [src[n] for n in numbers], prefixes and [prefixes[n] for n in numbers]
                constraints = Constraints(beam, sources, given or None, step_fn.vocab_size)
                pairs = [(terms[n], watched[n]) for n in numbers]
                batch = _TermBatch(sources, replace(beam, beam=size, groups=1), constraints, pairs)
                batch.enough, batch.hasty = beam.beam, hasty
                batch.observer = self.observer
                for number, found in zip(numbers, batch.search(step_fn, sources), strict=True):
                    if found:
                        results[number] = _merged(found, results[number], terms[number], beam)[: beam.n_best]
                    is_cut = terms[number].must.any() and results[number][0].truncated
                    left += [number] if is_cut or not found else []
        return [_with_costs(found, n_best[0]) for found, n_best in zip(results, lists, strict=True)]


def _beam_size(options: BeamSearch, terms: Terms, watched: NDArray[np.bool_] | None, src_length: int) -> int:
    """The number of hypotheses of a sentence: it depends on its own terms alone, not on the batch.

    It is 0 if there are too many terms to be ``watched`` step by step; with ``watched`` None, in a hasty search, it is
    limited.
    """
    steps = int(terms.needed[terms.must].sum()) if watched is None else terms.steps(watched)
    size, most = _SLOTS << steps.bit_length(), min(_MAX_WORK // options.lengths(src_length).most, MAX_BEAM)
    if size > most:
        size = 0 if watched is not None else 1 << max(most.bit_length() - 1, 0)
    return size and max(size, options.beam)


def _batches(sizes: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    """Batches of sentences to be searched together, with the size of their beams, from sorted ``sizes``."""
    for size, group in groupby(sizes, lambda each: each[0]):
        numbers = [number for _, number in group]
        most = max(1, _MAX_ROWS // size)
        yield from ((size, numbers[begin : begin + most]) for begin in range(0, len(numbers), most))


def _merged(
    found: list[Hypothesis], earlier: Sequence[Hypothesis], terms: Terms, options: BeamSearch
) -> list[Hypothesis]:
    """The translations found and the earlier ones, best first, bonus included; all have the required terms.

    If terms are only preferred, those found must have more of them than the best earlier one.
    """
    if terms.must.any():
        earlier = [each for each in earlier if not terms.unmet_in(each.tokens)[terms.must].any()]
    else:
        found = [each for each in found if terms.bonus_of(each.tokens) > terms.bonus_of(earlier[0].tokens)]

    def rank(each: Hypothesis) -> tuple[bool, float]:
        bonus = terms.bonus_of(each.tokens)
        return each.truncated, -each.score - (options.score(bonus, each.length) if bonus else 0.0)

    return sorted({each.tokens: each for each in (*found, *earlier)}.values(), key=rank)


def _with_costs(found: list[Hypothesis], plain: Hypothesis) -> list[Hypothesis]:
    """Translations with what their terms cost, if the best one is not the ``plain`` one."""
    if found[0].tokens == plain.tokens:
        return found
    return [replace(each, term_cost=max(0.0, plain.log_prob - each.log_prob)) for each in found]


def lacking(lists: Sequence[Sequence[Hypothesis]], terms: Sequence[Terms | None]) -> dict[int, Terms]:
    """The sentences with a translation that lacks terms, or has one too often, and their terms."""
    return {
        number: each
        for number, (n_best, each) in enumerate(zip(lists, terms, strict=True))
        if each is not None and any(each.unmet_in(found.tokens)[each.counts].any() for found in n_best)
    }


class _TermBatch(Batch):
    """The state of the search of sentences that have terms and need beams of the same size.

    Hypotheses that have written equally much of the watched terms share a part of the beam. A ``hasty`` search counts
    whole terms, and keeps the hypothesis that has written most of the next one.
    """

    hasty = False

    def __init__(
        self,
        src: Sentences,
        options: BeamSearch,
        constraints: Constraints,
        terms: Sequence[tuple[Terms, NDArray[np.bool_]]],
    ) -> None:
        self.terms, self.watched = [each for each, _ in terms], [each.must & watched for each, watched in terms]
        super().__init__(src, options, constraints)
        self.enough = options.beam  # number of ended hypotheses
        self.places = [np.zeros(1, dtype=np.int32) for _ in terms]  # for each sentence [rows]
        self.counts = [np.zeros((1, len(each.needed)), dtype=np.int64) for each in self.terms]  # [rows, terms]

    def width(self) -> int:
        """All tokens, because those that write terms may be the least probable ones."""
        return self.constraints.vocab_size

    def at_best(self, survivors: Choice) -> NDArray[np.float64]:
        """The greatest log probability that each sentence's live hypotheses may end with, bonus included."""
        most = [float(self.terms[sentence].needed @ self.terms[sentence].bonus) for sentence in self.live.tolist()]
        return super().at_best(survivors) + most

    def _choose(self, candidates: Candidates) -> Choice:
        """Ends hypotheses and returns those that may go on."""
        sentences, beams = self.log_probs.shape
        size, log_probs = self.group_size, self._without_surplus(candidates.log_probs)
        rows, tokens = _likely(log_probs, self.enough + 1)
        ends = np.searchsorted(rows, np.arange(1, sentences + 1) * beams)
        shape = sentences, size
        chosen = Choice(np.full(shape, -np.inf), np.zeros(shape, dtype=np.int64), np.full(shape, EOS))
        for index, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            first = index * beams
            best, places, counts = self._continuations(
                index, log_probs[first : first + beams], rows[begin:end] - first, tokens[begin:end]
            )
            order, is_end, bonus = self._rank(index, best, places, counts)
            self.offers = best, bonus
            for rank in order[is_end[order]].tolist():
                self.add_end(index, int(best.parents[rank]), float(best.log_probs[rank]), bonus=float(bonus[rank]))
            going = order[~is_end[order]][:size]
            if self.options.exact_stop or self.ended_count[self.live[index], 0] < self.enough:
                for kept, values in zip(chosen, best, strict=True):
                    kept[index, : going.size] = values[going]
            padded = np.resize(going, size) if going.size else np.zeros(size, dtype=np.int64)
            self.places[self.live[index]], self.counts[self.live[index]] = places[padded], counts[padded]
        return chosen

    def _without_surplus(self, log_probs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Forbids, in place, tokens after which a hypothesis has an exact term too often."""
        beams = self.log_probs.shape[1]
        for index, sentence in enumerate(self.live.tolist()):
            terms = self.terms[sentence]
            if terms.exact.any():
                for row, (place, counts) in enumerate(zip(self.places[sentence], self.counts[sentence], strict=True)):
                    log_probs[index * beams + row, terms.automaton.exceeding(int(place), counts)] = -np.inf
        return log_probs

    def _continuations(
        self, index: int, log_probs: NDArray[np.float32], rows: NDArray[np.int64], tokens: NDArray[np.int64]
    ) -> tuple[Choice, NDArray[np.int32], NDArray[np.int64]]:
        """The possible continuations of a sentence: these tokens of its rows, and those that write more of a term."""
        sentence = self.live[index]
        terms, places, counts = self.terms[sentence], self.places[sentence], self.counts[sentence]
        automaton, alive = terms.automaton, np.isfinite(self.log_probs[index])
        extra_rows, extra_tokens = [rows[alive[rows]]], [tokens[alive[rows]]]
        if self._is_last(sentence):  # all may end, however improbable that is
            extra_rows.append(np.flatnonzero(alive))
            extra_tokens.append(np.full(alive.sum(), EOS))
        for row in np.flatnonzero(alive).tolist():
            writing = automaton.advancing(int(places[row]), counts[row])
            if writing.size > _WRITING:
                writing = writing[np.argpartition(-log_probs[row, writing], _WRITING)[:_WRITING]]
            extra_rows.append(np.full(writing.size, row))
            extra_tokens.append(writing)
        pairs = np.unique(np.concatenate(extra_rows) * log_probs.shape[1] + np.concatenate(extra_tokens))
        rows, tokens = np.divmod(pairs, log_probs.shape[1])
        after, written = np.zeros(len(pairs), dtype=np.int32), counts[rows]
        for place in set(places[rows].tolist()):
            here = np.flatnonzero(places[rows] == place)
            next_places, completed = automaton.after(place)
            after[here] = next_places[tokens[here]]
            if completed is not None:
                written[here] += completed[tokens[here]]
        totals = self.log_probs[index, rows] + log_probs[rows, tokens].astype(np.float64)
        return Choice(totals, rows, tokens), after, np.minimum(written, terms.needed)

    def _rank(
        self, index: int, best: Choice, places: NDArray[np.int32], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64]]:
        """The continuations that end or go on, best first; which of all are ends; their bonus."""
        sentence = int(self.live[index])
        terms, watched, is_end = self.terms[sentence], self.watched[sentence], best.tokens == EOS
        missing, shares = terms.automaton.missing(places, counts), terms.automaton.shares(places, counts)
        met = ~missing[:, terms.must].any(axis=1)
        steps = 1 if self.hasty else terms.automaton.term_steps
        share_of_one = shares[:, watched].max(axis=1, initial=0.0)
        begun = np.ceil(share_of_one * (steps - 1)).astype(np.int64)
        whole = np.where(met & is_end, terms.needed[watched].sum(), counts[:, watched].sum(axis=1))
        amounts = whole * steps + np.where(met & is_end, 0, begun)
        at_end, by_now = terms.needed - missing, counts @ terms.bonus + (shares * terms.bonus).max(axis=1, initial=0.0)
        bonus = np.where(is_end, at_end @ terms.bonus, by_now)
        order = np.argsort(-best.log_probs - bonus, kind="stable")
        order = order[(np.isfinite(best.log_probs) & (met | ~is_end))[order]]
        ranks = np.zeros(is_end.size, dtype=np.int64)  # among those that contain as much
        present = set(amounts[order].tolist())
        for amount in present:
            same = order[amounts[order] == amount]
            ranks[same] = np.arange(same.size)
            if self.hasty:  # most written first, or better hypotheses that have just begun displace it
                ranks[same[share_of_one[same].argmax()]] = -1 - amount
        share = self.group_size // max(1, len(present))
        complete = ~missing[:, terms.must if terms.must.any() else slice(None)].any(axis=1)
        is_kept = ~is_end | (ranks < max(share, self.enough)) | (complete & self._is_last(sentence))
        order = order[is_kept[order]]
        return order[np.argsort(np.where(ranks < 0, ranks, ranks >= share)[order], kind="stable")], is_end, bonus

    def _is_last(self, sentence: int) -> bool:
        """Tells whether a sentence is at its length limit and has no translation yet."""
        return bool(self.length >= self.constraints.limits[sentence]) and not self.ended[sentence]

    def _truncate(self, survivors: Choice, at_limit: NDArray[np.bool_]) -> None:
        log_probs = survivors.log_probs.copy()
        for index in np.flatnonzero(at_limit):
            sentence = self.live[index]
            terms = self.terms[sentence]
            missing = terms.automaton.missing(self.places[sentence], self.counts[sentence])
            log_probs[index, missing[:, terms.must].any(axis=1)] = -np.inf
        super()._truncate(survivors._replace(log_probs=log_probs), at_limit)

    def _read(self, sentence: int, end: Ending) -> Hypothesis:
        found = super()._read(sentence, end)
        bonus = 0.0 if end.truncated else self.terms[sentence].bonus_of(found.tokens)
        return replace(found, score=end.score - self.options.score(bonus, end.length)) if bonus else found


def _likely(log_probs: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and tokens of at least the ``k`` most probable tokens in each row of ``[rows, vocab]``, by row.

    The k blocks with the greatest maxima contain tokens that are at least as probable as the smallest of these maxima.
    """
    highest = np.maximum.reduceat(log_probs, np.arange(0, log_probs.shape[1], _BLOCK), axis=1)
    if k >= highest.shape[1]:
        k = min(k, log_probs.shape[1])
        least = np.partition(log_probs, -k, axis=1)[:, -k]
    else:
        least = np.partition(highest, -k, axis=1)[:, -k]
    rows, tokens = np.nonzero((log_probs >= least[:, None]) & np.isfinite(log_probs))
    return rows, tokens
