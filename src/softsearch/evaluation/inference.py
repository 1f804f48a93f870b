"""Inference with a model in training: translation by the runtime's search on all processes, scores and loss."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed

from softsearch.evaluation.metrics import Metric, Scores, corpus_scores, for_text, with_languages
from softsearch.evaluation.test_set import HeldOutText
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.models.interface import Seq2Seq
from softsearch.search.batching import translate_ids
from softsearch.search.forced_decoding import PairScore, score_pairs
from softsearch.search.interface import SearchStrategy
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers

BATCH_TOKENS = 2048  # the most source tokens, padding included, that are searched or scored at once


def evaluate(
    model: Seq2Seq,
    tokenizers: Tokenizers,
    search: SearchStrategy,
    text: HeldOutText,
    metrics: Mapping[str, Metric],
) -> tuple[list[str], Scores]:
    """Translates ``text``; returns the translations and their scores for ``metrics.json``."""
    src, tgt = text.encode(tokenizers)
    hypotheses = translate_sources(model, tokenizers[1], search, src)
    with evaluating(model):
        loss = mean_nll(score_pairs(TorchStepFunction(model), src, tgt, batch_tokens=BATCH_TOKENS))
    scores = corpus_scores(for_text(metrics, text.text_form, text.tgt_lang), hypotheses, text.references)
    return hypotheses, with_languages(scores, hypotheses, text, loss, metrics)


def translate_sources(
    model: Seq2Seq, tgt_tokenizer: SentencePieceTokenizer, search: SearchStrategy, src: Sequence[Sequence[int]]
) -> list[str]:
    """Translates sources, shared out among the processes; returns all translations in order, on every process."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank, world_size = (torch.distributed.get_rank(), torch.distributed.get_world_size()) if distributed else (0, 1)
    with evaluating(model):
        n_best_lists = translate_ids(TorchStepFunction(model), search, src[rank::world_size], batch_tokens=BATCH_TOKENS)
    own = [tgt_tokenizer.decode(n_best[0].tokens) for n_best in n_best_lists]
    if not distributed:
        return own
    shares: list[Any] = [None] * world_size
    torch.distributed.all_gather_object(shares, own)
    translations = [""] * len(src)
    for start, texts in enumerate(shares):
        translations[start::world_size] = texts
    return translations


def mean_nll(scores: Sequence[PairScore]) -> float:
    """Mean -log p of a reference token, EOS included, in nats; infinite if one has the probability 0."""
    return -sum(score.log_prob for score in scores) / sum(len(score.token_log_probs) for score in scores)


@contextmanager
def evaluating(model: Seq2Seq) -> Iterator[None]:
    """Puts the model into evaluation mode, and restores its mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
