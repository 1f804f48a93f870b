"""Attention's fused kernels."""

import pytest
import torch

from softsearch.models.multi_head import MultiHeadAttention, functional


def test_cudnn_is_left_out_of_our_calls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    enabled = []
    real = functional.scaled_dot_product_attention

    def note(*tensors: torch.Tensor, **options: object) -> torch.Tensor:
        enabled.append(torch.backends.cuda.cudnn_sdp_enabled())
        return real(*tensors, **options)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(functional, "scaled_dot_product_attention", note)
    assert torch.backends.cuda.cudnn_sdp_enabled()
    with torch.device("meta"):
        attention = MultiHeadAttention(8, 2)
        attention(x := torch.zeros(3, 4, 8), *attention.keys_values(x, 3), causal=True)
    assert enabled == [False]
    assert torch.backends.cuda.cudnn_sdp_enabled()
