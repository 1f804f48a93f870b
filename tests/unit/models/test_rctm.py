"""The decoder of RCTM I against Kalchbrenner & Blunsom 2013, written out in NumPy."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderOutput, LastState, LastStates, LayerShape
from softsearch.models.rctm import RCTMDecoder

Array = NDArray[np.float64]
EMBEDDING, SUMMARY, HIDDEN, VOCAB, SENTENCES, SRC_LEN = 3, 4, 5, 11, 2, 6


def decoder_after(*final_shapes: LayerShape) -> RCTMDecoder:
    parts = Embeddings(src_vocab_size=VOCAB, tgt_vocab_size=VOCAB, dim=EMBEDDING)
    decoder = RCTMDecoder(
        embedding=parts.tgt, make_output=parts.make_output, memory_dim=7, final_shapes=final_shapes, hidden_dim=HIDDEN
    ).double()
    torch.manual_seed(0)
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return decoder


@pytest.fixture
def decoder() -> RCTMDecoder:
    return decoder_after(LayerShape(SUMMARY))


@pytest.fixture
def encoded() -> EncoderOutput:
    draw = torch.Generator().manual_seed(1)
    summary = torch.randn(SENTENCES, SUMMARY, dtype=torch.float64, generator=draw)
    mask = torch.arange(SRC_LEN) < torch.tensor([[6], [4]])
    return EncoderOutput(
        torch.zeros(SENTENCES, SRC_LEN, 7, dtype=torch.float64), mask, (LastStates(LastState(summary)),)
    )


def paper_logits(decoder: RCTMDecoder, summary: Array, tokens: list[int]) -> list[Array]:
    """o after each token read, one sentence: s = S csm(e), h = sigma(R h + I v(f) + s), o = O h."""
    v, S, I_f, R, O_h = (
        parameter.detach().numpy()
        for parameter in (
            decoder.embedding.weight,
            decoder.summary.weight,
            decoder.cell.input.weight,
            decoder.cell.recurrent.T,
            decoder.output.weight,
        )
    )
    b, b_o = decoder.cell.input.bias.detach().numpy(), decoder.output.bias.detach().numpy()
    h, logits = np.zeros(HIDDEN), []
    for token in tokens:
        h = np.tanh(R @ h + I_f @ v[token] + b + S @ summary)
        logits.append(O_h @ h + b_o)
    return logits


def test_features_equal_the_paper(decoder: RCTMDecoder, encoded: EncoderOutput) -> None:
    tokens = torch.tensor([[2, 5, 9, 4], [2, 7, 7, 8]])
    found = decoder(tokens, decoder.init_state(encoded))
    for row in range(SENTENCES):
        expected = paper_logits(decoder, encoded.final[0].forward.h[row].numpy(), tokens[row].tolist())
        np.testing.assert_allclose(found[row].detach().numpy(), expected, atol=1e-12)


def test_step_equals_the_paper_for_each_beam(decoder: RCTMDecoder, encoded: EncoderOutput) -> None:
    rows = torch.tensor([0, 0, 0, 1, 1, 1])
    histories = torch.tensor([[2, 5, 9], [2, 6, 4], [2, 4, 4], [2, 7, 5], [2, 8, 9], [2, 9, 6]])
    state = decoder.init_state(encoded).select(rows)
    for position in range(3):
        output = decoder.step(histories[:, position], state)
        state = output.state
        for row, sentence in enumerate(rows.tolist()):
            history = histories[row, : position + 1].tolist()
            expected = paper_logits(decoder, encoded.final[0].forward.h[sentence].numpy(), history)[-1]
            np.testing.assert_allclose(output.logits[row].detach().numpy(), expected, atol=1e-12)
    assert state.position.tolist() == [3] * 6
    assert state.memory.projected[0].shape == (SENTENCES, HIDDEN)  # not copied for the beams


def test_gradients(decoder: RCTMDecoder, encoded: EncoderOutput) -> None:
    tokens = torch.tensor([[2, 5, 9], [2, 7, 7]])
    names = ["summary.weight", "cell.input.weight", "cell.input.bias", "cell.recurrent"]

    def logits(summary: Tensor, *values: Tensor) -> Tensor:
        state = EncoderOutput(encoded.states, encoded.mask, (LastStates(LastState(summary)),))
        return torch.func.functional_call(
            _Whole(decoder), {f"decoder.{n}": value for n, value in zip(names, values, strict=True)}, (tokens, state)
        )

    inputs = (encoded.final[0].forward.h, *(decoder.get_parameter(name) for name in names))
    assert torch.autograd.gradcheck(logits, tuple(tensor.detach().clone().requires_grad_() for tensor in inputs))


class _Whole(nn.Module):
    def __init__(self, decoder: RCTMDecoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens: Tensor, encoded: EncoderOutput) -> Tensor:
        return self.decoder.features(tokens, self.decoder.init_state(encoded))


def test_an_encoder_without_a_summary_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"model\.decoder starts from the encoder's last state, but model\.encoder has"
    ):
        decoder_after()


def test_state_stays_precise_under_autocast(encoded: EncoderOutput) -> None:
    decoder = decoder_after(LayerShape(SUMMARY)).float()
    final = (LastStates(LastState(encoded.final[0].forward.h.float())),)
    single = EncoderOutput(encoded.states.float(), encoded.mask, final)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        after = decoder.step(torch.tensor([4, 5]), decoder.init_state(single)).state.cache[0]
    assert after.dtype == torch.float32
