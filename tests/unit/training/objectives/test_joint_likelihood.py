"""The likelihood of both parts of a pair against the model's transcription as one sequence."""

import re

import pytest
import torch

from softsearch.data.dataset import Batch
from softsearch.errors import ConfigError
from softsearch.models.loss import CrossEntropy
from softsearch.testing.models import model_config, small_model
from softsearch.text.vocabulary import BOS, EOS, PAD
from softsearch.training.interface import TrainingStep, teacher_forcing
from softsearch.training.objectives.joint_likelihood import joint_likelihood
from tests.support.transcriptions import decoder_only
from tests.support.transcriptions.equations import Weights, softmax
from tests.support.transcriptions.whole import beside_each_other
from tests.unit.training.objectives.batches import BATCH, TOKENS, gradients

SEQUENCES = {"decoder_only": decoder_only.transformer_sequence, "decoder_only_rnn": decoder_only.rnn_sequence}


@pytest.mark.parametrize("name", SEQUENCES)
def test_is_that_of_one_sequence_without_the_first_word_and_bos(name: str) -> None:
    model, options = small_model(name), beside_each_other(model_config(name).decoder)
    w = Weights({key: value.numpy() for key, value in model.state_dict().items()}).at("decoder")
    of_source = of_target = 0.0
    for src, tgt in zip(BATCH.src_tokens.tolist(), BATCH.tgt_tokens.tolist(), strict=True):
        src, tgt = ([token for token in tokens if token != PAD] for tokens in (src, tgt))
        logits = SEQUENCES[name](w, options, decoder_only.read_source(w, options, src), tgt)
        log_probs = [softmax(row) for row in logits]
        of_source -= sum(torch.tensor(p[word]).log().item() for p, word in zip(log_probs, src[1:], strict=False))
        of_target -= sum(
            torch.tensor(p[word]).log().item() for p, word in zip(log_probs[len(src) :], tgt[1:], strict=False)
        )
    loss, tokens = joint_likelihood(TrainingStep(model, CrossEntropy(smoothing=0.0), BATCH), source_weight=0.5)
    assert int(tokens) == TOKENS
    assert loss.smoothed.item() == pytest.approx(of_target + 0.5 * of_source, abs=1e-5)
    assert loss.nll.item() == pytest.approx(of_target, abs=1e-5)


@pytest.mark.parametrize("name", SEQUENCES)
def test_without_the_source_it_is_teacher_forcing(name: str) -> None:
    model = small_model(name)
    no_words = Batch(torch.tensor([[EOS], [EOS]]), torch.tensor([[BOS, 4, EOS], [BOS, EOS, PAD]]))
    for batch, weight in ((BATCH, 0.0), (no_words, 1.0)):
        loss, tokens = joint_likelihood(TrainingStep(model, CrossEntropy(), batch), source_weight=weight)
        expected, expected_tokens = teacher_forcing(TrainingStep(model, CrossEntropy(), batch))
        assert tokens == expected_tokens
        torch.testing.assert_close(loss.smoothed, expected.smoothed)
        torch.testing.assert_close(gradients(loss.smoothed, model), gradients(expected.smoothed, model))


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny", "rnnlm"])
def test_other_models_are_refused(name: str) -> None:
    model = small_model(name)
    names = f"found {type(model.encoder).__name__} and {type(model.decoder).__name__}; set model=decoder_only"
    with pytest.raises(ConfigError, match=re.escape(names)):
        joint_likelihood(TrainingStep(model, CrossEntropy(), BATCH))
