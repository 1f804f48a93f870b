"""A record of a beam search for one sentence, step by step, as plain data; docs/search.md describes the format.

The beam calls a recorder after each step with data that it has anyway, so a search without a recorder costs no more.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search.beam import Batch, BeamSearch, Choice
from softsearch.search.constraints import Constraints, no_token_left
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Candidates, Hypothesis, SearchStrategy, StepFunction
from softsearch.search.options import Lengths
from softsearch.text.vocabulary import EOS

if TYPE_CHECKING:
    from softsearch.search.terms import Terms

VERSION = 1
KEPT, ENDED, FELL_OUT, FORBIDDEN, CUT_OFF, STOPPED = "kept", "ended", "fell out", "forbidden", "cut off", "stopped"
_STAYED = (KEPT, CUT_OFF, STOPPED)
_MOST = 10  # candidates per step that fell out or were forbidden
_EXACT = 2_000  # nodes of exact search, for models with at most as many words
_DIGITS = 6
_SETTINGS = ("n_best", "length_penalty", "length_norm", "coverage_penalty", "exact_stop", "groups", "diversity")
Trace = dict[str, Any]


def trace_search(
    step_fn: StepFunction,
    search: SearchStrategy,
    src: Sequence[int],
    names: Sequence[str],
    *,
    prefix: Sequence[int] = (),
    terms: "Terms | None" = None,
) -> Trace:
    """Searches for the translation of one source in single steps, and returns a record of the search.

    Args:
        step_fn: the model.
        search: beam or greedy search.
        src: token ids.
        names: names of the target tokens.
        prefix: the beginning of the translation.
        terms: terms that it must contain. If the search is repeated for them, the last one is recorded.

    Raises:
        ConfigError: the search is of another kind.
        InputError: see PrefixStrategy.
    """
    beam, prefixes = traceable(search), [prefix] if prefix else None
    constraints = Constraints(beam, [src], prefixes, step_fn.vocab_size)
    exact = _exact(step_fn, beam, src) if constraints.lengths_only and terms is None else None
    record = _Recorder(names, () if exact is None else exact.written, terms)
    batch = Batch([src], beam, constraints)
    batch.observer = record
    lists = batch.search(step_fn, [src])
    if not all(lists):
        raise no_token_left()
    if terms is not None:
        from softsearch.search.term_search import TermSearch, lacking

        if lacking(lists, [terms]):
            lists = TermSearch(beam, record)(step_fn, [src], [terms], lists, prefixes=prefixes)
    required = () if terms is None else terms.required
    return {
        "version": VERSION,
        "search": {"beam": record.beam} | {name: getattr(beam, name) for name in _SETTINGS},
        "max_length": int(constraints.limits[0]),
        "terms": [{"source": term.source, "targets": list(term.alternatives)} for term in required],
        "steps": record.steps,
        "stopped": record.stopped,
        "ranking": [record.ranked(hypothesis) for hypothesis in lists[0]],
        "exact": None if exact is None else record.compared(exact, beam),
    }


def traceable(search: SearchStrategy) -> BeamSearch:
    """The beam search that is equivalent to this search.

    Raises:
        ConfigError: there is none.
    """
    if isinstance(search, Greedy):
        return BeamSearch(beam=1, **vars(search))
    if not isinstance(search, BeamSearch):
        name = type(search).__name__
        raise ConfigError(f"a trace shows beam or greedy search, found {name}; change search")
    return search


def _exact(step_fn: StepFunction, beam: BeamSearch, src: Sequence[int]) -> Hypothesis | None:
    """The model's best translation, if exact search proves it within its limits."""
    if step_fn.vocab_size > _EXACT:
        return None
    lengths = {name: getattr(beam, name) for name in Lengths.hints}
    ((best,),) = ExactSearch(beam=beam.beam, max_nodes=_EXACT, **lengths)(step_fn, [src])
    return best if best.optimal else None


