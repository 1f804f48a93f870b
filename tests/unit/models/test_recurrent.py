"""Recurrent encoders and encoder-decoders against plain loops over layers and words."""

from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.cells import Cell
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderOutput, LastState, LayerShape, Seq2Seq
from softsearch.models.recurrent import EncoderDecoder, NoSource, RecurrentDecoder, RecurrentEncoder

LENGTHS = (4, 2, 5)
VOCAB, DIM, HIDDEN = 11, 3, 4
KINDS = ["rnn", "lstm", "gru"]


@pytest.fixture
def mask() -> Tensor:
    return torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


@pytest.fixture
def src_tokens(mask: Tensor) -> Tensor:
    tokens = torch.randint(4, VOCAB, mask.shape, generator=torch.Generator().manual_seed(1))
    return tokens * mask


def randomise(module: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double().eval()


def embeddings(src_vocab_size: int, tgt_vocab_size: int) -> Embeddings:
    return Embeddings(src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, dim=DIM)


def make(cell: Any, **options: Any) -> Seq2Seq:
    model = EncoderDecoder(
        src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, embeddings=embeddings, cell=cell, hidden_dim=HIDDEN, **options
    )
    return cast(Seq2Seq, randomise(model))


def scan(cell: Cell, words: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    outputs = []
    for word in words:
        state = cell(cell.input(word), state)
        outputs.append(state[0])
    return torch.stack(outputs), state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_encoder_equals_loops(kind: Any, bidirectional: bool, src_tokens: Tensor, mask: Tensor) -> None:
    embedding = nn.Embedding(VOCAB, DIM)
    encoder = RecurrentEncoder(
        embedding=embedding, cell=kind, hidden_dim=HIDDEN, num_layers=2, bidirectional=bidirectional
    )
    randomise(encoder)
    encoded = encoder(src_tokens, mask)
    assert encoded.states.shape == (*mask.shape, encoder.output_dim)
    assert encoder.final_shapes == (LayerShape(HIDDEN, 1 + bidirectional, has_c=kind == "lstm"),) * 2
    for sentence, length in enumerate(LENGTHS):
        x = embedding(src_tokens[sentence, :length])
        for layer, final in zip(encoder.layers, encoded.final, strict=True):
            sides = []
            assert (final.backward is not None) == bidirectional
            for direction, cell in enumerate(cast(Any, layer).cells):
                zero = (torch.zeros(HIDDEN, dtype=torch.float64),) * cell.num_states
                outputs, last = scan(cell, x.flip(0) if direction else x, zero)
                sides.append(outputs.flip(0) if direction else outputs)
                found = cast(LastState, final[direction])
                assert (found.c is not None) == (kind == "lstm")
                for tensor, expected in zip(found, last, strict=False):
                    torch.testing.assert_close(cast(Tensor, tensor)[sentence], expected)
            x = torch.cat(sides, dim=-1)
        torch.testing.assert_close(encoded.states[sentence, :length], x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_encoders_last_states_start_the_decoder(
    kind: Any, bidirectional: bool, src_tokens: Tensor, mask: Tensor
) -> None:
    """Layer by layer: its directions joined, h with h and c with c."""
    model = make(kind, num_layers=2, bidirectional=bidirectional)
    final = model.encoder(src_tokens, mask).final
    cache = model.encode(src_tokens).cache
    kinds = 2 if kind == "lstm" else 1
    assert len(cache) == 2 * kinds
    for layer, last in enumerate(final):
        for k in range(kinds):
            sides = [direction[k] for direction in last if direction is not None]
            torch.testing.assert_close(cache[layer * kinds + k], torch.cat(sides, dim=-1))


@pytest.mark.parametrize("kind", KINDS)
def test_decoder_equals_loops(kind: Any, src_tokens: Tensor) -> None:
    model = make(kind, num_layers=2)
    decoder = cast(Any, model.decoder)
    tgt_tokens = torch.randint(4, VOCAB, (len(LENGTHS), 3), generator=torch.Generator().manual_seed(2))
    state = model.encode(src_tokens)
    found = model(src_tokens, tgt_tokens)
    for row, tokens in enumerate(tgt_tokens):
        x, tensors = decoder.embedding(tokens), [tensor[row] for tensor in state.cache]
        for layer in decoder.layers:
            start, tensors = tuple(tensors[: decoder.num_states]), tensors[decoder.num_states :]
            x, _ = scan(layer.cell, x, start)
        torch.testing.assert_close(found[row], x @ decoder.output.weight.T + decoder.output.bias)


def test_states_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="end with 4 units, 4 units, expected 4 units for each of the decoder's 1 layers"
    ):
        RecurrentDecoder(
            embedding=nn.Embedding(VOCAB, DIM),
            make_output=lambda width: nn.Linear(width, VOCAB),
            memory_dim=8,
            final_shapes=(LayerShape(4), LayerShape(4)),
            cell="gru",
            hidden_dim=HIDDEN,
        )


def test_an_odd_width_is_not_shared_by_two_directions() -> None:
    with pytest.raises(ConfigError, match="hidden_dim is 5, expected an even number"):
        EncoderDecoder(
            src_vocab_size=VOCAB,
            tgt_vocab_size=VOCAB,
            embeddings=embeddings,
            cell="rnn",
            hidden_dim=5,
            bidirectional=True,
        )


def test_dropout_stays_off_the_recurrent_connections(src_tokens: Tensor, mask: Tensor) -> None:
    """With everything dropped but the recurrence, a layer still hands its own state on (Zaremba et al. 2014)."""
    torch.manual_seed(0)
    encoder = RecurrentEncoder(
        embedding=nn.Embedding(VOCAB, DIM), cell="rnn", hidden_dim=HIDDEN, bidirectional=False, dropout=0.99
    )
    layer = cast(Any, encoder.layers[0])
    nn.init.eye_(layer.cell.recurrent)
    nn.init.ones_(layer.cell.input.bias)
    last = encoder(src_tokens, mask).final[0].forward.h
    plain, h = torch.zeros(len(LENGTHS)), torch.zeros(())
    for step in range(max(LENGTHS)):
        h = torch.tanh(1 + h)
        for row, length in enumerate(LENGTHS):
            plain[row] = h if step == length - 1 else plain[row]
    assert ((last - plain[:, None]).abs() < 0.5).float().mean() > 0.8  # nearly all inputs are dropped, no state is


def test_a_language_model_starts_from_zeros(src_tokens: Tensor, mask: Tensor) -> None:
    embedding = nn.Embedding(VOCAB, DIM)
    encoder = NoSource(embedding=embedding)
    assert list(encoder.parameters()) == []
    decoder = RecurrentDecoder(
        embedding=embedding,
        make_output=lambda width: nn.Linear(width, VOCAB),
        memory_dim=encoder.output_dim,
        final_shapes=encoder.final_shapes,
        cell="lstm",
        hidden_dim=HIDDEN,
    )
    encoded: EncoderOutput = encoder(src_tokens, mask)
    state = decoder.init_state(encoded)
    assert [tensor.shape for tensor in state.cache] == [(len(LENGTHS), HIDDEN)] * 2
    assert all(bool((tensor == 0).all()) for tensor in state.cache)
    assert decoder.step(torch.tensor([4, 5, 6]), state).alignments is None
