"""The RNN Encoder-Decoder against appendix A.1 of Cho et al. 2014, written out in NumPy."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderOutput
from softsearch.models.rnnencdec import RNNencdecDecoder
from tests.unit.models.test_cells import blocks, sigmoid

Array = NDArray[np.float64]
VOCAB, DIM, HIDDEN, MAXOUT = 11, 3, 4, 5


@pytest.fixture
def decoder() -> RNNencdecDecoder:
    torch.manual_seed(0)
    parts = Embeddings(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, dim=DIM)
    decoder = RNNencdecDecoder(
        embedding=parts.tgt,
        make_output=parts.make_output,
        memory_dim=6,
        final_dims=(6,),
        hidden_dim=HIDDEN,
        maxout_dim=MAXOUT,
    ).double()
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return decoder


@pytest.fixture
def encoded() -> EncoderOutput:
    states = torch.randn(2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[True] * 4, [True] * 3 + [False]])
    return EncoderOutput(states, mask, (torch.stack((states[0, 3], states[1, 2])),))


def arrays(decoder: RNNencdecDecoder) -> dict[str, Array]:
    return {name: parameter.detach().numpy() for name, parameter in decoder.named_parameters()}


def paper_summary(decoder: RNNencdecDecoder, last: Array) -> tuple[Array, Array]:
    """c and h_0."""
    weight = arrays(decoder)
    c = np.tanh(weight["summary.weight"] @ last + weight["summary.bias"])
    return c, np.tanh(weight["start.weight"] @ c + weight["start.bias"])


def paper_step(decoder: RNNencdecDecoder, token: int, h: Array, c: Array) -> tuple[Array, Array]:
    """The logits and h_t."""
    weight = arrays(decoder)
    cell = decoder.cell
    (W_z, U_z, b_z), (W_r, U_r, b_r), (W, U, b) = blocks(cell, torch.cat((cell.gates, cell.candidate), 1), 3)
    C_z, C_r, C = np.split(weight["cell_summary.weight"], 3)
    b_inside = weight["cell.candidate_bias"]
    e = weight["embedding.weight"][token]
    z = sigmoid(W_z @ e + U_z @ h + C_z @ c + b_z)
    r = sigmoid(W_r @ e + U_r @ h + C_r @ c + b_r)
    candidate = np.tanh(W @ e + b + r * (U @ h + b_inside + C @ c))
    h = (1 - z) * h + z * candidate  # the paper's z is 1 - z here
    O_y, O_h, O_c = (weight[f"maxout_{name}.weight"] for name in ("embedding", "state", "summary"))
    s = O_h @ h + O_y @ e + O_c @ c + weight["maxout_embedding.bias"]
    pooled = np.array([max(s[2 * i], s[2 * i + 1]) for i in range(MAXOUT)])
    return weight["output.weight"] @ pooled + weight["output.bias"], h


def test_equals_the_paper_step_by_step(decoder: RNNencdecDecoder, encoded: EncoderOutput) -> None:
    tokens = torch.tensor([[4, 9, 7], [5, 5, 10]])
    start = decoder.init_state(encoded)
    together = decoder(tokens, start)
    for row in range(2):
        c, h = paper_summary(decoder, encoded.final[0][row].numpy())
        np.testing.assert_allclose(start.cache[0][row].detach().numpy(), h, atol=1e-12)
        for position, token in enumerate(tokens[row].tolist()):
            logits, h = paper_step(decoder, token, h, c)
            np.testing.assert_allclose(together[row, position].detach().numpy(), logits, atol=1e-11)


def test_the_summary_counts_in_every_step(decoder: RNNencdecDecoder, encoded: EncoderOutput) -> None:
    state = decoder.init_state(encoded)
    forgotten = state._replace(cache=tuple(torch.zeros_like(tensor) for tensor in state.cache))
    same = torch.tensor([4, 4])
    logits = decoder.step(same, forgotten).logits  # equal tokens and states: what differs is c
    assert (logits[0] - logits[1]).abs().max() > 1e-3


def test_gradients(decoder: RNNencdecDecoder, encoded: EncoderOutput) -> None:
    tokens = torch.tensor([[4, 9], [5, 5]])

    def loss(last: Tensor) -> Tensor:
        logits: Tensor = decoder(tokens, decoder.init_state(encoded._replace(final=(last,))))
        return logits

    assert torch.autograd.gradcheck(loss, (encoded.final[0].clone().requires_grad_(),))
