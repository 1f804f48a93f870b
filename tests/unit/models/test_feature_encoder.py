"""Feature vectors and the models that read them."""

import pytest
import torch

from softsearch.app.config.validation import build
from softsearch.errors import ConfigError
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, model_config
from softsearch.text.vocabulary import BOS, EOS, FIRST_TAG

SRC = torch.tensor([[FIRST_TAG] * 3 + [EOS]])
TGT = torch.tensor([[BOS, 5]])
FEATURES = torch.randn(1, 4, 6, generator=torch.Generator().manual_seed(1))


def model(*overrides: str) -> Seq2Seq:
    made: Seq2Seq = build(
        model_config("show_attend_tell", *overrides), src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB
    )
    return made.eval()


def test_annotations_are_the_vectors_and_eos_is_not_attended_to() -> None:
    captioner = model()
    state = captioner.encode(SRC, FEATURES)
    assert state.memory.mask.tolist() == [[True, True, True, False]]
    assert torch.equal(state.memory.states[:, :3], FEATURES[:, :3])
    alignments = captioner.decoder.step(TGT[:, 0], state).alignments
    assert alignments is not None
    assert alignments[0, 3] == 0
    other = FEATURES.clone()
    other[:, 3] = 7
    assert torch.equal(captioner(SRC, TGT, other), captioner(SRC, TGT, FEATURES))


def test_data_of_another_kind_is_refused() -> None:
    captioner, translator = (
        model(),
        build(model_config("rnnsearch"), src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB),
    )
    with pytest.raises(ConfigError, match=r"FeatureEncoder, which reads feature vectors of 6 values.*data has text"):
        captioner(SRC, TGT)
    with pytest.raises(ConfigError, match=r"vectors of 6 values .* data has feature vectors of 5 values; change"):
        captioner(SRC, TGT, FEATURES[..., :5])
    with pytest.raises(ConfigError, match=r"RecurrentEncoder, which reads text alone .*data has feature vectors of 6"):
        translator(SRC, TGT, FEATURES)


def test_the_decoder_of_nematus_reads_vectors_too() -> None:
    config = model_config("nematus").copy()
    config.encoder = model_config("show_attend_tell").encoder
    config.embeddings.tie = "output"
    captioner = build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
    assert captioner(SRC, TGT, FEATURES).shape == (1, 2, TGT_VOCAB)


def test_a_decoder_that_needs_a_final_state_refuses_vectors() -> None:
    config = model_config("rnnsearch").copy()
    config.encoder = model_config("show_attend_tell").encoder
    config.embeddings.tie = "output"
    with pytest.raises(
        ConfigError, match=r"model\.decoder starts from the encoder's last state, but model\.encoder has"
    ):
        build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
