"""The RNN Encoder-Decoder's summary; tests/contract/test_transcriptions.py has its equations."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderOutput, LastState, LastStates, LayerShape
from softsearch.models.rnnencdec import RNNencdecDecoder

Array = NDArray[np.float64]
VOCAB, DIM, HIDDEN, MAXOUT = 11, 3, 4, 5


@pytest.fixture(params=[None, 2], ids=["full", "rank-2"])
def decoder(request: pytest.FixtureRequest) -> RNNencdecDecoder:
    torch.manual_seed(0)
    parts = Embeddings(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, dim=DIM)
    decoder = RNNencdecDecoder(
        embedding=parts.tgt,
        make_output=parts.make_output,
        memory_dim=6,
        final_shapes=(LayerShape(6),),
        hidden_dim=HIDDEN,
        maxout_dim=MAXOUT,
        output_rank=request.param,
    ).double()
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return decoder


@pytest.fixture
def encoded() -> EncoderOutput:
    states = torch.randn(2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[True] * 4, [True] * 3 + [False]])
    return EncoderOutput(states, mask, (LastStates(LastState(torch.stack((states[0, 3], states[1, 2])))),))


def test_the_output_matrix_has_the_rank_asked_for(decoder: RNNencdecDecoder) -> None:
    inputs = torch.eye(MAXOUT, dtype=torch.float64)
    logits = decoder.output(decoder.factor(inputs)) - decoder.output.bias  # [MAXOUT, VOCAB]: G transposed
    assert torch.linalg.matrix_rank(logits) == (2 if "factor.weight" in decoder.state_dict() else MAXOUT)


def test_the_summary_counts_in_every_step(decoder: RNNencdecDecoder, encoded: EncoderOutput) -> None:
    state = decoder.init_state(encoded)
    forgotten = state._replace(cache=tuple(torch.zeros_like(tensor) for tensor in state.cache))
    same = torch.tensor([4, 4])
    logits = decoder.step(same, forgotten).logits  # equal tokens and states: what differs is c
    assert (logits[0] - logits[1]).abs().max() > 1e-3


def test_gradients(decoder: RNNencdecDecoder, encoded: EncoderOutput) -> None:
    tokens = torch.tensor([[4, 9], [5, 5]])

    def loss(last: Tensor) -> Tensor:
        logits: Tensor = decoder(tokens, decoder.init_state(encoded._replace(final=(LastStates(LastState(last)),))))
        return logits

    assert torch.autograd.gradcheck(loss, (encoded.final[0].forward.h.clone().requires_grad_(),))
