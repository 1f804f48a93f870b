"""Translating and scoring with a PyTorch model: the runtime's own search, shared out over the training processes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed

from softsearch.data.batch import Batch, Batching, pad
from softsearch.data.corpora.base import TextForm
from softsearch.evaluation.metrics import Scores, corpus_scores
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.models.interface import Seq2Seq
from softsearch.models.loss import CrossEntropy
from softsearch.search.batching import translate_ids
from softsearch.search.interface import SearchStrategy
from softsearch.text.tokenizer import Tokenizer
from softsearch.text.vocabulary import EOS, LANGUAGE_TAG, PAD

BATCH_TOKENS = 2048


class Evaluation(NamedTuple):
    """A system on a test set."""

    hypotheses: list[str]
    scores: Scores  # with "loss", the references' mean -log p of a token, among the values


def evaluate(
    model: Seq2Seq,
    tokenizers: tuple[Tokenizer, Tokenizer],
    search: SearchStrategy,
    lines: tuple[Sequence[str], Sequence[str]],
    *,
    text_form: TextForm,
    tgt_lang: str,
) -> Evaluation:
    """Translates ``lines`` (sources, references) and scores them, for each language too where sources have tags."""
    hypotheses = translate_lines(model, tokenizers, search, lines[0])
    scores = score_lines(hypotheses, lines, text_form=text_form, tgt_lang=tgt_lang)
    scores.values["loss"] = reference_nll(model, tokenizers, lines)
    return Evaluation(hypotheses, scores)


def score_lines(
    hypotheses: Sequence[str], lines: tuple[Sequence[str], Sequence[str]], *, text_form: TextForm, tgt_lang: str
) -> Scores:
    """Scores translations of ``lines`` (sources, references), for each language too where sources have tags."""
    values, signatures = corpus_scores(hypotheses, lines[1], text_form=text_form, tgt_lang=tgt_lang)
    for lang, places in _by_language(lines[0]).items():
        sides = ([side[i] for i in places] for side in (hypotheses, lines[1]))
        part = corpus_scores(*sides, text_form=text_form, tgt_lang=lang)
        values |= {f"{lang}/{name}": value for name, value in part.values.items()}
        signatures |= {f"{lang}/{name}": text for name, text in part.signatures.items()}
    return Scores(values, signatures)


def _by_language(sources: Sequence[str]) -> dict[str, list[int]]:
    """The places of the sources for each language that their tags ask for; nothing unless there are several."""
    places: dict[str, list[int]] = {}
    for place, source in enumerate(sources):
        if tag := LANGUAGE_TAG.match(source):
            places.setdefault(tag[1], []).append(place)
    return places if len(places) > 1 else {}


def translate_lines(
    model: Seq2Seq,
    tokenizers: tuple[Tokenizer, Tokenizer],
    search: SearchStrategy,
    lines: Sequence[str],
) -> list[str]:
    """Translates ``lines`` on all processes together; each returns all translations, in order."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank = torch.distributed.get_rank() if distributed else 0
    world_size = torch.distributed.get_world_size() if distributed else 1
    src_tokenizer, tgt_tokenizer = tokenizers
    mine = [[*src_tokenizer.encode(line), EOS] for line in lines[rank::world_size]]
    with evaluating(model):
        found = translate_ids(TorchStepFunction(model), search, mine, batch_tokens=BATCH_TOKENS)
    best = [tgt_tokenizer.decode(n_best[0].tokens) for n_best in found]
    if not distributed:
        return best
    shares: list[Any] = [None] * world_size
    torch.distributed.all_gather_object(shares, best)
    translations = [""] * len(lines)
    for start, share in enumerate(shares):
        translations[start::world_size] = share
    return translations


@torch.inference_mode()
def reference_nll(
    model: Seq2Seq, tokenizers: tuple[Tokenizer, Tokenizer], lines: tuple[Sequence[str], Sequence[str]]
) -> float:
    """Mean -log p of a target token of the references, EOS included, in nats."""
    src, tgt = ([np.asarray(t.encode(x)) for x in side] for t, side in zip(tokenizers, lines, strict=True))
    lengths = [np.array([len(ids) + 1 for ids in side]) for side in (src, tgt)]
    loss, device = CrossEntropy(smoothing=0.0), next(model.parameters()).device
    total, tokens = 0.0, 0
    with evaluating(model):
        for indices in Batching(tokens=max(BATCH_TOKENS, *map(max, lengths))).cut(*lengths):
            batch = Batch(pad([src[i] for i in indices]), pad([tgt[i] for i in indices], bos=True))
            src_tokens, tgt_tokens = (tensor.to(device) for tensor in batch)
            targets = tgt_tokens[:, 1:]
            real = targets != PAD
            features = model.features(src_tokens, tgt_tokens[:, :-1])
            total += float(loss(features[real], targets[real], model.decoder.output).nll)
            tokens += int(real.sum())
    return total / tokens


@contextmanager
def evaluating(model: Seq2Seq) -> Iterator[None]:
    """The model in evaluation mode, and afterwards in the mode that it was in."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
