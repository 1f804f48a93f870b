"""Exact search: the translation with the highest log probability under the model (Stahlberg & Byrne 2019)."""

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsearch.option import Option
from softsearch.ranges import Range
from softsearch.search.beam import BeamSearch
from softsearch.search.constraints import check_candidates
from softsearch.search.interface import Hypothesis, Sentences, State, StepFunction
from softsearch.search.options import Beam, Lengths
from softsearch.text.vocabulary import BOS, EOS

_BLOCK = 16  # nodes of a sentence expanded together
_SENTENCES = 16  # sentences searched side by side
_FIRST_K = 64  # children of a node fetched at first; more if the last is still above the bound


@dataclass(frozen=True, kw_only=True)
class ExactSearch(Lengths):
    """Depth-first branch and bound (arXiv:1908.10090, section 2, algorithm 2), in blocks of nodes.

    A node is a prefix of a translation. Log probabilities only fall along a path, so a prefix is expanded only if it is
    more probable than the best translation so far, which at first comes from beam search. The most probable children of
    a block are expanded next, as a block.

    Log probabilities are compared without a length penalty: with one, the paper's bound excludes almost nothing at a
    limit of twice the source's length.

    If no translation ends within the length limit, beam search's result is returned, flagged ``truncated``. If the
    limit ``max_nodes`` is reached, the best translation so far is returned with ``optimal`` False. Minimum lengths are
    as in the paper's search under length constraints.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    is_exact = True
    beam: Beam = 5  # of the beam search that gives the first bound
    max_nodes: Annotated[
        int,
        Range(1),
        Option(
            "exact search: maximum prefixes per sentence; then the best so far is returned", 1000, recommended=1_000_000
        ),
    ] = 20_000

    @property
    def options(self) -> BeamSearch:
        """The beam search that gives the first bound."""
        shared = {name: value for name, value in vars(self).items() if name != "max_nodes"}
        return BeamSearch(length_penalty=0.0, **shared)

    def score(self, log_prob: float, length: int) -> float:
        """The log probability itself."""
        return log_prob

    def __call__(self, step_fn: StepFunction, src: Sentences) -> list[list[Hypothesis]]:
        """Finds one hypothesis for each source; its ``optimal`` says whether it is proven to be the best.

        Raises:
            InputError: the model returned NaN.
        """
        groups = [src[begin : begin + _SENTENCES] for begin in range(0, len(src), _SENTENCES)]
        return [[best] for group in groups for best in _Tree(step_fn, group, self).search()]


class _OpenNodes(NamedTuple):
    """Nodes of one sentence that have not been expanded yet, best first."""

    parents: NDArray[np.int64]  # rows in the level
    tokens: NDArray[np.int64]
    log_probs: NDArray[np.float64]  # of the nodes' prefixes

    def at(self, index: slice | NDArray[np.int64]) -> "_OpenNodes":
        return _OpenNodes(self.parents[index], self.tokens[index], self.log_probs[index])


@dataclass
class _Level:
    """The children of one block of nodes per sentence; every sentence has the same number of rows."""

    state: State  # after the block was read
    sentences: NDArray[np.int64]
    prefixes: NDArray[np.int64]  # [sentences, rows, tokens] read by the block's rows, without BOS
    waiting: list[_OpenNodes]


class _Tree:
    """The independent searches of a few sentences, side by side."""

    def __init__(self, step_fn: StepFunction, src: Sentences, search: ExactSearch) -> None:
        options = search.options
        self.step_fn, self.src, self.max_nodes = step_fn, src, search.max_nodes
        self.limits = [options.lengths(len(ids)) for ids in src]
        self.best = [n_best[0] for n_best in options(step_fn, src)]
        # A truncated result of beam search is not a translation and gives no bound.
        self.bounds = np.array([-np.inf if best.truncated else best.log_prob for best in self.best])
        self.skipped = np.full(len(src), -np.inf)  # the most probable node dropped by the limit
        self.nodes = np.ones(len(src), dtype=np.int64)  # the root counts
        self.levels: list[_Level] = []

    def search(self) -> list[Hypothesis]:
        """Expands nodes, always on the deepest level that has any, until none is left; returns the best results."""
        count = len(self.src)
        begin, prefixes = np.full((count, 1), BOS, dtype=np.int64), np.zeros((count, 1, 0), dtype=np.int64)
        self._expand(np.arange(count), self.step_fn.start(self.src), begin, np.zeros((count, 1)), prefixes)
        while self.levels:
            level = self.levels[-1]
            blocks = [self._take(level, index) for index in range(level.sentences.size)]
            if not any(waiting.tokens.size for waiting in level.waiting):
                self.levels.pop()  # before descending: its state may be large
            active = np.flatnonzero([block.tokens.size for block in blocks])
            if active.size:
                self._descend(level, active, [blocks[index] for index in active])
        proven = self.skipped <= self.bounds
        return [replace(h, optimal=bool(p) and not h.truncated) for h, p in zip(self.best, proven, strict=True)]

    def _take(self, level: _Level, index: int) -> _OpenNodes:
        """Removes a sentence's next block of nodes from the open ones, and drops those that its bound excludes."""
        sentence, waiting = level.sentences[index], level.waiting[index]
        worth = int(np.searchsorted(-waiting.log_probs, -self.bounds[sentence]))
        size = min(_BLOCK, worth, self.max_nodes - int(self.nodes[sentence]))
        if not size and worth:
            self.skipped[sentence] = max(self.skipped[sentence], waiting.log_probs[0])
        self.nodes[sentence] += size
        level.waiting[index] = waiting.at(slice(size, worth if size else 0))
        return waiting.at(slice(size))

    def _descend(self, level: _Level, active: NDArray[np.int64], blocks: list[_OpenNodes]) -> None:
        """Expands a block of nodes for each sentence in ``active``, which holds indices into a level."""
        sizes = np.array([block.tokens.size for block in blocks])[:, None]
        columns = np.arange(sizes.max())
        # A sentence with fewer nodes than others repeats its last one, with probability 0.
        repeated = [block.at(row) for block, row in zip(blocks, np.minimum(columns, sizes - 1), strict=True)]
        parents, tokens, log_probs = (np.stack(parts) for parts in zip(*repeated, strict=True))
        log_probs[columns >= sizes] = -np.inf
        if active.size < level.sentences.size:
            level.state = self.step_fn.keep(level.state, active)  # the others never need it again
            level.sentences, level.prefixes = level.sentences[active], level.prefixes[active]
            level.waiting = [level.waiting[index] for index in active]
        indices = np.arange(active.size)[:, None]
        rows = indices * level.prefixes.shape[1] + parents
        prefixes = np.concatenate([level.prefixes[indices, parents], tokens[:, :, None]], axis=2)
        state = self.step_fn.select(level.state, rows.reshape(-1))
        self._expand(level.sentences, state, tokens, log_probs, prefixes)

    def _expand(
        self,
        sentences: NDArray[np.int64],
        state: State,
        tokens: NDArray[np.int64],
        log_probs: NDArray[np.float64],
        prefixes: NDArray[np.int64],
    ) -> None:
        """Reads ``tokens [sentences, rows]``, records translations that end, and makes a level of the children."""
        vocab_size = self.step_fn.vocab_size
        k = min(_FIRST_K, vocab_size)
        while True:  # until the candidates include all children above the bounds
            candidates, after = self.step_fn.step(tokens.reshape(-1), state, k)
            check_candidates(candidates, prefixes.shape[2])
            totals = log_probs[:, :, None] + candidates.log_probs.reshape(*tokens.shape, -1)
            everything = k == vocab_size or candidates.tokens.shape[1] < k
            if everything or not (totals[:, :, -1] > self.bounds[sentences, None]).any():
                break
            k = min(8 * k, vocab_size)
        children = candidates.tokens.reshape(totals.shape)
        waiting = [
            self._children(int(sentence), prefixes[index], children[index], totals[index])
            for index, sentence in enumerate(sentences)
        ]
        self.levels.append(_Level(after, sentences, prefixes, waiting))

    def _children(
        self, sentence: int, prefixes: NDArray[np.int64], tokens: NDArray[np.int64], totals: NDArray[np.float64]
    ) -> _OpenNodes:
        """Records where a sentence's rows ``[rows, k]`` end, and returns the children that may become the best."""
        length = prefixes.shape[1] + 1  # of the children's prefixes
        is_eos = tokens == EOS
        ended = np.where(is_eos & (length >= self.limits[sentence].least), totals, -np.inf).max(axis=1)
        row = int(ended.argmax())
        if ended[row] > self.bounds[sentence]:
            log_prob = float(ended[row])
            self.bounds[sentence] = log_prob
            best = tuple(prefixes[row].tolist())
            self.best[sentence] = Hypothesis(best, log_prob, log_prob, alignments=None, truncated=False)
        worth = np.flatnonzero(~is_eos & (totals > self.bounds[sentence]) & (length < self.limits[sentence].most))
        best_first = worth[np.argsort(-totals.reshape(-1)[worth], kind="stable")]
        log_probs = totals.reshape(-1)[best_first]
        room = self.max_nodes - int(self.nodes[sentence])
        if best_first.size > room:  # more cannot be expanded
            self.skipped[sentence] = max(self.skipped[sentence], log_probs[room])
        best_first = best_first[:room]
        return _OpenNodes(best_first // tokens.shape[1], tokens.reshape(-1)[best_first], log_probs[:room])
