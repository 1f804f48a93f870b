"""Constraints: never broken, and search under them equals a brute-force search of what they allow."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import ConfigError, InputError
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.constraints import BannedTokens
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Candidates, Hypothesis, SearchStrategy, StepFunction
from softsearch.search.options import OutputOptions
from softsearch.search.sampling import Sampling
from softsearch.text.vocabulary import EOS
from tests.support.tables import VOCAB, Found, Row, TableModel, brute_force, keeps
from tests.unit.search.test_beam import SOURCES

CONSTRAINTS = st.fixed_dictionaries(
    {
        "min_length_factor": st.sampled_from([0.0, 0.5, 1.0]),
        "min_length_offset": st.integers(0, 3),
        "banned": st.sampled_from([(), (1,), (0, 4)]),
        "no_repeat_ngram": st.integers(0, 3),
    }
)
PREFIXES = st.lists(
    st.lists(st.sampled_from([0, 1, 2, 4]), max_size=3).map(tuple), min_size=len(SOURCES), max_size=len(SOURCES)
)


def broken(found: list[list[Hypothesis]], options: OutputOptions, prefixes: list[tuple[int, ...]]) -> list[Hypothesis]:
    return [
        h
        for src, prefix, n_best in zip(SOURCES, prefixes, found, strict=True)
        for h in n_best
        if not keeps(Found(h.tokens, h.log_prob, h.truncated), src, options, prefix)
    ]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    eos_bias=st.sampled_from([-1.0, 0.0, 2.0]),
    constraints=CONSTRAINTS,
    prefixes=PREFIXES,
    n_best=st.integers(1, 3),
)
def test_a_full_beam_equals_brute_force_under_constraints(
    seed: int, eos_bias: float, constraints: dict[str, Any], prefixes: list[tuple[int, ...]], n_best: int
) -> None:
    model = TableModel(seed, eos_bias)
    search = BeamSearch(beam=300, n_best=n_best, max_length_factor=0.5, max_length_offset=2, **constraints)
    expected = [brute_force(model, src, search, prefix) for src, prefix in zip(SOURCES, prefixes, strict=True)]
    if not all(expected):
        with pytest.raises(InputError, match="the constraints forbid every next token"):
            search(model, SOURCES, prefixes=prefixes)
        return
    for found, best in zip(search(model, SOURCES, prefixes=prefixes), expected, strict=True):
        assert [(h.tokens, h.truncated) for h in found] == [(f.tokens, f.truncated) for f in best]
        assert [h.log_prob for h in found] == pytest.approx([f.log_prob for f in best])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    constraints=CONSTRAINTS,
    prefixes=PREFIXES,
    search=st.sampled_from(
        [
            (Greedy, {}),
            (BeamSearch, {"beam": 3, "n_best": 3}),
            (BeamSearch, {"beam": 4, "n_best": 4, "groups": 2}),
            (Sampling, {"n_best": 3}),
            (Sampling, {"n_best": 2, "top_k": 2}),
        ]
    ),
)
def test_no_search_breaks_a_constraint(
    seed: int, constraints: dict[str, Any], prefixes: list[tuple[int, ...]], search: tuple[Any, dict[str, Any]]
) -> None:
    strategy = search[0](**search[1], **constraints, max_length_factor=1.0, max_length_offset=3)
    try:
        found = strategy(TableModel(seed), SOURCES, prefixes=prefixes)
    except InputError:  # where no sequence may come twice, there may be no token left
        if not constraints["no_repeat_ngram"]:
            raise
        return
    assert broken(found, strategy, prefixes) == []


def outcome(search: Any, model: TableModel, src: Sequence[int], prefix: tuple[int, ...]) -> Any:
    """What is found for one sentence; None where the constraints leave it no token."""
    try:
        return search(model, [src], prefixes=[prefix])[0]
    except InputError:
        return None


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), constraints=CONSTRAINTS, prefixes=PREFIXES)
def test_a_beam_of_one_is_greedy_under_constraints(
    seed: int, constraints: dict[str, Any], prefixes: list[tuple[int, ...]]
) -> None:
    constraints["no_repeat_ngram"] = max(2, constraints["no_repeat_ngram"])
    model = TableModel(seed)
    options = {"max_length_factor": 1.0, "max_length_offset": 2, **constraints}
    beam, greedy = BeamSearch(beam=1, **options), Greedy(**options)
    for src, prefix in zip(SOURCES, prefixes, strict=True):
        assert outcome(beam, model, src, prefix) == outcome(greedy, model, src, prefix)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10_000),
    constraints=CONSTRAINTS.filter(lambda c: c["no_repeat_ngram"] != 1),
    prefixes=PREFIXES,
    order=st.permutations(range(len(SOURCES))),
    strategy=st.sampled_from([BeamSearch(beam=3, n_best=2), BeamSearch(beam=4, groups=2), Sampling(top_k=3)]),
)
def test_constraints_do_not_reach_batch_mates(
    seed: int, constraints: dict[str, Any], prefixes: list[tuple[int, ...]], order: list[int], strategy: Any
) -> None:
    model = TableModel(seed)
    search = type(strategy)(**(vars(strategy) | constraints))
    alone = [outcome(search, model, src, prefix) for src, prefix in zip(SOURCES, prefixes, strict=True)]
    assume(None not in alone)
    sources, begins = [SOURCES[i] for i in order], [prefixes[i] for i in order]
    assert search(model, sources, prefixes=begins) == [alone[i] for i in order]
    assert translate_ids(model, search, sources, batch_tokens=6, workers=2, prefixes=begins) == [
        alone[i] for i in order
    ]


class Counting(TableModel):
    """Remembers how many candidates were asked for."""

    asked: tuple[int, ...] = ()

    def step(self, tokens: NDArray[np.int64], state: list[list[Row]], k: int) -> tuple[Candidates, list[list[Row]]]:
        self.asked = (*self.asked, k)
        return super().step(tokens, state, k)


@pytest.mark.parametrize(
    ("options", "prefixes", "expected"),
    [
        ({}, None, (1, 1, 1)),
        ({"banned": (1,)}, None, (2, 2, 2)),
        ({"min_length_offset": 2}, None, (2, 1, 1)),
        ({"no_repeat_ngram": 1}, None, (1, 2, 3)),
        ({}, [(4,)], (VOCAB, 1, 1)),
    ],
)
def test_no_more_candidates_are_asked_for_than_constraints_may_forbid(
    options: dict[str, Any], prefixes: list[tuple[int, ...]] | None, expected: tuple[int, ...]
) -> None:
    model = Counting(0, -1e4)
    BeamSearch(beam=1, max_length_factor=0.0, max_length_offset=3, **options)(model, [SOURCES[0]], prefixes=prefixes)
    assert model.asked == expected


def test_a_prefix_longer_than_the_limit_raises_it() -> None:
    search = BeamSearch(beam=2, max_length_factor=0.0, max_length_offset=2)
    ((found,), (other,)) = search(TableModel(0, -1e4), [SOURCES[0]] * 2, prefixes=[(4, 4, 4, 1), ()])
    assert found.tokens[:4] == (4, 4, 4, 1)
    assert (len(found.tokens), len(other.tokens)) == (5, 2)


def test_a_prefix_overrules_bans_and_repeats() -> None:
    search = Greedy(banned=(4,), no_repeat_ngram=2, max_length_factor=0.0, max_length_offset=6)
    ((found,),) = search(TableModel(0, -1e4), [SOURCES[0]], prefixes=[(4, 4, 4)])
    assert found.tokens[:3] == (4, 4, 4)
    assert 4 not in found.tokens[3:]


@pytest.mark.parametrize("search", [BeamSearch(banned=(0, 1, 2, 4), min_length_offset=2),
                                    Greedy(banned=(0, 1, 2, 4), min_length_offset=2),
                                    Sampling(banned=(0, 1, 2, 4), min_length_offset=2, n_best=2)])  # fmt: skip
def test_constraints_that_leave_nothing_are_an_error(search: Any) -> None:
    with pytest.raises(InputError, match="the constraints forbid every next token"):
        search(TableModel(), SOURCES)


class WithoutFour(TableModel):
    """As with a shortlist that leaves a token out."""

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        log_probs = super().row_log_probs(row)
        log_probs[4] = -np.inf
        return log_probs


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        ([(1, EOS)], "holds token 3, expected ids from 0 to 4 and no EOS"),
        ([(5,)], "holds token 5"),
        ([(-1,)], "holds token -1"),
        ([(1, 4)], "cannot write token 4, which a target prefix has at position 1"),
    ],
)
@pytest.mark.parametrize("search", [Greedy(), BeamSearch(), Sampling()])
def test_prefixes_that_cannot_be_written_are_refused(search: Any, prefixes: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        search(WithoutFour(), [SOURCES[0]], prefixes=prefixes)


def test_there_is_a_prefix_for_each_source() -> None:
    with pytest.raises(InputError, match="2 target prefixes for 1 sources, expected one for each"):
        translate_ids(TableModel(), Greedy(), SOURCES[:1], batch_tokens=9, prefixes=[(1,), (1,)])


def test_a_ban_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"search\.banned holds 99, expected ids below the model's 5"):
        Greedy(banned=(99,))(TableModel(), SOURCES)


def test_a_strategy_that_takes_no_prefixes_says_so() -> None:
    def strategy(step_fn: StepFunction, src: Any) -> list[list[Hypothesis]]:
        return BeamSearch()(step_fn, src)

    with pytest.raises(ConfigError, match="leave prefixes out"):
        translate_ids(TableModel(), strategy, SOURCES, batch_tokens=9, prefixes=[()] * len(SOURCES))


OTHER = 4
BAN_SOURCES = [[1], [0], [4, 4], [1, 4]]


@pytest.mark.parametrize(
    ("search", "with_option"),
    [
        (BeamSearch(beam=2, n_best=2), BeamSearch(beam=2, n_best=2, banned=(OTHER,))),
        (Greedy(), Greedy(banned=(OTHER,))),
        (Sampling(n_best=3), Sampling(n_best=3, banned=(OTHER,))),
        (Sampling(n_best=3, top_k=2), Sampling(n_best=3, top_k=2, banned=(OTHER,))),
    ],
)
def test_a_ban_is_the_option_of_the_searches_that_have_it(search: SearchStrategy, with_option: SearchStrategy) -> None:
    for seed in range(20):
        model = TableModel(seed, eos_bias=-0.5)
        found, expected = search(BannedTokens(model, [OTHER]), BAN_SOURCES), with_option(model, BAN_SOURCES)
        assert [[(h.tokens, h.log_prob) for h in n_best] for n_best in found] == [
            [(h.tokens, h.log_prob) for h in n_best] for n_best in expected
        ]


def test_a_ban_changes_translations_that_were_free_of_the_token_too() -> None:
    free, banned = (
        [n_best[0].tokens for seed in range(20) for n_best in BeamSearch(beam=2)(step_fn(seed), BAN_SOURCES)]
        for step_fn in (TableModel, lambda seed: BannedTokens(TableModel(seed), [OTHER]))
    )
    assert all(OTHER not in tokens for tokens in banned)
    assert any(OTHER not in ours and ours != theirs for ours, theirs in zip(free, banned, strict=True))


def test_exact_search_under_a_ban_equals_brute_force() -> None:
    search = ExactSearch(max_length_factor=0.5, max_length_offset=3)
    options = BeamSearch(
        length_penalty=0, max_length_factor=0.5, max_length_offset=3, banned=(OTHER, 0), alignments=False
    )
    for seed in range(5):
        model = TableModel(seed)
        for src, ((found,),) in ((ids, search(BannedTokens(model, [OTHER, 0]), [ids])) for ids in BAN_SOURCES):
            (expected,) = brute_force(model, tuple(src), options)
            assert found.tokens == expected.tokens
            assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-5)
            assert found.optimal
