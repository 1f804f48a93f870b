"""The conditional GRU against section 2 of Sennrich et al. 2017, written out in NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from softsearch.models.cells import GRUCell
from softsearch.models.conditional_gru import ConditionalGRUDecoder
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderOutput
from tests.unit.models.test_attention import paper_additive
from tests.unit.models.test_cells import paper_gru, sigmoid

Array = NDArray[np.float64]
LENGTHS = (4, 2, 5)
INPUT, HIDDEN, MEMORY, ATTENTION, OUTPUT, VOCAB = 3, 4, 6, 5, 7, 11


def make_decoder(**options: Any) -> ConditionalGRUDecoder:
    torch.manual_seed(0)
    parts = Embeddings(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, dim=INPUT)
    decoder = ConditionalGRUDecoder(
        embedding=parts.tgt,
        make_output=parts.make_output,
        memory_dim=MEMORY,
        final_shapes=(),
        hidden_dim=HIDDEN,
        attention_dim=ATTENTION,
        output_dim=OUTPUT,
        **options,
    ).double()
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return decoder


@pytest.fixture
def encoded() -> EncoderOutput:
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    states = torch.randn(*mask.shape, MEMORY, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return EncoderOutput(states, mask, ())


def numpy_gru(cell: GRUCell, x: Array, s: Array) -> Array:
    """The paper's equations, its z weighting the old state: our cell's z with negated weights; biases besides."""
    W_z, W_r, W = np.split(cell.input.weight.detach().numpy(), 3)
    b_z, b_r, b = np.split(cell.input.bias.detach().numpy(), 3)
    U_z, U_r = (u.T for u in np.split(cell.gates.detach().numpy(), 2, axis=1))
    U = cell.candidate.detach().numpy().T
    assert cell.candidate_bias is not None
    b_U = cell.candidate_bias.detach().numpy()
    z = sigmoid(-W_z @ x - U_z @ s - b_z)
    r = sigmoid(W_r @ x + U_r @ s + b_r)
    candidate = np.tanh(W @ x + b + r * (U @ s + b_U))
    return (1 - z) * candidate + z * s


def paper_step(decoder: ConditionalGRUDecoder, token: int, s: Array, annotations: Array) -> tuple[Array, Array, Array]:
    """Look, update, generate; returns logits, alignments and s_j."""
    weight = {name: parameter.detach().numpy() for name, parameter in decoder.named_parameters()}
    Ey = weight["embedding.weight"][token]
    s = numpy_gru(decoder.read, Ey, s)
    c, alpha = paper_additive(decoder.attention, s, annotations)
    s = numpy_gru(decoder.update, c, s)
    t = weight["readout_state.weight"] @ s + weight["readout_embedding.weight"] @ Ey
    t = np.tanh(t + weight["readout_context.weight"] @ c + weight["readout_state.bias"])
    return weight["output.weight"] @ t + weight["output.bias"], alpha, s


def test_start_is_the_mean_of_the_real_annotations(encoded: EncoderOutput) -> None:
    decoder = make_decoder()
    W_init, b_init = decoder.start.weight.detach().numpy(), decoder.start.bias.detach().numpy()
    state = decoder.init_state(encoded)
    for sentence, length in enumerate(LENGTHS):
        mean = sum(encoded.states[sentence, :length].numpy()) / length
        np.testing.assert_allclose(state.cache[0][sentence].detach(), np.tanh(W_init @ mean + b_init), atol=1e-12)
    assert state.position.tolist() == [0, 0, 0]


def test_steps_equal_the_paper(encoded: EncoderOutput) -> None:
    decoder = make_decoder()
    state = decoder.init_state(encoded)
    for tokens in ([4, 9, 7], [5, 5, 10]):
        output = decoder.step(torch.tensor(tokens), state)
        for row, token in enumerate(tokens):
            annotations = encoded.states[row, : LENGTHS[row]].numpy()
            logits, alpha, s = paper_step(decoder, token, state.cache[0][row].detach().numpy(), annotations)
            np.testing.assert_allclose(output.logits[row].detach(), logits, atol=1e-11)
            np.testing.assert_allclose(output.alignments[row, : LENGTHS[row]].detach(), alpha, atol=1e-12)
            np.testing.assert_allclose(output.state.cache[0][row].detach(), s, atol=1e-12)
        state = output.state
    assert state.position.tolist() == [2, 2, 2]


def test_chos_form_of_the_gru_can_be_had_too(encoded: EncoderOutput) -> None:
    decoder = make_decoder(reset="before")
    state = decoder.init_state(encoded)
    output = decoder.step(torch.tensor([4, 9, 7]), state)
    s, annotations = state.cache[0][:1].detach().numpy(), encoded.states[0, : LENGTHS[0]].numpy()
    s = paper_gru(decoder.read, decoder.embedding.weight[4:5].detach().numpy(), s)
    c, _ = paper_additive(decoder.attention, s[0], annotations)
    np.testing.assert_allclose(output.state.cache[0][:1].detach(), paper_gru(decoder.update, c[None], s), atol=1e-12)


def test_features_are_what_the_output_layer_reads(encoded: EncoderOutput) -> None:
    decoder = make_decoder()
    tokens = torch.randint(4, VOCAB, (len(LENGTHS), 3), generator=torch.Generator().manual_seed(1))
    state = decoder.init_state(encoded)
    features = decoder.features(tokens, state)
    assert features.shape == (len(LENGTHS), 3, OUTPUT)
    torch.testing.assert_close(decoder.output(features)[:, 0], decoder.step(tokens[:, 0], state).logits)


def test_gradients(encoded: EncoderOutput) -> None:
    decoder = make_decoder()
    tokens = torch.tensor([[4, 9], [5, 7], [6, 6]])
    states = encoded.states.requires_grad_()
    inputs = (states, *decoder.parameters())  # which gradcheck changes in place
    assert torch.autograd.gradcheck(lambda *_: decoder(tokens, decoder.init_state(encoded)), inputs, fast_mode=True)


def test_the_state_stays_precise_under_autocast(encoded: EncoderOutput) -> None:
    decoder = make_decoder().float()
    encoded = encoded._replace(states=encoded.states.float())
    exact = decoder.step(torch.tensor([4, 9, 7]), decoder.init_state(encoded)).state.cache[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = decoder.init_state(encoded)
        after = decoder.step(torch.tensor([4, 9, 7]), state).state.cache[0]
    assert {state.cache[0].dtype, after.dtype} == {torch.float32}
    torch.testing.assert_close(after, exact, rtol=0, atol=0.02)
