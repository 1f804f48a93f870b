"""Inference with a PyTorch model in training: translation with the runtime's search on all processes, and the loss."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.distributed

from softsearch.data.corpora.base import TextForm
from softsearch.evaluation.metrics import Scores, corpus_scores, language_scores
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.models.interface import Seq2Seq
from softsearch.search.batching import translate_ids
from softsearch.search.interface import SearchStrategy
from softsearch.search.scoring import PairScore, score_pairs
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers

BATCH_TOKENS = 2048


class Evaluation(NamedTuple):
    """A model on a test set."""

    hypotheses: list[str]
    scores: Scores  # with "loss", the references' mean -log p of a token, among the values


def evaluate(
    model: Seq2Seq,
    tokenizers: Tokenizers,
    search: SearchStrategy,
    lines: tuple[Sequence[str], Sequence[str]],
    *,
    text_form: TextForm,
    tgt_lang: str,
) -> Evaluation:
    """Translates ``lines`` (sources, references) and scores them, for each language too where sources have tags."""
    src, tgt = ([t.encode(line) for line in side] for t, side in zip(tokenizers, lines, strict=True))
    hypotheses = translate_sources(model, tokenizers[1], search, src)
    scores = corpus_scores(hypotheses, lines[1], text_form=text_form, tgt_lang=tgt_lang)
    by_language = language_scores(hypotheses, lines, text_form=text_form)
    with evaluating(model):
        pairs = score_pairs(TorchStepFunction(model), src, tgt, batch_tokens=BATCH_TOKENS)
    values = scores.values | by_language.values | {"loss": mean_nll(pairs)}
    return Evaluation(hypotheses, Scores(values, scores.signatures | by_language.signatures))


def translate_sources(
    model: Seq2Seq, tgt_tokenizer: SentencePieceTokenizer, search: SearchStrategy, src: Sequence[Sequence[int]]
) -> list[str]:
    """Translates sources on all processes together; each returns all translations, in order."""
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
    """Mean -log p of a token of the references, EOS included, in nats; infinite where one has the probability 0."""
    return -sum(score.log_prob for score in scores) / sum(len(score.token_log_probs) for score in scores)


@contextmanager
def evaluating(model: Seq2Seq) -> Iterator[None]:
    """Puts the model into evaluation mode, and afterwards back into the mode that it was in."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
