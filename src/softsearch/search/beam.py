"""Beam search with length normalisation, vectorised over the batch."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.blocks import Ending, in_blocks
from softsearch.search.constraints import Constraints, no_token_left
from softsearch.search.greedy import most_probable, write
from softsearch.search.history import History
from softsearch.search.interface import Candidates, Hypothesis, PrefixStrategy, Sentences, StepFunction
from softsearch.search.options import OutputOptions, SearchOptions
from softsearch.text.vocabulary import BOS, EOS


@dataclass(frozen=True, kw_only=True)
class BeamSearch(SearchOptions, PrefixStrategy):
    """Keeps the ``beam`` best unfinished hypotheses of each sentence and returns its ``n_best`` finished ones.

    EOS ends a hypothesis only if it is among the ``beam`` best continuations of the sentence, and never uses up a slot
    of the beam. A sentence is done when ``beam`` hypotheses have ended (unless ``exact_stop``), when no live one can
    still enter its n-best list (``SearchOptions.bound``), or at the length limit. If fewer than ``n_best`` have
    ended by then, live ones follow them, flagged ``truncated``. Live hypotheses are compared by log probability, ended
    ones by score. Ties go to the lower row, then to the model's order. ``beam=1`` is greedy search.

    With ``groups`` it is diverse beam search (Vijayakumar et al. 2016, arXiv:1610.02424, section 3, algorithm 1): the
    groups choose in turn. A group ranks its continuations by log probability minus ``diversity`` for each earlier
    group's hypothesis that has just taken the same token (Hamming diversity; EOS is free), and is done when its share
    of ``beam`` has ended. Log probabilities and scores do not contain that term. A translation that several groups find
    is returned once.

    ``n_best`` lists are shorter where fewer translations exist.
    """

    def __call__(
        self, step_fn: StepFunction, src: Sentences, *, prefixes: Sentences | None = None
    ) -> list[list[Hypothesis]]:
        if not src:
            return []
        constraints = Constraints(self, src, prefixes, step_fn.vocab_size)
        if constraints.none and (lists := in_blocks(step_fn, src, self)) is not None:
            return lists
        if self.beam == 1 and self.has_only(OutputOptions.hints):  # the same with fewer array operations
            found = write(step_fn, src, self, most_probable, prefixes=prefixes)
            return [[replace(h, score=self.score(h.log_prob, h.length)) for h in n_best] for n_best in found]
        lists = Batch(src, self, constraints).search(step_fn, src)
        if not all(lists):
            raise no_token_left()
        return lists


class Choice(NamedTuple):
    """One step's continuations of each live sentence, best first within a group, ``[sentences, continuations]``."""

    log_probs: NDArray[np.float64]
    parents: NDArray[np.int64]
    tokens: NDArray[np.int64]


Observer = Callable[["Batch", Candidates, Candidates, Choice, bool], None]


