"""The convolutional sentence model against Kalchbrenner & Blunsom 2013, written out in NumPy, a sentence at a time."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.errors import ConfigError, InputError
from softsearch.models.conv_encoder import ConvolutionalEncoder

Array = NDArray[np.float64]
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


def unpack(packed: nn.Parameter, widest: int) -> dict[int, Array]:
    """Kernels by width, [dim, width] each."""
    kernels, begin = {}, 0
    for width in range(2, widest + 1):
        kernels[width] = packed.detach().numpy()[:, begin : begin + width]
        begin += width
    assert begin == packed.shape[1]
    return kernels


def convolve(kernel: Array, matrix: Array) -> Array:
    """Each row with its own kernel, only where all of the kernel fits."""
    rows, columns = matrix.shape
    out = np.zeros((rows, columns - kernel.shape[1] + 1))
    for row in range(rows):
        for i in range(out.shape[1]):
            for j in range(kernel.shape[1]):
                out[row, i] += kernel[row, j] * matrix[row, i + j]
    return out


def paper_layers(encoder: ConvolutionalEncoder, words: Array, widest: int) -> list[Array]:
    """E_1, E_2, ... and csm(e) as the last one; ``words`` ``[length, dim]``."""
    K, L = unpack(encoder.kernels, widest), unpack(encoder.last_kernels, widest)
    layers = [words.T]
    for width in range(2, widest + 2):
        E = layers[-1]
        left = E.shape[1]
        if left == 1:
            return layers
        if left < width:
            return [*layers, np.tanh(convolve(L[left], E))]
        layers.append(np.tanh(convolve(K[width], E)))
    raise AssertionError(f"{len(words)} words are too many for kernels up to {widest}")


@pytest.mark.parametrize(
    ("length", "columns"),
    [
        (1, [1]),
        (2, [2, 1]),
        (3, [3, 2, 1]),
        (4, [4, 3, 1]),
        (5, [5, 4, 2, 1]),
        (9, [9, 8, 6, 3, 1]),
        (10, [10, 9, 7, 4, 1]),
    ],
)
def test_each_length_takes_the_papers_layers(length: int, columns: list[int]) -> None:
    encoder = encoder_of(10)
    tokens, mask = batch(length)
    layers = paper_layers(encoder, encoder.embedding(tokens[0]).detach().numpy(), widest=4)
    assert [layer.shape[1] for layer in layers] == columns
    vector = encoder(tokens, mask).final[0].forward[0]
    np.testing.assert_allclose(vector[0].detach().numpy(), layers[-1][:, 0], atol=1e-12)


def test_sentences_of_all_lengths_side_by_side() -> None:
    lengths = tuple(range(1, 22))
    encoder = encoder_of(21)
    tokens, mask = batch(*lengths, width=25)
    encoded = encoder(tokens, mask)
    assert encoded.states.shape == (21, 25, DIM)
    for row, length in enumerate(lengths):
        words = encoder.embedding(tokens[row, :length]).detach().numpy()
        expected = paper_layers(encoder, words, widest=6)[-1][:, 0]
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


def test_a_limit_below_that_of_a_bundle_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.encoder\.max_src_len is 7, expected at least 8"):
        ConvolutionalEncoder(embedding=nn.Embedding(VOCAB, DIM), max_src_len=7)
