"""Beam search with length normalisation, vectorised over the batch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.search.history import History, check_candidates
from softsearch.search.interface import Candidates, Hypothesis, SearchOptions, StepFunction
from softsearch.text.vocabulary import BOS, EOS


class BeamSearch:
    """Keeps the ``beam`` best unfinished hypotheses of each sentence and returns its ``n_best`` finished ones.

    EOS ends a hypothesis only where it is among the ``beam`` best continuations of the sentence, and never takes a
    place in the beam. A sentence is done when ``beam`` hypotheses have ended, when no live one can still enter its
    n-best list (log probabilities only fall, so ``log_prob / max_length ** alpha`` bounds the score), or at the length
    limit; only then, and only if fewer than ``n_best`` have ended, live ones are returned behind them, flagged
    ``truncated``. Ties go to the lower row, then to the model's order. ``beam=1`` is greedy search.

    Args:
        beam: hypotheses kept per sentence.
        n_best: translations returned per sentence, at most ``beam``; fewer come back where fewer exist.
        length_penalty: ``alpha`` of score = log_prob / length ** alpha (Wu et al. 2016, arXiv:1609.08144, simplified).
        max_length_factor: the length limit is ``max_length_factor * src_len + max_length_offset`` tokens.
        max_length_offset: see ``max_length_factor``.
        alignments: collect the attention weights of each hypothesis.

    Raises:
        ConfigError: a value is out of range.
    """

    def __init__(
        self,
        *,
        beam: int = 5,
        n_best: int = 1,
        length_penalty: float = 1.0,
        max_length_factor: float = 2.0,
        max_length_offset: int = 10,
        alignments: bool = False,
    ) -> None:
        self.options = SearchOptions(
            beam=beam,
            n_best=n_best,
            length_penalty=length_penalty,
            max_length_factor=max_length_factor,
            max_length_offset=max_length_offset,
            alignments=alignments,
        )

    def __call__(self, step_fn: StepFunction, src: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """Translates one batch.

        Args:
            step_fn: the model.
            src: token ids with EOS.

        Returns:
            One n-best list for each source, best first.

        Raises:
            InputError: the model returned NaN.
        """
        if not src:
            return []
        # One candidate more than the beam: each row has one EOS at most, so `beam` others are always among them.
        k = min(self.options.beam + 1, step_fn.vocab_size)
        batch = _Batch(src, self.options)
        tokens = np.full(len(src), BOS, dtype=np.int64)
        state = step_fn.start(src)
        while True:
            candidates, state = step_fn.step(tokens, state, k)
            going, rows, tokens = batch.advance(candidates)
            if not going.size:
                return batch.results()
            if going.size < batch.stepped:
                state = step_fn.keep(state, going)
            state = step_fn.select(state, rows)


class _Ended(NamedTuple):
    """A hypothesis that ended; its tokens are read from the history when it is returned."""

    score: float
    log_prob: float
    length: int  # tokens, EOS included unless truncated
    row: int  # of an ended one: the row that predicted EOS; of a truncated one: the row itself
    truncated: bool


class _Choice(NamedTuple):
    """One step's continuations of each live sentence, best first, ``[sentences, continuations]``."""

    log_probs: NDArray[np.float64]
    parents: NDArray[np.int64]
    tokens: NDArray[np.int64]


