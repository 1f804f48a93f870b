"""Constraints on the next token: lengths, banned tokens, repeated n-grams and target prefixes."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from softsearch.errors import ConfigError, InputError
from softsearch.search.interface import Candidates, Sentences, State, StepFunction, StepFunctionWrapper, best_candidates
from softsearch.search.options import OutputOptions
from softsearch.text.vocabulary import EOS

_UNCONSTRAINED = -1  # no token: a prefix has ended, or nothing repeats


class Constraints:
    """The constraints of one batch; they remember the tokens of all rows if repeated n-grams are forbidden.

    Raises:
        ConfigError: a banned token is not in the vocabulary.
        InputError: a prefix cannot be written.
    """

    def __init__(self, options: OutputOptions, src: Sentences, prefixes: Sentences | None, vocab_size: int) -> None:
        lengths = np.array([options.lengths(len(ids)) for ids in src], dtype=np.int64).reshape(-1, 2)
        self._least, self.limits = lengths.T  # [sentences] in tokens, with EOS
        self._banned = np.array(sorted({*options.banned}), dtype=np.int64)
        self._ngram = options.no_repeat_ngram
        self.vocab_size = vocab_size
        if (self._banned >= vocab_size).any():
            raise ConfigError(
                f"search.banned holds {self._banned[-1]}, expected ids below the model's {vocab_size}; change banned"
            )
        self._prefixes = np.full((len(src), 1), _UNCONSTRAINED)  # [sentences, longest + 1]
        if prefixes is not None:
            self._prefixes = _padded(prefixes, len(src), vocab_size)
            self.limits = np.maximum(self.limits, (self._prefixes != _UNCONSTRAINED).sum(axis=1) + 1)
        has_prefixes = (self._prefixes != _UNCONSTRAINED).any()
        self.lengths_only = not (self._ngram or self._banned.size or has_prefixes)
        self.none = self.lengths_only and not (self._least > 1).any()
        self._written = np.zeros((len(src), 1, 0), dtype=np.int64)  # [live sentences, rows, tokens]
        self._repeats = self._written  # [live sentences, rows, n-grams so far] tokens that would repeat an n-gram

    def width(self, k: int, live: NDArray[np.int64], step: int) -> int:
        """The number of candidates to request so that the ``k`` best allowed ones of each row are among them.

        ``live`` holds the indices of the sentences being stepped, ``step`` the number of tokens written so far.
        """
        if self.none:
            return min(k, self.vocab_size)
        if (self._forced(live, step) != _UNCONSTRAINED).any():
            return self.vocab_size
        too_short = int((self._least[live] > step + 1).any())
        repeats = int((self._repeats != _UNCONSTRAINED).sum(axis=2).max())
        return min(k + too_short + self._banned.size + repeats, self.vocab_size)

    def apply(self, candidates: Candidates, live: NDArray[np.int64], step: int) -> Candidates:
        """The candidates of all rows, checked, with -inf for forbidden ones.

        Raises:
            InputError: a log probability is NaN, or the next token of a prefix has no probability.
        """
        check_candidates(candidates, step)
        if self.none:
            return candidates
        shape = (live.size, -1, candidates.tokens.shape[1])
        tokens, log_probs = candidates.tokens.reshape(shape), candidates.log_probs.reshape(shape)
        forbidden = (tokens == EOS) & (self._least[live] > step + 1)[:, None, None]
        if self._banned.size:
            forbidden |= np.isin(tokens, self._banned)
        for ngram in np.flatnonzero((self._repeats != _UNCONSTRAINED).any(axis=(0, 1))):
            forbidden |= tokens == self._repeats[:, :, ngram, None]
        forced = self._forced(live, step)
        if (forced != _UNCONSTRAINED).any():
            other = tokens != forced[:, None, None]
            missing = (forced != _UNCONSTRAINED) & (other | ~np.isfinite(log_probs)).all(axis=(1, 2))
            if missing.any():
                raise InputError(
                    f"the model cannot write token {int(forced[missing][0])}, which a target prefix has at position "
                    f"{step}: a shortlist leaves it out, or its probability is 0; search without a shortlist or change "
                    "the prefix"
                )
            forbidden = np.where((forced != _UNCONSTRAINED)[:, None, None], other, forbidden)
        allowed = np.where(forbidden, np.float32(-np.inf), log_probs)
        return candidates._replace(log_probs=allowed.reshape(candidates.log_probs.shape))

    def reason(self, token: int, step: int) -> str:
        """The option that forbids a token in the first sentence."""
        if self._forced(np.zeros(1, dtype=np.int64), step)[0] != _UNCONSTRAINED:
            return "prefix"
        if token in self._banned:
            return "banned"
        return "min_length" if token == EOS else "no_repeat_ngram"

    def advance(self, going: NDArray[np.int64], parents: NDArray[np.int64], tokens: NDArray[np.int64]) -> None:
        """Records the chosen tokens ``[going, rows]`` and the rows that they continue, ``parents [going, rows]``.

        ``going`` holds the sentences that go on, as indices into those stepped.
        """
        if not self._ngram:
            return
        prefixes = self._written[going[:, None], parents]
        self._written = np.concatenate([prefixes, tokens[:, :, None]], axis=2)
        self._repeats = _repeats(self._written, self._ngram)

    def _forced(self, live: NDArray[np.int64], step: int) -> NDArray[np.int64]:
        return self._prefixes[live, min(step, self._prefixes.shape[1] - 1)]


class BannedTokens(StepFunctionWrapper):
    """A StepFunction that never generates certain tokens, in any search; the others keep their probabilities.

    It replaces the option ``banned``, which exact search and reranking do not have.
    """

    def __init__(self, step_fn: StepFunction, tokens: Sequence[int]) -> None:
        super().__init__(step_fn)
        self.tokens = tokens

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        candidates, after = self.step_fn.step(tokens, state, min(k + len(self.tokens), self.vocab_size))
        log_probs = np.where(np.isin(candidates.tokens, self.tokens), np.float32(-np.inf), candidates.log_probs)
        if k == self.vocab_size:
            return candidates._replace(log_probs=log_probs), after
        return best_candidates(log_probs, candidates.tokens, candidates.alignments, k), after


def check_candidates(candidates: Candidates, step: int) -> None:
    """Checks that search can rank the candidates.

    Raises:
        InputError: a row has NaN, or no candidate with a finite log probability.
    """
    bad = ~np.isfinite(candidates.log_probs.max(axis=1))  # NaN where one is NaN
    if bad.any():
        row = int(bad.argmax())
        values = candidates.log_probs[row, :10].tolist()
        raise InputError(
            f"the model's log probabilities at target position {step}, row {row} are {values}, "
            "expected finite numbers: the model's weights are broken; use another checkpoint"
        )


def no_token_left() -> InputError:
    """The error for a sentence without an allowed next token."""
    return InputError(
        "the constraints forbid every next token before the sentence may end; "
        "ban fewer tokens, or lower search.min_length_factor, min_length_offset or no_repeat_ngram"
    )


def _repeats(written: NDArray[np.int64], ngram: int) -> NDArray[np.int64]:
    """Tokens that would repeat an n-gram of a row, ``[sentences, rows, n-grams]``; -1 where none would."""
    length = written.shape[2]
    if length < ngram:
        return written[:, :, :0]
    ngrams = sliding_window_view(written, ngram, axis=2)  # [sentences, rows, length - ngram + 1, ngram]
    last = written[:, :, None, length - ngram + 1 :]
    again = (ngrams[..., :-1] == last).all(axis=3) & (ngrams[..., -1] != EOS)  # only ended rows hold EOS
    return np.where(again, ngrams[..., -1], _UNCONSTRAINED)


def _padded(prefixes: Sentences, sentences: int, vocab_size: int) -> NDArray[np.int64]:
    """The prefixes ``[sentences, longest + 1]``, _UNCONSTRAINED after their ends.

    Raises:
        InputError: a prefix holds EOS or an id outside the vocabulary.
    """
    padded = np.full((sentences, max(map(len, prefixes)) + 1), _UNCONSTRAINED)
    for row, prefix in zip(padded, prefixes, strict=True):
        wrong = [token for token in prefix if token == EOS or not 0 <= token < vocab_size]
        if wrong:
            raise InputError(
                f"a target prefix holds token {wrong[0]}, expected ids from 0 to {vocab_size - 1} and no EOS ({EOS})"
            )
        row[: len(prefix)] = prefix
    return padded
