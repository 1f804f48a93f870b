"""The encoder of captions from feature vectors (Xu et al. 2015, arXiv:1502.03044)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from softsearch.models.interface import Encoder, EncoderDescription, EncoderOutput
from softsearch.ranges import Size


class FeatureEncoder(Encoder):
    """The annotation vectors a_1, ..., a_L of section 3.1.1: the data's feature vectors, unchanged.

    EOS, the last token of a source, has no vector: nothing attends to it. ``feature_dim`` is the width of the vectors.
    """

    def __init__(self, *, embedding: nn.Embedding, feature_dim: Size) -> None:
        super().__init__()
        self.embedding = None
        self.description = EncoderDescription(feature_dim, feature_dim=feature_dim)

    def forward(self, src_tokens: Tensor, src_mask: Tensor, src_features: Tensor | None = None) -> EncoderOutput:
        """Returns the vectors as the states; a source without any has one vector of zeros, for EOS."""
        assert src_features is not None
        first = torch.arange(src_mask.shape[1], device=src_mask.device) == 0
        mask = functional.pad(src_mask[:, 1:], (0, 1)) | first  # followed by another token
        return EncoderOutput(src_features.masked_fill(~mask[..., None], 0), mask, ())
