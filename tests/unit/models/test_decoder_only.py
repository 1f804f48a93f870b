"""Decoder-only models: what they share, hold and refuse; tests/contract/test_transcriptions.py has their equations."""

from typing import Any

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.models.cells import GRUCell
from softsearch.models.decoder_only import DecoderOnlyRNN, DecoderOnlyTransformer, SourceEmbeddings, source_alignments
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderDescription
from softsearch.models.positions import Positions
from softsearch.testing.models import small_model

DIM = 8
DECODERS = [
    (DecoderOnlyTransformer, {"num_layers": 2, "d_ff": 12, "num_heads": 2}),
    (DecoderOnlyRNN, {"num_layers": 2, "hidden_dim": DIM, "cell": GRUCell}),
]
SRC = torch.tensor([[4, 5, 3], [6, 3, 0]])


def embeddings(tie: Any = "all") -> Embeddings:
    return Embeddings(src_vocab_size=9, tgt_vocab_size=9, dim=DIM, tie=tie)


@pytest.mark.parametrize(("decoder", "options"), DECODERS)
def test_two_embedding_matrices_are_refused(decoder: Any, options: dict[str, Any]) -> None:
    message = r"source and target with one matrix, found model.embeddings.tie=output; set model.embeddings.tie=all"
    with pytest.raises(ConfigError, match=message):
        decoder(embeddings=embeddings("output"), encoder=EncoderDescription(DIM), **options)


@pytest.mark.parametrize(("decoder", "options"), DECODERS)
def test_an_encoder_of_another_width_is_refused(decoder: Any, options: dict[str, Any]) -> None:
    message = r"states of 10 units .* model.embeddings.dim=8; set model.encoder._target_=softsearch.*SourceEmbeddings"
    with pytest.raises(ConfigError, match=message):
        decoder(embeddings=embeddings(), encoder=EncoderDescription(10), **options)


@pytest.mark.parametrize("name", ["decoder_only", "decoder_only_rnn"])
def test_all_parameters_are_the_decoders(name: str) -> None:
    model = small_model(name)
    ids = [id(parameter) for parameters in model.parts().values() for parameter in parameters]
    assert len(ids) == len(set(ids)) == len(list(model.parameters()))
    assert set(ids) == {id(parameter) for parameter in model.decoder.parameters()}
    assert "encoder" not in model.parts()


def test_the_source_is_kept_once_for_all_beams() -> None:
    matrices = embeddings()
    decoder = DecoderOnlyTransformer(embeddings=matrices, encoder=EncoderDescription(DIM), **DECODERS[0][1])
    state = decoder.init_state(SourceEmbeddings(embedding=matrices.src)(SRC, SRC != 0))
    state = state.select(torch.tensor([0, 0, 0, 1, 1, 1]))
    for length in range(3):
        slots = 3 + 3 * length
        assert [tuple(s.shape) for s in state.slots] == [(2, 2, slots, 4)] * 4
        assert [tuple(c.shape) for c in state.cache] == [(6, slots)]
        state = decoder.step(torch.full((6,), 4), state).state


def test_positions_run_on_behind_the_real_source(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(positions: Positions, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        seen.append(position.tolist())
        return embed(positions, x, position)

    model, embed = small_model("decoder_only"), Positions.forward
    monkeypatch.setattr(Positions, "forward", spy)
    model(SRC, torch.full((2, 4), 5))
    state = model.encode(SRC).select(torch.tensor([0, 0, 1, 1]))
    model.decoder.step(torch.full((4,), 5), model.decoder.step(torch.full((4,), 5), state).state)
    of_target = [position for position in seen if position != [0, 1, 2]]
    assert of_target == [[[3, 4, 5, 6], [2, 3, 4, 5]], [3, 3, 2, 2], [4, 4, 3, 3]]


def test_alignments_of_no_attention_to_the_source_are_numbers() -> None:
    weights = torch.tensor([[0.2, 0.3], [0.0, 0.0], [1e-30, 0.0]])
    torch.testing.assert_close(source_alignments(weights)[:2], torch.tensor([[0.4, 0.6], [0.0, 0.0]]))
    assert source_alignments(weights).isfinite().all()