class _Batch:
    """The hypotheses of one batch while it is being searched."""

    def __init__(self, src: Sequence[Sequence[int]], options: SearchOptions) -> None:
        self.options = options
        self.length = 0
        self.stepped = len(src)  # sentences that took part in the last step
        self.live = np.arange(len(src))
        self.log_probs = np.zeros((len(src), 1))  # [live sentences, beams]
        self.limits = np.array([options.max_length(len(ids) - 1) for ids in src])
        self.history = History(len(src), [len(ids) for ids in src], alignments=options.alignments)
        self.ended: list[list[_Ended]] = [[] for _ in src]
        self.ended_count = np.zeros(len(src), dtype=np.int64)
        self.to_beat = np.full(len(src), -np.inf)  # score of the last of a sentence's full n-best list

    def advance(self, candidates: Candidates) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Takes one step's candidates.

        Returns:
            The sentences that go on, as indices into those that were stepped; the rows to select once only these are
            kept; and the tokens of the selected rows.
        """
        check_candidates(candidates, self.length)
        self.length += 1
        self.history.add_alignments(self.live, candidates.alignments)
        best = self._best(candidates)
        self._end(best)
        survivors = self._survivors(best)
        self.history.add_choices(self.live, survivors.parents, survivors.tokens)
        done = self._done(survivors)
        self._truncate(survivors, done)

        beams = self.log_probs.shape[1]
        going = np.flatnonzero(~done)
        self.stepped = self.live.size
        self.live, self.log_probs = self.live[going], survivors.log_probs[going]
        rows = np.arange(going.size)[:, None] * beams + survivors.parents[going]
        return going, rows.reshape(-1), survivors.tokens[going].reshape(-1)

    def _best(self, candidates: Candidates) -> _Choice:
        """The ``2 * beam`` best continuations of each sentence: half of them at most are EOS."""
        sentences, beams = self.log_probs.shape
        k = candidates.tokens.shape[1]
        totals = (self.log_probs[:, :, None] + candidates.log_probs.reshape(sentences, beams, k)).reshape(sentences, -1)
        # Stable, so that equal ones stay in the order of their rows and then of their rank.
        order = np.argsort(-totals, axis=1, kind="stable")[:, : 2 * self.options.beam]
        sentence = np.arange(sentences)[:, None]
        return _Choice(totals[sentence, order], order // k, candidates.tokens.reshape(sentences, -1)[sentence, order])

    def _end(self, best: _Choice) -> None:
        """Stores the hypotheses that end now."""
        beam, n_best = self.options.beam, self.options.n_best
        ends = (best.tokens[:, :beam] == EOS) & np.isfinite(best.log_probs[:, :beam])
        for index, rank in zip(*np.nonzero(ends), strict=True):
            log_prob = float(best.log_probs[index, rank])
            score = self.options.score(log_prob, self.length)
            sentence = int(self.live[index])
            self.ended[sentence].append(_Ended(score, log_prob, self.length, int(best.parents[index, rank]), False))
            self.ended_count[sentence] += 1
            if self.ended_count[sentence] >= n_best:
                self.to_beat[sentence] = sorted((e.score for e in self.ended[sentence]), reverse=True)[n_best - 1]

    def _survivors(self, best: _Choice) -> _Choice:
        """The ``beam`` best continuations other than EOS; rows of -inf fill up where there are fewer."""
        is_eos = best.tokens == EOS
        order = np.argsort(is_eos, axis=1, kind="stable")[:, : self.options.beam]  # False first, order kept
        log_probs = np.where(is_eos, -np.inf, best.log_probs)
        sentence = np.arange(order.shape[0])[:, None]
        live = _Choice(log_probs[sentence, order], best.parents[sentence, order], best.tokens[sentence, order])
        missing = self.options.beam - order.shape[1]
        if missing <= 0:
            return live
        fill = ((0, 0), (0, missing))
        return _Choice(
            np.pad(live.log_probs, fill, constant_values=-np.inf),
            np.pad(live.parents, fill),
            np.pad(live.tokens, fill, constant_values=EOS),
        )

    def _done(self, survivors: _Choice) -> NDArray[np.bool_]:
        limits = self.limits[self.live]
        enough = self.ended_count[self.live] >= self.options.beam
        bounds = survivors.log_probs[:, 0] / limits**self.options.length_penalty
        hopeless = bounds <= self.to_beat[self.live]
        return enough | hopeless | (self.length >= limits)

    def _truncate(self, survivors: _Choice, done: NDArray[np.bool_]) -> None:
        """Fills the n-best lists of sentences at their limit from the hypotheses that are still live."""
        for index in np.flatnonzero(done & (self.length >= self.limits[self.live])):
            ended = self.ended[int(self.live[index])]
            for row in range(self.options.n_best - len(ended)):
                log_prob = float(survivors.log_probs[index, row])
                if np.isfinite(log_prob):
                    score = self.options.score(log_prob, self.length)
                    ended.append(_Ended(score, log_prob, self.length, row, True))

    def results(self) -> list[list[Hypothesis]]:
        """The n-best lists: ended hypotheses by score, then truncated ones, whose scores lack EOS's share."""
        return [
            [
                self._read(sentence, end)
                for end in sorted(ended, key=lambda e: (e.truncated, -e.score))[: self.options.n_best]
            ]
            for sentence, ended in enumerate(self.ended)
        ]

    def _read(self, sentence: int, end: _Ended) -> Hypothesis:
        steps = end.length if end.truncated else end.length - 1
        tokens, alignments = self.history.trace(sentence, steps, end.row)
        if self.options.alignments and not end.truncated:
            alignments.append(self.history.alignment(sentence, end.length - 1, end.row))
        matrix = np.stack(alignments) if self.options.alignments else None
        return Hypothesis(tokens, end.log_prob, end.score, matrix, end.truncated)
