"""How sure a model is of its translations, without references (Fomicheva et al. 2020, arXiv:2005.10608, section 4)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from softsearch.ranges import Range
from softsearch.runtime.options import Search, default_batch_tokens, search_that_writes
from softsearch.runtime.system import BATCH_TOKENS, System, without_alignments
from softsearch.search.batching import translate_ids
from softsearch.search.forced_decoding import forced_steps
from softsearch.search.interface import Hypothesis, Sentences
from softsearch.search.options import MAX_BEAM, OutputOptions, check_option
from softsearch.search.sampling import Sampling

FIGURES = ("mean_log_prob", "min_log_prob", "softmax_entropy", "attention_entropy", "agreement", "token_log_probs")
_DIGITS = 6
_ORDER, _BETA = 6, 2  # of chrF: characters of the longest n-grams, and how much more recall counts than precision


@dataclass(frozen=True)
class Confidence:
    """How sure a model is of a translation y of T tokens, the final ``</s>`` included unless it is truncated.

    Attributes:
        token_log_probs: ``log p(y_t | y_<t, x)`` of each token, in nats, in the order of ``tgt_pieces``.
        token_entropies: ``- sum_v p(v | y_<t, x) log p(v | y_<t, x)`` over the vocabulary, in nats.
        attention_entropies: ``- sum_i a_ti log a_ti`` of each token's attention to the source; None without attention.
        agreement: the mean chrF, 0 to 1, of the translation with samples of the model as references; None without any.
    """

    token_log_probs: tuple[float, ...]
    token_entropies: tuple[float, ...]
    attention_entropies: tuple[float, ...] | None
    agreement: float | None = None

    @property
    def mean_log_prob(self) -> float:
        """TP: ``1/T sum_t log p(y_t | y_<t, x)``; the higher, the surer."""
        return fmean(self.token_log_probs)

    @property
    def min_log_prob(self) -> float:
        """``min_t log p(y_t | y_<t, x)``, of the token of which the model is least sure."""
        return min(self.token_log_probs)

    @property
    def softmax_entropy(self) -> float:
        """Softmax-Ent: the mean of the tokens' entropies; the lower, the surer."""
        return fmean(self.token_entropies)

    @property
    def attention_entropy(self) -> float | None:
        """Att-Ent: the mean entropy of attention; None without attention."""
        return None if self.attention_entropies is None else fmean(self.attention_entropies)

    def facts(self) -> dict[str, Any]:
        """The :data:`FIGURES` by name, for JSON."""
        values = {name: getattr(self, name) for name in FIGURES}
        return {name: None if value is None else np.round(value, _DIGITS).tolist() for name, value in values.items()}

    def followed_by(self, others: Sequence["Confidence"]) -> "Confidence":
        """The confidence in joined translations; their agreements are averaged by numbers of tokens."""
        parts = (self, *others)
        attention = [part.attention_entropies for part in parts if part.attention_entropies is not None]
        agreements = [part.agreement for part in parts if part.agreement is not None]
        return Confidence(
            tuple(chain.from_iterable(part.token_log_probs for part in parts)),
            tuple(chain.from_iterable(part.token_entropies for part in parts)),
            tuple(chain.from_iterable(attention)) if attention else None,
            fmean(agreements, [len(part.token_log_probs) for part in parts]) if agreements else None,
        )


def number_of_samples(value: int) -> int:
    """Checks the option ``agreement``.

    Raises:
        ConfigError: it is not a number of samples.
    """
    check_option("agreement", value, Annotated[int, Range(0, MAX_BEAM)])
    return value


