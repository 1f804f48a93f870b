"""Greedy search: the most probable token at each step."""

from collections.abc import Sequence

import numpy as np

from softsearch.search.history import History, check_candidates
from softsearch.search.interface import Hypothesis, SearchOptions, StepFunction
from softsearch.text.vocabulary import BOS, EOS


class Greedy:
    """Takes the best token of each row until EOS or the length limit; one hypothesis per sentence.

    Args:
        max_length_factor: the length limit is ``max_length_factor * src_len + max_length_offset`` tokens.
        max_length_offset: see ``max_length_factor``.
        alignments: collect the attention weights.

    Raises:
        ConfigError: a value is out of range.
    """

    def __init__(
        self, *, max_length_factor: float = 2.0, max_length_offset: int = 10, alignments: bool = False
    ) -> None:
        self.options = SearchOptions(
            beam=1,
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
            One list with one hypothesis for each source.

        Raises:
            InputError: the model returned NaN.
        """
        if not src:
            return []
        limits = np.array([self.options.max_length(len(ids) - 1) for ids in src])
        history = History(len(src), [len(ids) for ids in src], alignments=self.options.alignments)
        results: list[list[Hypothesis]] = [[] for _ in src]
        live = np.arange(len(src))
        log_probs = np.zeros(len(src))
        tokens = np.full(len(src), BOS, dtype=np.int64)
        state = step_fn.start(src)
        length = 0
        while live.size:
            candidates, state = step_fn.step(tokens, state, 1)
            check_candidates(candidates, length)
            length += 1
            log_probs = log_probs + candidates.log_probs[:, 0]
            tokens = candidates.tokens[:, 0]
            history.add_alignments(live, candidates.alignments)
            history.add_choices(live, np.zeros((live.size, 1), dtype=np.int64), tokens[:, None])
            ended = tokens == EOS
            done = ended | (length >= limits[live])
            for index in np.flatnonzero(done):
                sentence, truncated = int(live[index]), not ended[index]
                results[sentence] = [self._read(history, sentence, length, float(log_probs[index]), truncated)]
            if done.any():
                going = np.flatnonzero(~done)
                live, log_probs, tokens = live[going], log_probs[going], tokens[going]
                if going.size:
                    state = step_fn.keep(state, going)
        return results

    def _read(self, history: History, sentence: int, length: int, log_prob: float, truncated: bool) -> Hypothesis:
        tokens, alignments = history.trace(sentence, length, 0)
        return Hypothesis(
            tokens=tokens if truncated else tokens[:-1],
            log_prob=log_prob,
            score=self.options.score(log_prob, length),
            alignments=np.stack(alignments) if self.options.alignments else None,
            truncated=truncated,
        )
