"""The convolutional sentence model against Kalchbrenner & Blunsom 2013, a sentence of each length."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from softsearch.errors import ConfigError, InputError
from softsearch.models.conv_encoder import ConvolutionalEncoder
from softsearch.testing.models import small_model
from tests.support.transcriptions.equations import Weights
from tests.support.transcriptions.recurrent import convolve

DIM, VOCAB = 3, 11


def encoder_of(max_src_len: int) -> ConvolutionalEncoder:
    encoder = ConvolutionalEncoder(embedding=nn.Embedding(VOCAB, DIM), max_src_len=max_src_len).double().eval()
    torch.manual_seed(0)
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.7)
    return encoder


def batch(*lengths: int, width: int | None = None) -> tuple[Tensor, Tensor]:
    """Random tokens ``[batch, width]`` and their mask."""
    shape = (len(lengths), width or max(lengths))
    tokens = torch.randint(4, VOCAB, shape, generator=torch.Generator().manual_seed(1))
    mask = torch.arange(shape[1]) < torch.tensor(lengths)[:, None]
    return torch.where(mask, tokens, 0), mask


def test_sentences_of_all_lengths_side_by_side() -> None:
    lengths = tuple(range(1, 22))
    encoder = encoder_of(21)
    tokens, mask = batch(*lengths, width=25)
    encoded = encoder(tokens, mask)
    assert encoded.states.shape == (21, 25, DIM)
    weights = Weights({name: value.numpy() for name, value in encoder.state_dict().items()})
    for row, length in enumerate(lengths):
        (expected,) = convolve(weights, {}, tokens[row, :length].tolist()).ends[0].forward
        np.testing.assert_allclose(encoded.final[0].forward[0][row].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(("max_src_len", "widest"), [(8, 4), (10, 4), (11, 5), (15, 5), (16, 6), (120, 15), (128, 16)])
def test_there_are_just_enough_kernels(max_src_len: int, widest: int) -> None:
    assert list(encoder_of(max_src_len).widths) == list(range(2, widest + 1))


def test_gradients() -> None:
    encoder = encoder_of(10)
    tokens, mask = batch(1, 2, 4, 5, 10)
    names = ["embedding.weight", "kernels", "last_kernels"]

    def vectors(*values: Tensor) -> Tensor:
        replaced = dict(zip(names, values, strict=True))
        vector = torch.func.functional_call(encoder, replaced, (tokens, mask)).final[0].forward[0]
        assert isinstance(vector, Tensor)
        return vector

    assert torch.autograd.gradcheck(vectors, tuple(encoder.get_parameter(name) for name in names))


def test_kernels_without_a_sentence_have_a_gradient_of_zero() -> None:
    encoder = encoder_of(21)
    encoder(*batch(2, 3)).final[0].forward[0].sum().backward()  # K^2; K^2 and L^2
    for packed in (encoder.kernels, encoder.last_kernels):
        assert packed.grad is not None
        assert packed.grad[:, :2].abs().min() > 0
        assert packed.grad[:, 2:].abs().max() == 0


def test_a_sentence_that_is_too_long_is_refused() -> None:
    encoder = encoder_of(10)
    with pytest.raises(InputError, match=r"a source sentence has 11 tokens, .* at most 10.*batching\.max_length"):
        encoder(*batch(3, 11))
    encoder(*batch(3, 10, width=14))  # its padding does not count


@pytest.mark.parametrize("name", ["kalchbrenner2013", "kalchbrenner2013_rctm2"])
def test_a_limit_below_that_of_a_bundle_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"model\.encoder\.max_src_len is 7 .*, expected .* at least 8"):
        small_model(name, "model.encoder.max_src_len=7")
