"""The rank of the RNN Encoder-Decoder's output; tests/contract/test_transcriptions.py has its equations."""

import pytest
import torch

from softsearch.models.rnnencdec import RNNencdecDecoder
from softsearch.testing.models import TGT_VOCAB, small_model
from tests.support.models import RANK


@pytest.mark.parametrize(("options", "rank"), [([], 8), ([f"model.{option}" for option in RANK], 3)])
def test_the_output_matrix_has_the_rank_asked_for(options: list[str], rank: int) -> None:
    decoder = small_model("rnnencdec", *options).decoder
    assert isinstance(decoder, RNNencdecDecoder)
    inputs = torch.eye(8, dtype=torch.float64)  # of all units of the maxout layer
    features = inputs if decoder.output_factor is None else decoder.output_factor(inputs)
    G = decoder.output_projection(features) - decoder.output_projection.bias  # transposed
    assert G.shape == (8, TGT_VOCAB)
    assert torch.linalg.matrix_rank(G) == rank
