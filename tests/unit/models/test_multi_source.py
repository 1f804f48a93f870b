"""Several sources in a line."""

from functools import partial

import pytest
import torch

from softsearch.app.config.validation import build
from softsearch.errors import ConfigError
from softsearch.models.attention import AdditiveAttention
from softsearch.models.attentional import AttentionalDecoder
from softsearch.models.cells import GRUCell
from softsearch.models.initial_state import BackwardState
from softsearch.models.luong import LuongDecoder
from softsearch.models.multi_source import find_sources
from softsearch.models.readout import Maxout
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, model_config, small_model
from softsearch.text.vocabulary import EOS, FIRST_TAG, PAD

TAG = FIRST_TAG


def encode(*lines: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, lines))
    tokens = torch.tensor([[*line, EOS] + [PAD] * (longest - len(line)) for line in lines])
    return tokens, tokens != PAD


def test_sources_end_with_a_tag_or_with_the_line() -> None:
    tokens, mask = encode([7, 8, TAG, 9], [7], [TAG, 9], [7, TAG], [7, TAG, 8, TAG, 9], [])
    sources = find_sources(tokens, mask, 2)
    found = [
        [line[begin:][own[: len(line) - begin]].tolist() for begin, own in zip(begins, masks, strict=True)]
        for line, begins, masks in zip(tokens, sources.begins.tolist(), sources.masks, strict=True)
    ]
    assert found == [
        [[7, 8, TAG], [9, EOS]],
        [[7, EOS], [EOS]],  # a source that the line lacks is empty
        [[TAG], [9, EOS]],
        [[7, TAG], [EOS]],
        [[7, TAG], [8, TAG, 9, EOS]],  # a tag too many is a token
        [[EOS], [EOS]],
    ]


def test_alignments_of_each_source_are_at_its_tokens() -> None:
    model = small_model("multi_source")
    tokens, _ = encode([7, 8, TAG, 9], [7, TAG, 8, 9, 10])
    output = model.decoder.step(torch.tensor([5, 6]), model.encode(tokens))
    assert output.alignments is not None
    first, second = output.alignments
    for source in (first[:3], first[3:5], second[:2], second[2:]):
        torch.testing.assert_close(source.sum(), torch.tensor(0.5, dtype=torch.float64))


def test_words_of_one_source_do_not_depend_on_the_other() -> None:
    model = small_model("multi_source")
    states = [model.encoder(*encode(line)).states[0] for line in ([7, TAG, 9], [7, TAG, 10, 11])]
    torch.testing.assert_close(states[0][:2], states[1][:2])
    assert (states[0][2] - states[1][2]).abs().max() > 1e-3


def test_any_decoder_attends_to_all_sources_at_once() -> None:
    config = model_config("multi_source")
    options = {"cell": GRUCell, "hidden_dim": 6, "initial_state": BackwardState}
    options |= {"attention": partial(AdditiveAttention, dim=5), "readout": partial(Maxout, dim=8)}
    parts = build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
    encoder = parts.encoder.description
    model = Seq2Seq(
        src_vocab_size=SRC_VOCAB,
        tgt_vocab_size=TGT_VOCAB,
        embeddings=lambda **_: build(config.embeddings)(src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB),
        encoder=build(config.encoder),
        decoder=partial(AttentionalDecoder, **options),
    )
    assert encoder.output_dim == 2 * encoder.source_dims[0]
    tokens, _ = encode([7, 8, TAG, 9])
    alignments = model.decoder.step(torch.tensor([5]), model.encode(tokens)).alignments
    assert alignments is not None
    assert alignments.min() > 0


def test_a_decoder_of_several_sources_refuses_an_encoder_of_one() -> None:
    config = model_config("multi_source").copy()
    config.encoder = config.encoder.encoder
    with pytest.raises(ConfigError, match=r"MultiSourceDecoder.*but model\.encoder reads one; set model\.encoder to"):
        build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)


def test_features_alone_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"reads feature vectors alone \(num_sources=1\); set model\.encoder\.num_sources=2"
    ):
        small_model("multi_source", "model.encoder.feature_dim=6", "model.encoder.num_sources=1")


def test_a_decoder_of_one_attention_reads_several_sources() -> None:
    config = model_config("multi_source", f"model.decoder._target_={LuongDecoder.__module__}.LuongDecoder")
    model = build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
    assert model(encode([7, TAG, 9])[0], torch.tensor([[2, 5]])).isfinite().all()
