"""How sure a model is of its translations, without references (Fomicheva et al. 2020, arXiv:2005.10608, section 4)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softsearch.option import check_option
from softsearch.ranges import Range
from softsearch.search.batching import translate_ids
from softsearch.search.forced_decoding import forced_steps
from softsearch.search.interface import Hypothesis, SearchStrategy, Sentences, StepFunction
from softsearch.search.options import MAX_BEAM, OutputOptions
from softsearch.search.sampling import Sampling

FIGURES = ("mean_log_prob", "min_log_prob", "softmax_entropy", "attention_entropy", "agreement", "token_log_probs")
_DIGITS = 6
_BATCH_TOKENS = 2048  # source tokens in a batch, padding included; a sentence counts once per sample
_ORDER, _BETA = 6, 2  # of chrF: the longest character n-grams, and the weight of recall against precision


class TargetTokenizer(Protocol):
    """What this module needs from the target's tokenizer, which belongs to another layer."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids."""

    def text_order(self, ids: Sequence[int]) -> Sequence[int]:
        """The indices of token ids in the order of the text."""


@dataclass(frozen=True, eq=False)
class Confidence:
    """How sure a model is of a translation y of T tokens, the final ``</s>`` included unless it is truncated.

    Attributes:
        tokens: ``[3, T]``, in the order of ``tgt_pieces`` and in nats: ``log p(y_t | y_<t, x)``; the entropy
            ``- sum_v p(v | y_<t, x) log p(v | y_<t, x)`` over the vocabulary; and the entropy of the attention to the
            source, ``- sum_i a_ti log a_ti``, NaN without attention.
            agreement: the mean chrF, 0 to 1, of the translation with samples from the model as references; None without
                samples.
    """

    tokens: NDArray[np.float64]
    agreement: float | None = None

    @property
    def token_log_probs(self) -> tuple[float, ...]:
        """``log p(y_t | y_<t, x)`` of each token."""
        return tuple(self.tokens[0].tolist())

    @property
    def mean_log_prob(self) -> float:
        """TP: ``1/T sum_t log p(y_t | y_<t, x)``; higher is more confident."""
        return float(self.tokens[0].mean())

    @property
    def min_log_prob(self) -> float:
        """``min_t log p(y_t | y_<t, x)``, for the token the model is least sure of."""
        return float(self.tokens[0].min())

    @property
    def softmax_entropy(self) -> float:
        """Softmax-Ent: the mean of the tokens' entropies; lower is more confident."""
        return float(self.tokens[1].mean())

    @property
    def attention_entropy(self) -> float | None:
        """Att-Ent: the mean entropy of the attention; None without attention."""
        return None if np.isnan(self.tokens[2]).any() else float(self.tokens[2].mean())

    def facts(self) -> dict[str, Any]:
        """The ``FIGURES`` by name, for JSON."""
        values = {name: getattr(self, name) for name in FIGURES}
        return {name: None if value is None else np.round(value, _DIGITS).tolist() for name, value in values.items()}

    def followed_by(self, others: Sequence["Confidence"]) -> "Confidence":
        """The confidence in joined translations; agreements are averaged, weighted by numbers of tokens."""
        parts = (self, *others)
        agreed = [(each.agreement, each.tokens.shape[1]) for each in parts if each.agreement is not None]
        agreement = fmean(*zip(*agreed, strict=True)) if agreed else None
        return Confidence(np.concatenate([each.tokens for each in parts], axis=1), agreement)


