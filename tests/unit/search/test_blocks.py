"""Blocks of steps are for options that their graph heeds."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from softsearch.option import Option
from softsearch.ranges import Range
from softsearch.search.beam import BeamSearch
from softsearch.search.blocks import in_blocks


@dataclass(frozen=True, kw_only=True)
class Rewarding(BeamSearch):
    """A search with an option of which no graph knows."""

    reward: Annotated[float, Range(0, 10), Option("nats that each token adds to the score")] = 0.0


class Blocks:
    has_block, vocab_size = True, 20

    def start(self, src: object) -> None:
        raise NotImplementedError


MODEL: Any = Blocks()


@pytest.mark.parametrize(
    "options", [{}, {"beam": 3, "n_best": 2}, {"length_penalty": 0.6, "length_norm": "gnmt"}, {"diversity": 0.1}]
)
def test_a_block_searches_with_what_it_knows(options: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError):
        in_blocks(MODEL, [[5]], Rewarding(**options))


@pytest.mark.parametrize(
    "options",
    [{"reward": 1.0}, {"coverage_penalty": 0.2}, {"exact_stop": True}, {"alignments": True}, {"beam": 4, "groups": 2}],
)
def test_single_steps_search_with_other_options(options: dict[str, Any]) -> None:
    assert in_blocks(MODEL, [[5]], Rewarding(**options)) is None
