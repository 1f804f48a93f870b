"""RNNsearch against the appendix of Bahdanau et al. 2015, written out in NumPy."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderOutput, LastState, LastStates, LayerShape
from softsearch.models.recurrent import RecurrentEncoder
from softsearch.models.rnnsearch import RNNsearchDecoder
from tests.unit.models.test_attention import paper_additive
from tests.unit.models.test_cells import paper_gru

Array = NDArray[np.float64]
LENGTHS = (4, 2, 5)
INPUT, HIDDEN, VOCAB, MAXOUT = 3, 4, 11, 5


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def randomise(module: nn.Module) -> None:
    """Random values for every parameter, so that no bias is zero."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)


@pytest.fixture
def mask() -> Tensor:
    return torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


@pytest.fixture
def decoder() -> RNNsearchDecoder:
    parts = Embeddings(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, dim=INPUT)
    decoder = RNNsearchDecoder(
        embedding=parts.tgt,
        make_output=parts.make_output,
        memory_dim=2 * HIDDEN,
        final_shapes=(LayerShape(HIDDEN, directions=2),),
        hidden_dim=6,
        attention_dim=7,
        maxout_dim=MAXOUT,
    ).double()
    randomise(decoder)
    return decoder


@pytest.fixture
def encoded(mask: Tensor) -> EncoderOutput:
    sentences, src_len = mask.shape
    final = LastStates(*(LastState(normal(sentences, HIDDEN, seed=seed)) for seed in (2, 3)))
    return EncoderOutput(normal(sentences, src_len, 2 * HIDDEN, seed=1), mask, (final,))


def test_start_reads_the_backward_state_at_the_first_word(decoder: RNNsearchDecoder, encoded: EncoderOutput) -> None:
    W_s, b_s = decoder.start.weight.detach().numpy(), decoder.start.bias.detach().numpy()
    state = decoder.init_state(encoded)
    backward = encoded.final[0].backward
    assert backward is not None
    for sentence, back in enumerate(backward.h.numpy()):
        expected = np.tanh(W_s @ back + b_s)
        np.testing.assert_allclose(state.cache[0][sentence].detach().numpy(), expected, atol=1e-12)
    assert state.position.tolist() == [0, 0, 0]


def test_step_equals_the_paper(decoder: RNNsearchDecoder, encoded: EncoderOutput) -> None:
    tokens = torch.tensor([4, 9, 7])
    state = decoder.init_state(encoded)
    output = decoder.step(tokens, state)
    for row, token in enumerate(tokens.tolist()):
        annotations = encoded.states[row, : LENGTHS[row]].numpy()
        s = state.cache[0][row].detach().numpy()
        logits, alpha, after = paper_step(decoder, token, s, annotations)
        np.testing.assert_allclose(output.logits[row].detach().numpy(), logits, atol=1e-11)
        np.testing.assert_allclose(output.alignments[row, : LENGTHS[row]].detach().numpy(), alpha, atol=1e-12)
        np.testing.assert_allclose(output.state.cache[0][row].detach().numpy(), after, atol=1e-12)
    assert output.state.position.tolist() == [1, 1, 1]


def paper_step(decoder: RNNsearchDecoder, token: int, s: Array, annotations: Array) -> tuple[Array, Array, Array]:
    """Appendix A.2.2: look, generate from s_{i-1}, update; returns logits, alpha_i and s_i."""
    weight = {name: parameter.detach().numpy() for name, parameter in decoder.named_parameters()}
    Ey = weight["embedding.weight"][token]
    c, alpha = paper_additive(decoder.attention, s, annotations)
    t = weight["maxout_state.weight"] @ s + weight["maxout_embedding.weight"] @ Ey + weight["maxout_context.weight"] @ c
    t = t + weight["maxout_embedding.bias"]
    pooled = np.array([max(t[2 * j], t[2 * j + 1]) for j in range(MAXOUT)])
    logits = weight["output.weight"] @ pooled + weight["output.bias"]
    # The cell's input W E y is a linear map of the embedding; C c joins it in all three of z, r and the candidate.
    joined = nn.Linear(len(Ey) + len(c), 3 * len(s)).double()
    with torch.no_grad():
        joined.weight.copy_(torch.from_numpy(np.hstack((weight["cell.input.weight"], weight["cell_context.weight"]))))
        joined.bias.copy_(decoder.cell.input.bias)
    cell, decoder_input = decoder.cell, decoder.cell.input
    cell.input = joined
    after = paper_gru(cell, np.concatenate((Ey, c))[None], s[None])[0]
    cell.input = decoder_input
    return logits, alpha, after


def test_features_are_what_the_output_layer_reads(decoder: RNNsearchDecoder, encoded: EncoderOutput) -> None:
    tokens = torch.randint(4, VOCAB, (len(LENGTHS), 3), generator=torch.Generator().manual_seed(1))
    state = decoder.init_state(encoded)
    features = decoder.features(tokens, state)
    assert features.shape == (len(LENGTHS), 3, MAXOUT)
    torch.testing.assert_close(decoder.output(features)[:, 0], decoder.step(tokens[:, 0], state).logits)


def test_states_stay_precise_under_autocast(mask: Tensor) -> None:
    """In bfloat16 a state would round its small changes away."""
    parts = Embeddings(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, dim=INPUT)
    encoder = RecurrentEncoder(embedding=parts.src, cell="gru", hidden_dim=HIDDEN)
    decoder = RNNsearchDecoder(
        embedding=parts.tgt,
        make_output=parts.make_output,
        memory_dim=2 * HIDDEN,
        final_shapes=encoder.final_shapes,
        hidden_dim=6,
        attention_dim=7,
        maxout_dim=MAXOUT,
    )
    tokens = torch.full(mask.shape, 4)
    exact = decoder.step(tokens[:, 0], decoder.init_state(encoder(tokens, mask))).state.cache[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoded = encoder(tokens, mask)
        state = decoder.init_state(encoded)
        after = decoder.step(tokens[:, 0], state).state.cache[0]
    last = encoded.final[0].joined().h
    assert {states.dtype for states in (last, state.cache[0], after)} == {torch.float32}
    torch.testing.assert_close(after, exact, rtol=0, atol=0.02)
