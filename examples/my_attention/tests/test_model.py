"""The contract of softsearch's models, which search, training and export rely on, and the paper's equations."""

from pathlib import Path

import numpy as np
import pytest
import torch
from my_attention.attention import MyAttention

from softsearch.models import Memory, Seq2Seq
from softsearch.testing import small_model
from softsearch.testing.contract import *  # noqa: F403
from softsearch.testing.export import *  # noqa: F403

CONFIGS = Path(__file__).parents[1] / "softsearch_configs"


@pytest.fixture
def model() -> Seq2Seq:
    """The model that the contract is about, with small sizes."""
    return small_model("my_attention", config_dir=CONFIGS)


def test_equations() -> None:
    attention = MyAttention(3, 4, strength=2.0).double()
    query, states = torch.randn(2, 1, 3, dtype=torch.float64), torch.randn(2, 5, 4, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    memory = Memory(states, mask, attention.project(states))
    found = attention(query, memory, torch.zeros(2, 1, dtype=torch.int64)).weights.detach().numpy()

    weight = attention.key_projection.weight.detach().numpy()
    for sentence, length in enumerate((5, 3)):
        key = weight @ query[sentence, 0].numpy()
        norms = np.array([np.sqrt(key @ key) * np.sqrt(h @ h) for h in states[sentence, :length].numpy()])
        weights = np.exp(2.0 * states[sentence, :length].numpy() @ key / norms)
        expected = weights / weights.sum()
        np.testing.assert_allclose(found[sentence, 0, :length], expected, rtol=1e-12)
        assert (found[sentence, 0, length:] == 0).all()