class _Recorder:
    """Records the steps of a search for one sentence."""

    def __init__(self, names: Sequence[str], path: Sequence[int], terms: "Terms | None") -> None:
        self.names, self.path, self.terms = names, tuple(path), terms
        self.begin()

    def begin(self) -> None:
        """Discards an earlier search."""
        self.beam, self.stopped = 0, ""
        self.steps: list[dict[str, Any]] = []
        self.written: list[tuple[int, ...]] = [()]  # the tokens of each candidate, by number
        self.rows = [0]  # the candidates that are expanded
        self.ended = 0

    def __call__(
        self, batch: Batch, candidates: Candidates, allowed: Candidates, survivors: Choice, goes_on: bool
    ) -> None:
        """Records a step, before the batch goes on."""
        if batch.length == 1:
            self.begin()
        step = _Step(batch, candidates, allowed, survivors)
        ends, self.ended = batch.ended[0][self.ended :], len(batch.ended[0])
        cut_off = {end.row for end in ends if end.truncated}
        fates: dict[int, str] = {}
        for row, index in step.survivors.items():
            fates[index] = KEPT if goes_on else CUT_OFF if row in cut_off else STOPPED
        fates |= {step.index(end.row, EOS): ENDED for end in ends if not end.truncated}
        step.fill(fates)
        best = step.best[~np.isin(step.best, [*fates])]
        shown = best[step.allowed[best]][: min(batch.options.beam, _MOST)].tolist()
        on_path = [index for index in best.tolist() if self._on_path(step, index)] if self.path else []
        for index in dict.fromkeys(shown + on_path + step.better_forbidden(fates)):
            fates[index] = FELL_OUT if step.allowed[index] else FORBIDDEN
        numbers, found = {}, []
        for index, fate in fates.items():
            numbers[index] = len(self.written)
            found.append(self._candidate(step, index, fate, step.behind(index, fates) if fate == FELL_OUT else 0.0))
        self.steps.append({"expanded": [self.rows[row] for row in step.alive], "candidates": found})
        rows = range(survivors.tokens.shape[1])
        self.rows = [numbers[step.survivors[row]] if row in step.survivors else 0 for row in rows]
        self.beam = batch.options.beam
        if not goes_on:
            at_limit = batch.length >= batch.constraints.limits[0]
            self.stopped = "length limit" if at_limit else "bound" if step.survivors else "enough ended"

    def _on_path(self, step: "_Step", index: int) -> bool:
        written = (*self.written[self.rows[step.rows[index]]], int(step.tokens[index]))
        return written == self.path[: len(written)]

    def _candidate(self, step: "_Step", index: int, fate: str, behind: float) -> dict[str, Any]:
        row, token, batch = int(step.rows[index]), int(step.tokens[index]), step.batch
        parent, on_path, reason = self.rows[row], self._on_path(step, index), None
        self.written.append((*self.written[parent], token))
        if fate == FORBIDDEN:
            reason = batch.constraints.reason(token, batch.length - 1)
        elif fate == FELL_OUT and token == EOS and batch.offers is not None and self._lacks_terms(parent):
            fate, reason = FORBIDDEN, "terms"
        return {
            "id": len(self.written) - 1,
            "parent": parent,
            "piece": self._piece(token),
            "piece_log_prob": round(float(step.gained[index]), _DIGITS),
            "log_prob": round(float(step.totals[index]), _DIGITS),
            "score": round(batch.score(0, row, float(step.totals[index])), _DIGITS),
            "bonus": round(float(step.bonus[index]), _DIGITS),
            "fate": fate,
            "behind": round(behind, _DIGITS) if fate == FELL_OUT else None,
            "forbidden_by": reason,
            "exact": on_path,
        }

    def _lacks_terms(self, number: int) -> bool:
        terms = self.terms
        return terms is not None and bool((terms.unmet_in(self.written[number]) & terms.must).any())

    def _piece(self, token: int) -> str:
        return self.names[token] if token < len(self.names) else f"<{token}>"

    def ranked(self, hypothesis: Hypothesis) -> dict[str, Any]:
        """A translation, with the number of the candidate that completed it (None if an earlier search found it)."""
        written = hypothesis.written
        return {
            "id": self.written.index(written) if written in self.written else None,
            "pieces": list(map(self._piece, written)),
            "log_prob": round(hypothesis.log_prob, _DIGITS),
            "score": round(hypothesis.score, _DIGITS),
            "truncated": hypothesis.truncated,
        }

    def compared(self, exact: Hypothesis, beam: BeamSearch) -> dict[str, Any]:
        """The model's best translation, and the step in which the beam lost it, or None."""
        on = [any(c["exact"] and c["fate"] in (KEPT, ENDED) for c in step["candidates"]) for step in self.steps]
        left = next((number for number, is_on in enumerate(on[: exact.length], 1) if not is_on), None)
        if left is None and len(on) < exact.length:
            left = len(on)
        return self.ranked(replace(exact, score=beam.score(exact.log_prob, exact.length))) | {"left_at": left}


