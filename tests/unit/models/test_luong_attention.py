"""Each score and each window against section 3 of Luong et al. 2015, written out in NumPy."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from softsearch.errors import ConfigError
from softsearch.models.interface import Memory
from softsearch.models.luong_attention import LuongAttention
from tests.support.transcriptions.equations import Weights
from tests.support.transcriptions.recurrent import luong_weights
from tests.unit.models.test_attention import normal

LENGTHS = (4, 2, 7)
QUERIES, DIM, MEMORY = 3, 5, 6
HALF_WINDOW, LOCATIONS = 2, 5
CASES = [
    *((score, window) for score in ("dot", "general", "concat") for window in ("global", "local-m", "local-p")),
    ("location", "global"),
]


def make(score: Any, window: Any, memory_dim: int | None = None) -> LuongAttention:
    torch.manual_seed(0)
    if memory_dim is None:
        memory_dim = DIM if score == "dot" else MEMORY
    attention = LuongAttention(
        DIM, memory_dim, score=score, window=window, half_window=HALF_WINDOW, location_length=LOCATIONS
    ).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    return attention


def make_memory(attention: LuongAttention) -> Memory:
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    states = normal(*mask.shape, DIM if attention.score == "dot" else MEMORY, seed=1)
    return Memory(states, mask, attention.project(states))


@pytest.mark.parametrize(("score", "window"), CASES)
def test_equals_the_paper(score: str, window: str) -> None:
    attention = make(score, window)
    memory = make_memory(attention)
    query = normal(len(LENGTHS), QUERIES, DIM, seed=2)
    position = torch.tensor([[0, 1, 2], [3, 4, 5], [6, 7, 60]])  # of three beams, or three steps; some beyond the end
    weights, alignments, _ = attention(query, memory, position)
    options = {"score": score, "window": window, "half_window": HALF_WINDOW}
    own = Weights({name: parameter.detach().numpy() for name, parameter in attention.named_parameters()})
    for sentence, length in enumerate(LENGTHS):
        h = memory.states[sentence, :length].numpy()
        for beam in range(QUERIES):
            a = luong_weights(own, options, query[sentence, beam].numpy(), list(h), int(position[sentence, beam]))
            np.testing.assert_allclose(weights[sentence, beam, :length].detach(), a, atol=1e-12)
            np.testing.assert_allclose(alignments[sentence, beam, :length].detach(), a / a.sum(), atol=1e-12)
            assert alignments[sentence, beam, length:].eq(0).all()


def test_windows_hide_what_is_far() -> None:
    """The parametrised test would not notice if no window left anything out."""
    for window in ("local-m", "local-p"):
        attention = make("general", window)
        _, alignments, _ = attention(
            normal(len(LENGTHS), 1, DIM, seed=2), make_memory(attention), torch.zeros(3, 1, dtype=torch.int64)
        )
        assert alignments[2].eq(0).sum() >= 2


def test_a_predicted_centre_may_be_anywhere_in_the_sentence() -> None:
    attention = make("general", "local-p")
    for sign, nearest in ((1.0, LENGTHS[2] - 1), (-1.0, 0)):
        nn.init.constant_(attention.centre_projection.weight, 10.0)
        nn.init.constant_(attention.centre_weight, sign * 10.0)
        _, alignments, _ = attention(torch.ones(3, 1, DIM).double(), make_memory(attention), torch.zeros(3, 1))
        assert alignments[2, 0, nearest] > 0
        assert alignments[2, 0, LENGTHS[2] - 1 - nearest] == 0
        assert alignments.sum(-1).allclose(torch.ones(3, 1).double())


def test_location_has_no_weight_for_words_beyond_its_length() -> None:
    attention = make("location", "global")
    _, alignments, _ = attention(normal(3, 1, DIM, seed=2), make_memory(attention), torch.zeros(3, 1))
    assert alignments[2, 0, :LOCATIONS].min() > 0
    assert alignments[2, 0, LOCATIONS:].tolist() == [0.0, 0.0]


def test_a_predicted_centre_is_precise_under_autocast() -> None:
    attention = make("general", "local-p").float()
    long = Memory(torch.randn(1, 300, MEMORY), torch.ones(1, 300, dtype=torch.bool), ())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        long = long._replace(projected=attention.project(long.states))
        _, alignments, _ = attention(torch.ones(1, 1, DIM), long, torch.zeros(1, 1))
    assert alignments.dtype == torch.float32
    assert 1 <= alignments.count_nonzero() <= 2 * HALF_WINDOW + 1


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (("dot", "global"), r"score=dot .* 5 units .* of 6.*score=general"),
        (("location", "local-m"), "score=location with model.decoder.attention.window=local-m.*window=global"),
    ],
)
def test_what_does_not_fit_is_refused(case: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(*case, MEMORY)