def measure_confidence(
    system: System,
    search: Search,
    src: Sentences,
    n_best_lists: Sequence[Sequence[Hypothesis]],
    prefixes: Sentences | None = None,
    samples: int | None = 0,
    workers: int = 1,
) -> Iterator[Confidence | None]:
    """Yields the confidence in each translation of each source, one after the other; None if ``samples`` are None.

    The model is made to write the translations again, so that they may come from any search. If there are ``samples``,
    they are drawn within the search's limits on length and tokens.
    """
    if samples is None:
        yield from repeat(None)
    repeated = [(ids, h) for ids, n_best in zip(src, n_best_lists, strict=True) for h in n_best]
    measured = _measure(system, [ids for ids, _ in repeated], [hypothesis for _, hypothesis in repeated])
    agreements: Iterator[float | None] = iter([None] * len(repeated))
    if samples:
        writer, decode = search_that_writes(search), system.tokenizers[1].decode
        limits = {name: getattr(writer, name) for name in OutputOptions.hints if hasattr(writer, name)}
        # Samples that are judged are compared with others, not with themselves.
        seed = (getattr(writer, "seed", 0) + 1) % 2**32
        sampling = Sampling(**limits | {"n_best": samples, "alignments": False, "seed": seed})
        drawn = translate_ids(
            without_alignments(system).step_fn,
            sampling,
            src,
            batch_tokens=default_batch_tokens(sampling),
            prefixes=prefixes,
            workers=workers,
        )
        texts = [[decode(hypothesis.tokens) for hypothesis in each] for each in drawn]
        agreements = (
            fmean(chrf(decode(hypothesis.tokens), text) for text in references)
            for references, n_best in zip(texts, n_best_lists, strict=True)
            for hypothesis in n_best
        )
    for (_, hypothesis), (log_probs, entropies, attention) in zip(repeated, measured, strict=True):
        order = system.tokenizers[1].text_order(hypothesis.written)
        in_order = [tuple(values[order].tolist()) for values in (log_probs, entropies, attention)]
        has_attention = system.step_fn.has_attention
        yield Confidence(in_order[0], in_order[1], in_order[2] if has_attention else None, next(agreements))


def _measure(system: System, src: Sentences, hypotheses: Sequence[Hypothesis]) -> list[NDArray[np.float64]]:
    """The log probabilities and entropies of each hypothesis's tokens, and those of attention or 0: ``[3, tokens]``."""
    found: list[list[tuple[NDArray[np.float64], ...]]] = [[] for _ in hypotheses]
    tgt = [hypothesis.tokens for hypothesis in hypotheses]
    for step in forced_steps(system.step_fn, src, tgt, BATCH_TOKENS, k=system.step_fn.vocab_size):
        log_probs, _, alignments = step.candidates
        rows = np.arange(len(log_probs))
        attention = np.zeros(len(rows)) if alignments is None else _entropy(alignments.astype(np.float64))
        entropies = _entropy(np.exp(log_probs.astype(np.float64)))
        values = log_probs[rows, step.wanted].astype(np.float64), entropies, attention
        for index, *each in zip(step.pairs, *values, strict=True):
            found[index].append(tuple(each))
    # Truncated ones were made to write EOS, which is not theirs.
    return [np.array(each).T[:, : h.length] for each, h in zip(found, hypotheses, strict=True)]


def _entropy(probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The entropy of each row, in nats; 0 log 0 is 0."""
    logs = np.log(probs, out=np.zeros_like(probs), where=probs > 0)
    return np.asarray(-(probs * logs).sum(axis=1))


def chrf(text: str, reference: str) -> float:
    """The chrF (Popovic 2015, W15-3049) of a sentence, 0 to 1, as sacreBLEU computes it, which hosts do not install.

    Precision and recall of character n-grams, without white space, are averaged over the orders that both texts have.
    """
    sides = ["".join(side.split()) for side in (text, reference)]
    orders = range(1, min(_ORDER, *map(len, sides)) + 1)
    if not orders:
        return 0.0
    precision = recall = 0.0
    for n in orders:
        ours, theirs = (Counter(side[i : i + n] for i in range(len(side) - n + 1)) for side in sides)
        matches = (ours & theirs).total()
        precision, recall = precision + matches / ours.total(), recall + matches / theirs.total()
    weighted = _BETA**2 * precision + recall
    return (1 + _BETA**2) * precision * recall / weighted / len(orders) if weighted else 0.0
