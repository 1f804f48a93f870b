"""Erased annotations, against steps of the decoder."""

import pytest
import torch

from softsearch.extras.claims.analyses.erasure import erased_log_probs
from softsearch.models.interface import DecoderState
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import BOS, EOS, UNK

SRC, TGT = torch.tensor([[5, 6, 7, 8, EOS]]), torch.tensor([[BOS, 9, 10, EOS]])
WORDS = [range(2), range(2, 3), range(3, 4)]


def log_probs(model: Seq2Seq, state: DecoderState, unseen: range = range(0)) -> list[float]:
    found = []
    for read, target in zip(TGT[0, :-1], TGT[0, 1:], strict=True):
        logits, alignments, state = model.decoder.step(read[None], state)
        assert alignments is not None
        assert alignments[0, list(unseen)].sum() == 0
        found.append(float(logits.log_softmax(-1)[0, target]))
    return found


@torch.no_grad()
@pytest.mark.parametrize("name", ["rnnsearch", "nematus", "transformer_tiny"])
def test_an_erased_annotation_gets_no_attention_and_an_erased_word_is_unknown(name: str) -> None:
    model = small_model(name, seed=2)
    drops = erased_log_probs(model, SRC, TGT, WORDS)
    usual = log_probs(model, model.encode(SRC))
    for row, word in enumerate(WORDS):
        encoded, unknown = model.read_source(SRC), SRC.clone()
        mask = encoded.mask.clone()
        mask[0, list(word)] = False
        unknown[0, list(word)] = UNK
        hidden = log_probs(model, model.decoder.init_state(encoded._replace(mask=mask)), word)
        for erased, found in (("annotation", hidden), ("word", log_probs(model, model.encode(unknown)))):
            expected = [a - b for a, b in zip(usual, found, strict=True)]
            assert drops[erased][row].tolist() == pytest.approx(expected, abs=1e-5)