class Batch:
    """The state of the search of one batch."""

    # Called with each step of a sentence that is searched alone: the candidates before and after the constraints, the
    # survivors, and whether the search goes on.
    observer: Observer | None = None
    offers: tuple[Choice, NDArray[np.float64]] | None = None  # continuations, and the nats by which they rank higher

    def __init__(self, src: Sentences, options: SearchOptions, constraints: Constraints) -> None:
        self.options, self.constraints = options, constraints
        self.group_size = options.beam // options.groups
        self.src_lengths = [len(ids) + 1 for ids in src]  # with EOS, which attention covers
        self.length = 0
        self.live = np.arange(len(src))
        self.log_probs = np.zeros((len(src), 1))  # [live sentences, beams]
        self.attended = np.zeros((len(src), 1, max(self.src_lengths)))  # [live sentences, beams, src_len]
        self.history = History(self.src_lengths, alignments=options.alignments)
        self.ended: list[list[Ending]] = [[] for _ in src]
        self.distinct: list[set[tuple[int, ...]]] = [set() for _ in src]  # ended hypotheses, with several groups
        self.ended_count = np.zeros((len(src), options.groups), dtype=np.int64)
        self.to_beat = np.full(len(src), -np.inf)  # the lowest score in a sentence's n-best list, if it is full

    def search(self, step_fn: StepFunction, src: Sentences) -> list[list[Hypothesis]]:
        """Steps until all sentences are done; returns their n-best lists, empty if the constraints left no token.

        Raises:
            InputError: see PrefixStrategy.
        """
        tokens = np.full(len(src), BOS, dtype=np.int64)
        state = step_fn.start(src)
        while True:
            stepped = self.live.size
            candidates, state = step_fn.step(tokens, state, self.width())
            going, rows, tokens = self.advance(candidates)
            if not going.size:
                return self.results()
            if going.size < stepped:
                state = step_fn.keep(state, going)
            state = step_fn.select(state, rows)

    def width(self) -> int:
        """The number of candidates that the next step needs for each row.

        It is the beam plus one: at most one candidate is EOS, so ``beam`` others remain. Groups need no more: they
        avoid the tokens of earlier groups, of which there are at least a group's size fewer than ``beam``.
        """
        return self.constraints.width(self.options.beam + 1, self.live, self.length)

    def advance(self, candidates: Candidates) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Takes one step's candidates.

        Returns the sentences that go on, as indices into those stepped; the rows to select once only these are kept;
        and the tokens of the selected rows.
        """
        given, candidates = candidates, self.constraints.apply(candidates, self.live, self.length)
        self.length += 1
        self.history.add_alignments(self.live, candidates.alignments)
        self._attend(candidates.alignments)
        survivors = self._choose(candidates)
        self.history.add_choices(self.live, survivors.parents, survivors.tokens)
        limits = self.constraints.limits[self.live]
        at_limit = self.length >= limits
        self._truncate(survivors, at_limit)
        # A list that is not full has -inf, which any live hypothesis reaches, even with -inf.
        hopeless = self.options.bound(self.at_best(survivors), limits) <= self.to_beat[self.live]

        beams = self.log_probs.shape[1]
        going = np.flatnonzero(~(at_limit | hopeless))
        if self.observer is not None:
            self.observer(self, given, candidates, survivors, bool(going.size))
        parents, tokens = survivors.parents[going], survivors.tokens[going]
        self.constraints.advance(going, parents, tokens)
        self.live, self.log_probs = self.live[going], survivors.log_probs[going]
        if self.options.coverage_penalty:
            self.attended = self.attended[going[:, None], parents]
        rows = np.arange(going.size)[:, None] * beams + parents
        return going, rows.reshape(-1), tokens.reshape(-1)

    def at_best(self, survivors: Choice) -> NDArray[np.float64]:
        """The greatest log probability that the live hypotheses of each sentence may end with, ``[sentences]``."""
        return np.asarray(survivors.log_probs.max(axis=1))

    def _attend(self, alignments: NDArray[np.float32] | None) -> None:
        """Adds up the attention of all rows, for the coverage penalty."""
        if not self.options.coverage_penalty:
            return
        if alignments is None:
            raise InputError("a coverage penalty needs alignments, but this model computes none; search without it")
        attention = alignments.reshape(self.live.size, -1, alignments.shape[1])
        self.attended = self.attended[:, :, : attention.shape[2]] + attention

    def _choose(self, candidates: Candidates) -> Choice:
        """Ends hypotheses and returns those that may go on, group by group."""
        groups: list[Choice] = []
        for group in range(self.options.groups):
            best = self._best(candidates, group, groups)
            self._end(best, group)
            groups.append(self._survivors(best, group))
        return Choice(*(np.concatenate(parts, axis=1) for parts in zip(*groups, strict=True)))

    def _best(self, candidates: Candidates, group: int, earlier: list[Choice]) -> Choice:
        """The ``2 * group_size`` best continuations of each sentence in a group; at most half of them are EOS."""
        sentences, beams = self.log_probs.shape
        k = candidates.tokens.shape[1]
        # The first step has one row, which all groups continue.
        first = min(group * self.group_size, beams - 1)
        rows = slice(first, first + self.group_size)
        tokens = candidates.tokens.reshape(sentences, beams, k)[:, rows].reshape(sentences, -1)
        log_probs = candidates.log_probs.reshape(sentences, beams, k)[:, rows]
        totals = (self.log_probs[:, rows, None] + log_probs).reshape(sentences, -1)
        ranking = totals
        for other in earlier:
            for taken, alive in zip(other.tokens.T, np.isfinite(other.log_probs).T, strict=True):
                ranking = ranking - self.options.diversity * ((tokens == taken[:, None]) & alive[:, None])
        # Stable, so that ties keep the order of their rows and then of their rank.
        order = np.argsort(-ranking, axis=1, kind="stable")[:, : 2 * self.group_size]
        sentence = np.arange(sentences)[:, None]
        return Choice(totals[sentence, order], first + order // k, tokens[sentence, order])

    def _end(self, best: Choice, group: int) -> None:
        """Stores the hypotheses that end now."""
        size = self.group_size
        ends = (best.tokens[:, :size] == EOS) & np.isfinite(best.log_probs[:, :size])
        for index, rank in zip(*np.nonzero(ends), strict=True):
            self.add_end(index, int(best.parents[index, rank]), float(best.log_probs[index, rank]), group)

    def add_end(self, index: int, row: int, log_prob: float, group: int = 0, bonus: float = 0.0) -> None:
        """Stores the hypothesis of the live sentence ``index`` that ends after ``row``; its rank includes a bonus."""
        sentence, n_best = int(self.live[index]), self.options.n_best
        score = self.score(index, row, log_prob + bonus)
        self._store(sentence, Ending(score, log_prob, self.length, row, False))
        self.ended_count[sentence, group] += 1
        if len(self.ended[sentence]) >= n_best:
            self.to_beat[sentence] = sorted(end.score for end in self.ended[sentence])[-n_best]

    def score(self, index: int, row: int, log_prob: float) -> float:
        """The score of a hypothesis of the live sentence ``index`` whose last token ``row`` predicted."""
        if not self.options.coverage_penalty:
            return self.options.score(log_prob, self.length)
        src_length = self.src_lengths[self.live[index]]
        return self.options.score(log_prob, self.length, self.attended[index, row, :src_length])

    def _store(self, sentence: int, end: Ending) -> None:
        """Adds a hypothesis to those of the sentence, unless it is there already."""
        if self.options.groups > 1:
            tokens, _ = self.history.trace(sentence, end.length, end.row, ended=not end.truncated)
            if tokens in self.distinct[sentence]:
                return
            self.distinct[sentence].add(tokens)
        self.ended[sentence].append(end)

    def _survivors(self, best: Choice, group: int) -> Choice:
        """The ``group_size`` best continuations other than EOS, filled up with rows of -inf."""
        is_eos = best.tokens == EOS
        order = np.argsort(is_eos, axis=1, kind="stable")[:, : self.group_size]  # False first, order kept
        log_probs = np.where(is_eos, -np.inf, best.log_probs)
        if not self.options.exact_stop:
            log_probs[self.ended_count[self.live, group] >= self.group_size] = -np.inf
        sentence = np.arange(order.shape[0])[:, None]
        shape = (sentence.size, self.group_size)
        survivors = Choice(np.full(shape, -np.inf), np.zeros(shape, dtype=np.int64), np.full(shape, EOS))
        for filled, part in zip(survivors, (log_probs, best.parents, best.tokens), strict=True):
            filled[:, : order.shape[1]] = part[sentence, order]
        return survivors

    def _truncate(self, survivors: Choice, at_limit: NDArray[np.bool_]) -> None:
        """Fills the n-best lists of sentences at their limit from the live hypotheses."""
        for index in np.flatnonzero(at_limit).tolist():
            sentence, ends = int(self.live[index]), []
            for row in np.flatnonzero(np.isfinite(survivors.log_probs[index])):
                log_prob = float(survivors.log_probs[index, row])
                score = self.score(index, int(survivors.parents[index, row]), log_prob)
                ends.append(Ending(score, log_prob, self.length, int(row), True))
            for end in sorted(ends, key=lambda end: -end.score):
                if len(self.ended[sentence]) < self.options.n_best:
                    self._store(sentence, end)

    def results(self) -> list[list[Hypothesis]]:
        """The n-best lists: ended hypotheses by score, then truncated ones, whose scores exclude EOS."""
        best = [sorted(ends, key=lambda e: (e.truncated, -e.score))[: self.options.n_best] for ends in self.ended]
        return [[self._read(sentence, end) for end in n_best] for sentence, n_best in enumerate(best)]

    def _read(self, sentence: int, end: Ending) -> Hypothesis:
        tokens, alignments = self.history.trace(sentence, end.length, end.row, ended=not end.truncated)
        return Hypothesis(tokens, end.log_prob, end.score, alignments, end.truncated)
