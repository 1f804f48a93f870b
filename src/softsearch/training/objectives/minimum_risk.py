"""Minimum risk training (Shen et al. 2016, arXiv:1512.02433)."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from softsearch.data.corpora.base import ParallelSource
from softsearch.data.dataset import Batch, pad
from softsearch.evaluation.inference import SentenceScore, evaluating
from softsearch.evaluation.metrics import bleu_for
from softsearch.models.loss import Loss
from softsearch.models.output_layers import LOGITS, accumulation_dtype
from softsearch.models.seq2seq import Seq2Seq
from softsearch.ranges import AtLeastOne, Positive
from softsearch.search.options import OutputOptions
from softsearch.text.tokenizer import Tokenizers
from softsearch.text.vocabulary import BOS, EOS, PAD
from softsearch.training.interface import TrainingMethod, TrainingPart, TrainingStep

Tokens = tuple[int, ...]
Utility = Callable[[Tokens, Tokens], float]  # (translation, reference) as token ids without EOS -> utility


class Subset(NamedTuple):
    """S(x): some translations of a sentence."""

    translations: list[Tokens]  # distinct, without EOS; the reference is the first
    costs: list[float]  # Delta(y, reference) of each translation


def minimum_risk(
    step: TrainingStep, *, utility: Utility, samples: AtLeastOne = 10, alpha: Positive = 5e-3
) -> tuple[Loss, Tensor]:
    """A ``TrainingMethod``: minimises the expected cost of the model's own translations (equations 11 to 13).

    R = sum_x sum_{y in S(x)} Q(y | x) Delta(y, reference), with Q(y | x) = P(y | x) ** alpha, normalised over S(x).
    Delta is minus the ``utility``. S(x) is the reference and ``samples`` drawn from the model without dropout;
    duplicates count once, and samples that do not end within search's default length limit are dropped. Gradients flow
    only through P, which has dropout.

    Only ``per`` of ``loss`` is used: with ``per=sentence`` training minimises the mean risk per sentence, as in the
    paper, which uses 100 samples and ``alpha`` 5e-3, and starts from a trained model.

    To save memory, the risk is computed for a part of the batch at a time, with at most the batch's number of target
    tokens (or the subset of one sentence), and again in the backward pass.
    """
    model, batch = step.model, step.batch
    subsets = _subsets(batch, _draw(model, batch, samples), utility)
    device = batch.src_tokens.device
    risk, nll = torch.zeros((2,), device=device).unbind()
    for part in parts(subsets, batch.tgt_tokens.numel()):
        chosen = subsets[part]
        rows = [np.array(tokens, dtype=np.int64) for subset in chosen for tokens in subset.translations]
        widest = max(len(subset.costs) for subset in chosen)
        costs = torch.tensor([[*s.costs, *[torch.nan] * (widest - len(s.costs))] for s in chosen], device=device)
        source = batch.src_tokens[part], None if batch.src_features is None else batch.src_features[part]
        both = checkpoint(_risk, model, *source, pad(rows, bos=True).to(device), costs, alpha, use_reentrant=False)
        risk, nll = risk + both[0], nll + both[1]
    return Loss(risk, nll.detach()), (batch.tgt_tokens[:, 1:] != PAD).sum()


class MinimumRisk(TrainingPart):
    """Options of ``minimum_risk`` with sentence BLEU on the data's text as the utility."""

    def __init__(self, *, samples: AtLeastOne = 10, alpha: Positive = 5e-3) -> None:
        self.samples, self.alpha = samples, alpha

    def for_data(self, source: ParallelSource, tokenizers: Tokenizers) -> TrainingMethod:
        """Returns the method for data with these languages and tokenizers."""
        utility = SentenceScore(bleu_for(source.text_form, source.tgt_lang), tokenizers[1])
        return partial(minimum_risk, utility=utility, samples=self.samples, alpha=self.alpha)


