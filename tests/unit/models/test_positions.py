"""Position encodings, learned positions and rotations; tests/contract/test_transcriptions.py has them in models."""

import math

import pytest
import torch
from torch import nn

from softsearch.errors import ConfigError, InputError
from softsearch.models.embeddings import Embeddings
from softsearch.models.interface import EncoderDescription
from softsearch.models.positions import Positions, rotate, sinusoids
from softsearch.models.transformer import TransformerDecoder, TransformerEncoder


def test_sinusoids_equal_the_paper() -> None:
    dim, positions = 6, [0, 1, 2, 77, 511]
    found = sinusoids(torch.tensor(positions), dim)
    for row, pos in zip(found, positions, strict=True):
        for i in range(dim // 2):
            angle = pos / 10000 ** (2 * i / dim)
            assert float(row[2 * i]) == pytest.approx(math.sin(angle), abs=1e-4)
            assert float(row[2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-4)


def test_encodings_leave_the_dtype_of_the_embeddings() -> None:
    positions = Positions("sinusoidal", 4, 2, 8, scale=True)
    assert positions(torch.ones(1, 3, 4, dtype=torch.bfloat16), torch.arange(3)).dtype == torch.bfloat16


def test_sinusoids_of_any_shape() -> None:
    grid = torch.arange(6).reshape(2, 3)
    assert torch.equal(sinusoids(grid, 4)[1, 2], sinusoids(torch.tensor(5), 4))


def test_products_of_rotated_vectors_depend_on_their_distance() -> None:
    positions = Positions("rotary", 8, 1, 1, scale=True)
    vectors = torch.randn(2, 8).double()
    query, key = (rotate(row.expand(1, 1, 30, 8), positions.angles(torch.arange(30)))[0, 0] for row in vectors)
    products = query @ key.T
    for distance in (-9, 0, 4):
        torch.testing.assert_close(
            products.diagonal(distance), products.diagonal(distance)[0].expand(30 - abs(distance)), rtol=0, atol=1e-5
        )
    torch.testing.assert_close(products[0, 0], vectors[0] @ vectors[1])


def test_a_sentence_that_is_longer_than_the_table_is_refused_and_a_translation_reads_its_last_row() -> None:
    encoder = TransformerEncoder(
        embedding=nn.Embedding(9, 8), num_layers=1, d_ff=8, num_heads=2, positions="learned", max_positions=5
    )
    assert encoder.description.max_src_len == 5
    encoder(torch.ones(1, 5, dtype=torch.int64), torch.ones(1, 5, dtype=torch.bool))
    with pytest.raises(InputError, match="a source sentence has 6 tokens, EOS included, expected at most 5"):
        encoder(torch.ones(1, 6, dtype=torch.int64), torch.ones(1, 6, dtype=torch.bool))
    fourth, *others = encoder.positions.encodings(torch.tensor([4, 5, 99]), 8)
    assert all(torch.equal(other, fourth) for other in others)


def test_an_ssru_has_nothing_to_rotate() -> None:
    embeddings = Embeddings(src_vocab_size=9, tgt_vocab_size=9, dim=8)
    with pytest.raises(ConfigError, match=r"rotates queries and keys, which .*=ssru does not have"):
        TransformerDecoder(
            embeddings=embeddings,
            encoder=EncoderDescription(8),
            num_layers=1,
            d_ff=8,
            num_heads=2,
            positions="rotary",
            self_attention="ssru",
        )
