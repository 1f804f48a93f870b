"""Forced decoding step by step gives every model the loss that training computes at once."""

import numpy as np
import pytest

from softsearch.evaluation.inference import reference_nll
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.search.scoring import score_pairs
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import EOS
from tests.contract.models import TGT_VOCAB, every_model, small_model

SOURCES = ["abc def", "g", "", "fed cba abc"]
TARGETS = ["fed", "abc g", "d", ""]


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    return train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)


@pytest.mark.parametrize("case", every_model())
def test_scores_are_the_training_loss(case: tuple[str, ...], tokenizer: SentencePieceTokenizer) -> None:
    model = small_model(*case)
    src, tgt = ([tokenizer.encode(line) for line in lines] for lines in (SOURCES, TARGETS))
    found = score_pairs(TorchStepFunction(model), [[*ids, EOS] for ids in src], tgt, batch_tokens=20)
    nll = -sum(pair.log_prob for pair in found) / sum(len(pair.token_log_probs) for pair in found)
    assert nll == pytest.approx(reference_nll(model, src, tgt), rel=1e-5)
    alone = reference_nll(model, src[:1], tgt[:1])
    assert -np.mean(found[0].token_log_probs) == pytest.approx(alone, rel=1e-5)
