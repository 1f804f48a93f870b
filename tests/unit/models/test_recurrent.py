"""Recurrent encoders and decoders that do not fit; tests/contract/test_transcriptions.py has their equations."""

from typing import Any, cast

import pytest
import torch
from torch import nn

from softsearch.errors import ConfigError
from softsearch.models.cells import ElmanCell, GRUCell, LSTMCell
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderDescription, LayerShape
from softsearch.models.recurrent import EncoderDecoder, NoSource, RecurrentDecoder, RecurrentEncoder
from softsearch.testing.models import model_config, random_model
from tests.support.models import varied

VOCAB, HIDDEN = 11, 4


def embeddings(src_vocab_size: int = VOCAB, tgt_vocab_size: int = VOCAB) -> Embeddings:
    return Embeddings(src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, dim=3)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            (LayerShape(4), LayerShape(4)),
            "end with 4 units in 1 state.*, 4 units in 1 .*, expected 4 units in 1 .* decoder's 1 lay",
        ),
        (
            (LayerShape(4, num_states=2),),
            r"end with 4 units in 2 state.* expected 4 units in 1 .* 1 layers \(GRUCell\)",
        ),
        ((LayerShape(4, directions=2),), "end with 8 units in 1 state.*, expected 4 units"),
    ],
)
def test_states_that_do_not_fit_are_refused(layers: tuple[LayerShape, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RecurrentDecoder(
            embeddings=embeddings(), encoder=EncoderDescription(8, layers), cell=GRUCell, hidden_dim=HIDDEN
        )


def test_an_odd_width_is_not_shared_by_two_directions() -> None:
    sizes = {"src_vocab_size": VOCAB, "tgt_vocab_size": VOCAB, "hidden_dim": 5}
    with pytest.raises(ConfigError, match="hidden_dim is 5, expected an even number"):
        EncoderDecoder(embeddings=embeddings, cell=ElmanCell, bidirectional=True, **sizes)


def test_dropout_stays_off_the_recurrent_connections() -> None:
    """With everything dropped but the recurrence, a layer still hands its own state on (Zaremba et al. 2014)."""
    torch.manual_seed(0)
    lengths = (4, 2, 5)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    encoder = RecurrentEncoder(
        embedding=nn.Embedding(VOCAB, 3), cell=ElmanCell, hidden_dim=HIDDEN, bidirectional=False, dropout=0.99
    )
    cell = cast(Any, encoder.layers[0]).forward_cell
    nn.init.eye_(cell.recurrent_weight)
    nn.init.ones_(cell.input_projection.bias)
    (last,) = encoder(torch.full(mask.shape, 4) * mask, mask).final[0].forward
    plain, h = torch.zeros(len(lengths)), torch.zeros(())
    for step in range(max(lengths)):
        h = torch.tanh(1 + h)
        for row, length in enumerate(lengths):
            plain[row] = h if step == length - 1 else plain[row]
    assert ((last - plain[:, None]).abs() < 0.5).float().mean() > 0.8  # nearly all inputs are dropped, no state is


def test_a_language_model_starts_from_zeros() -> None:
    encoder = NoSource(embedding=nn.Embedding(VOCAB, 3))
    assert list(encoder.parameters()) == []
    decoder = RecurrentDecoder(embeddings=embeddings(), encoder=encoder.description, cell=LSTMCell, hidden_dim=HIDDEN)
    src = torch.tensor([[4, 3], [3, 0]])
    state = decoder.init_state(encoder(src, src != 0))
    assert [tensor.shape for tensor in state.cache] == [(2, HIDDEN)] * 2
    assert all(bool((tensor == 0).all()) for tensor in state.cache)
    assert decoder.step(torch.tensor([4, 5]), state).alignments is None


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("nematus_deep", ["encoder.cell.recurrent_dropout=0.5", "decoder.cell.recurrent_dropout=0.5"]),
        ("lstm", ["+cell.recurrent_dropout=0.5", "+cell.transition_depth=2"]),
        ("rnnlm", ["+decoder.cell.recurrent_dropout=0.5"]),
    ],
)
def test_the_masks_of_a_sequence_are_part_of_its_state(name: str, options: list[str]) -> None:
    """So that teacher forcing and steps drop the same units of the state, whichever rows are kept."""
    config = varied(model_config(name), options)
    model = random_model(config)
    src, tgt = torch.tensor([[5, 6, 3], [7, 3, 0]]), torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10]])
    undropped = model(src, tgt)
    state = model.train().encode(src)
    forced = model.decoder(tgt, state)
    assert (forced - undropped).abs().max() > 1e-3
    rows = torch.tensor([0, 0, 1, 1])  # two hypotheses for each sentence
    stepped = state.select(rows)
    for position in range(tgt.shape[1]):
        output = model.decoder.step(tgt[rows, position], stepped)
        torch.testing.assert_close(output.logits, forced[rows, position])
        stepped = output.state