def _risk(
    model: Seq2Seq, src_tokens: Tensor, src_features: Tensor | None, tgt_tokens: Tensor, costs: Tensor, alpha: float
) -> tuple[Tensor, Tensor]:
    """Returns the risk, and -log P of the references, summed over sentences.

    ``tgt_tokens`` ``[translations, tgt_len + 1]`` are the concatenated subsets; ``costs`` ``[sentences, max
    translations]`` are NaN where a sentence has fewer translations.
    """
    exists = ~costs.isnan()
    owners = exists.nonzero()[:, 0]  # [translations] index of the sentence
    state = model.encode(src_tokens, src_features).keep(owners)
    logits = model.decoder(tgt_tokens[:, :-1], state)  # [translations, tgt_len, vocab]
    logits, targets = logits.transpose(1, 2).to(accumulation_dtype(logits)), tgt_tokens[:, 1:]
    nll = functional.cross_entropy(logits, targets, ignore_index=PAD, reduction="none")  # [translations, tgt_len]
    log_probs = -nll.sum(1)
    table = log_probs.new_full(costs.shape, -torch.inf).masked_scatter(exists, log_probs)
    q = (alpha * table).softmax(-1)  # [sentences, max translations]
    return (q * costs.nan_to_num()).sum(), -table[:, 0].sum()


@torch.no_grad()
def _draw(model: Seq2Seq, batch: Batch, samples: int) -> list[list[Tokens]]:
    """Samples from the model without dropout; returns the finished samples of each sentence."""
    vocab, drawn = model.tgt_vocab_size, list[list[Tokens]]()
    with evaluating(model):
        size = max(1, LOGITS // (vocab * samples))
        for start in range(0, len(batch.src_tokens), size):
            part = slice(start, start + size)
            features = None if batch.src_features is None else batch.src_features[part]
            rows = _sample(model, batch.src_tokens[part], features, samples).cpu().tolist()
            ended = [tuple(row[: row.index(EOS)]) if EOS in row else None for row in rows]
            drawn += [
                [tokens for tokens in ended[first : first + samples] if tokens is not None]
                for first in range(0, len(rows), samples)
            ]
    return drawn


def _sample(model: Seq2Seq, src_tokens: Tensor, src_features: Tensor | None, samples: int) -> Tensor:
    """Draws samples ``[batch * samples, len]``, grouped by sentence, with EOS unless the limit was reached."""
    sentences, src_len = src_tokens.shape
    device = src_tokens.device
    state = model.encode(src_tokens, src_features)
    # Not select: each sample would attend over the masked slots of all other samples of its sentence.
    state = state.keep(torch.arange(sentences, device=device).repeat_interleave(samples))
    tokens = torch.full((sentences * samples,), BOS, device=device)
    ended = torch.zeros_like(tokens, dtype=torch.bool)
    written: list[Tensor] = []
    for _ in range(OutputOptions().lengths(src_len - 1).most):
        logits, _, state = model.decoder.step(tokens, state)
        probs = logits.float().softmax(-1)
        probs[:, [PAD, BOS]] = 0.0  # never part of a translation
        # Like torch.multinomial, but without ending the run if a probability is NaN.
        tokens = (probs / torch.empty_like(probs).exponential_()).argmax(-1).masked_fill(ended, EOS)
        written.append(tokens)
        ended |= tokens == EOS
        if bool(ended.all()):
            break
    return torch.stack(written, dim=1)


def _subsets(batch: Batch, drawn: Sequence[Sequence[Tokens]], utility: Utility) -> list[Subset]:
    """Returns the reference and the distinct samples of each sentence, with their costs."""
    subsets = []
    for row, samples in zip(batch.tgt_tokens.cpu().tolist(), drawn, strict=True):
        reference = tuple(token for token in row[1:] if token not in (EOS, PAD))
        translations = list(dict.fromkeys([reference, *samples]))
        subsets.append(Subset(translations, [-utility(tokens, reference) for tokens in translations]))
    return subsets


def parts(subsets: Sequence[Subset], tokens: int) -> Iterator[slice]:
    """Splits sentences into parts within a limit of padded target tokens; a larger subset becomes a separate part."""
    start, rows, longest = 0, 0, 0
    for index, subset in enumerate(subsets):
        own = len(subset.translations)
        length = max(map(len, subset.translations)) + 2  # with BOS and EOS
        if rows and (rows + own) * max(longest, length) > tokens:
            yield slice(start, index)
            start, rows, longest = index, 0, 0
        rows, longest = rows + own, max(longest, length)
    yield slice(start, len(subsets))