def measure_confidence(
    step_fn: StepFunction,
    tokenizer: TargetTokenizer,
    search: SearchStrategy,
    src: Sentences,
    n_best_lists: Sequence[Sequence[Hypothesis]],
    *,
    prefixes: Sentences | None = None,
    samples: int = 0,
    workers: int = 1,
) -> list[Confidence]:
    """The confidence in each translation of each source, in order.

    The model is forced to write the translations again, so they may come from any search.

    Args:
        step_fn: the model, with alignments if it has attention.
        tokenizer: the target's tokenizer.
        search: the search that found the translations; samples are drawn within its limits on length and tokens.
        src: token ids.
        n_best_lists: the translations of each source.
        prefixes: the target prefixes that they begin with.
        samples: number of samples per source for the agreement; 0: none.
        workers: threads that draw the samples.

    Raises:
        ConfigError: ``samples`` is out of range.
    """
    samples = check_option("agreement", samples, Annotated[int, Range(0, MAX_BEAM)])
    decode, numbers = tokenizer.decode, [number for number, n_best in enumerate(n_best_lists) for _ in n_best]
    hypotheses = [hypothesis for n_best in n_best_lists for hypothesis in n_best]
    found = _measure(step_fn, [src[number] for number in numbers], hypotheses)
    # A truncated translation was forced to write EOS, which it lacks.
    in_order = [each[:, tokenizer.text_order(h.written)] for h, each in zip(hypotheses, found, strict=True)]
    if not samples:
        return list(map(Confidence, in_order))
    writer = getattr(search, "search", search)  # in a reranker, the search that writes
    limits = {name: getattr(writer, name) for name in OutputOptions.hints if hasattr(writer, name)}
    seed = (getattr(writer, "seed", 0) + 1) % 2**32  # samples other than those being judged
    sampling = Sampling(**limits | {"n_best": samples, "alignments": False, "seed": seed})
    size = max(1, _BATCH_TOKENS // samples)
    drawn = translate_ids(step_fn, sampling, src, batch_tokens=size, prefixes=prefixes, workers=workers)
    references = [[decode(sample.tokens) for sample in each] for each in drawn]
    agreements = [
        fmean(chrf(decode(hypothesis.tokens), text) for text in references[number])
        for number, hypothesis in zip(numbers, hypotheses, strict=True)
    ]
    return list(map(Confidence, in_order, agreements))


def _measure(step_fn: StepFunction, src: Sentences, hypotheses: Sequence[Hypothesis]) -> list[NDArray[np.float64]]:
    """The numbers in ``Confidence`` for each hypothesis's tokens, EOS included, in the model's order."""
    found: list[list[tuple[float, ...]]] = [[] for _ in hypotheses]
    tgt = [hypothesis.tokens for hypothesis in hypotheses]
    for step in forced_steps(step_fn, src, tgt, _BATCH_TOKENS, k=step_fn.vocab_size):
        log_probs, _, alignments = step.candidates
        wanted = log_probs[np.arange(len(log_probs)), step.wanted]
        attention = np.full(len(wanted), np.nan) if alignments is None else _entropy(alignments)
        for index, *each in zip(step.pairs, wanted, _entropy(np.exp(log_probs)), attention, strict=True):
            found[index].append(tuple(each))
    return [np.array(each, dtype=np.float64).T for each in found]


def _entropy(probs: NDArray[np.floating]) -> NDArray[np.float64]:
    """The entropy of each row, in nats; 0 log 0 is 0."""
    logs = np.log(probs, out=np.zeros_like(probs), where=probs > 0)
    return np.asarray(-(probs * logs).sum(axis=1, dtype=np.float64))


def chrf(text: str, reference: str) -> float:
    """The chrF (Popovic 2015, W15-3049) of a sentence, 0 to 1, as in sacreBLEU, which deploy hosts lack.

    Precision and recall of character n-grams, without white space, are averaged over the orders in both texts.
    """
    sides = ["".join(side.split()) for side in (text, reference)]
    orders = range(1, min(_ORDER, *map(len, sides)) + 1)
    precision = recall = 0.0
    for n in orders:
        ours, theirs = (Counter(side[i : i + n] for i in range(len(side) - n + 1)) for side in sides)
        matches = (ours & theirs).total()
        precision, recall = precision + matches / ours.total(), recall + matches / theirs.total()
    weighted = (_BETA**2 * precision + recall) * len(orders)
    return (1 + _BETA**2) * precision * recall / weighted if weighted else 0.0
