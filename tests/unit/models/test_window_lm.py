"""Options of language models over a window of tokens; tests/contract/test_transcriptions.py tests their equations."""

import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import BOS
from tests.support.models import DIRECT


@pytest.mark.parametrize("name", ["feed_forward_lm", "log_bilinear_lm"])
def test_only_the_last_tokens_count(name: str) -> None:
    model = small_model(name, "model.decoder.order=3")
    src, tgt = torch.tensor([[4, 3]]), torch.tensor([[BOS, 5, 6, 7, 8]])
    other = tgt.clone()
    other[0, 1] = 9
    changed = (model(src, other) - model(src, tgt))[0].abs().amax(-1) > 1e-6
    assert changed.tolist() == [False, True, True, False, False]


def test_direct_connections_need_an_output_matrix_of_their_own() -> None:
    with pytest.raises(
        ConfigError, match=r"tie=output needs .* hidden_dim \+ \(order - 1\) \* model.embeddings.dim=40"
    ):
        small_model("feed_forward_lm", f"model.{DIRECT[0]}")
