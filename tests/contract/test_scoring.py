"""Forced decoding step by step gives every model the loss that training computes at once."""

import numpy as np
import pytest
import torch

from softsearch.data.dataset import pad
from softsearch.evaluation.inference import TorchStepFunction, mean_nll
from softsearch.models.loss import CrossEntropy
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.forced_decoding import score_pairs
from softsearch.testing.models import TGT_VOCAB, small_model
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import PAD
from tests.support.models import every_model

SOURCES = ["abc def", "g", "", "fed cba abc"]
TARGETS = ["fed", "abc g", "d", ""]


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    return train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)


@pytest.mark.parametrize("case", every_model())
def test_scores_are_the_training_loss(case: tuple[str, ...], tokenizer: SentencePieceTokenizer) -> None:
    model = small_model(*case)
    src, tgt = ([tokenizer.encode(line) for line in lines] for lines in (SOURCES, TARGETS))
    found = score_pairs(TorchStepFunction(model), src, tgt, batch_tokens=20)
    assert mean_nll(found) == pytest.approx(training_loss(model, src, tgt), rel=1e-5)
    assert -np.mean(found[0].token_log_probs) == pytest.approx(training_loss(model, src[:1], tgt[:1]), rel=1e-5)


@torch.no_grad()
def training_loss(model: Seq2Seq, src: list[list[int]], tgt: list[list[int]]) -> float:
    src_tokens, tgt_tokens = (
        pad([np.array(ids, dtype=np.int64) for ids in src]),
        pad([np.array(ids, dtype=np.int64) for ids in tgt], bos=True),
    )
    targets = tgt_tokens[:, 1:]
    real = targets != PAD
    features = model.features(src_tokens, tgt_tokens[:, :-1])
    loss = CrossEntropy(smoothing=0.0)(features[real], targets[real], model.decoder.output_projection)
    return float(loss.nll) / int(real.sum())