class _Step:
    """The continuations in one step of a sentence's search, in arrays ``[rows * candidates]``."""

    def __init__(self, batch: Batch, candidates: Candidates, allowed: Candidates, survivors: Choice) -> None:
        self.batch, self._tokens = batch, candidates.tokens
        rows, self._k = candidates.tokens.shape
        before = batch.log_probs[0]
        self.alive = np.flatnonzero(np.isfinite(before)).tolist()
        self.rows, self.tokens = np.repeat(np.arange(rows), self._k), candidates.tokens.reshape(-1)
        self.gained = candidates.log_probs.reshape(-1)
        self.totals = before[self.rows] + self.gained
        self.allowed = np.isfinite(allowed.log_probs.reshape(-1))
        self.survivors = {
            row: self.index(int(survivors.parents[0, row]), int(survivors.tokens[0, row]))
            for row in np.flatnonzero(np.isfinite(survivors.log_probs[0])).tolist()
        }
        size = batch.options.beam // batch.options.groups
        self._size = size if rows > 1 else batch.options.beam  # in the first step all groups continue one row
        self._groups = self.rows // self._size
        self.bonus = self._bonus(survivors, size)
        self.ranking = self.totals + self.bonus
        order = np.argsort(-self.ranking, kind="stable")
        self.best = order[np.isfinite(self.ranking[order])]

    def index(self, row: int, token: int) -> int:
        """The index of the continuation of a row by a token."""
        return row * self._k + int(np.flatnonzero(self._tokens[row] == token)[0])

    def _bonus(self, survivors: Choice, size: int) -> NDArray[np.float64]:
        """The nats by which continuations rank higher (for terms) or lower (for a token that earlier groups took)."""
        bonus = np.zeros(self.totals.shape)
        if self.batch.offers is not None:
            offers, nats = self.batch.offers
            for at in np.flatnonzero(nats).tolist():
                bonus[self.index(int(offers.parents[at]), int(offers.tokens[at]))] = nats[at]
        for row, index in self.survivors.items() if self.batch.options.groups > 1 else ():
            later = self._groups > row // size
            bonus[later & (self.tokens == self.tokens[index])] -= self.batch.options.diversity
        return bonus

    def fill(self, fates: dict[int, str]) -> None:
        """Adds the continuations that groups with enough ended hypotheses would have kept."""
        going = {int(self._groups[index]) for index in self.survivors.values()}
        for group in {*np.unique(self._groups[self.best]).tolist()} - going:
            of_group = self._of(group)
            fates |= dict.fromkeys(of_group[self.tokens[of_group] != EOS][: self._size].tolist(), STOPPED)

    def better_forbidden(self, fates: dict[int, str]) -> list[int]:
        """The forbidden continuations that would otherwise have survived."""
        least = min((self.ranking[i] for i, fate in fates.items() if fate in _STAYED), default=-np.inf)
        found: list[int] = self.best[~self.allowed[self.best] & (self.ranking[self.best] > least)][:_MOST].tolist()
        return found

    def behind(self, index: int, fates: dict[int, str]) -> float:
        """The nats by which a continuation ranks below the last one of its group that survived.

        An end survives if it is among the group's best, of which there are as many as hypotheses.
        """
        group = int(self._groups[index])
        if self.tokens[index] == EOS:
            last = self._of(group)[: self._size][-1:].tolist()
        else:
            last = [i for i, fate in fates.items() if fate in _STAYED and self._groups[i] == group]
        return float(min((self.ranking[i] for i in last), default=self.ranking[index]) - self.ranking[index])

    def _of(self, group: int) -> NDArray[np.int64]:
        """The allowed continuations of a group's hypotheses, best first."""
        return self.best[self.allowed[self.best] & (self._groups[self.best] == group)]
