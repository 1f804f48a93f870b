"""A shortlist over a model, against a softmax over its words, and bans against brute force."""

import numpy as np
import pytest

from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import SearchStrategy
from softsearch.search.sampling import Sampling
from softsearch.search.shortlist import Shortlist
from softsearch.search.shortlisted import Banned, Shortlisted
from softsearch.text.vocabulary import BOS, EOS
from tests.unit.search.tables import VOCAB, Row, TableModel, brute_force, log_probs_of

OTHER = 4
SHORTLIST = Shortlist(np.array([EOS, 0]), np.array([[-1], [OTHER], [-1], [-1], [1]]))
SOURCES = [[1, EOS], [0, EOS], [4, 4, EOS], [1, 4, EOS]]


def test_probabilities_are_a_softmax_over_the_words_of_each_sentence() -> None:
    step_fn = Shortlisted(TableModel(), SHORTLIST)
    assert step_fn.vocab_size == VOCAB
    kept, tokens, prefix = [0, 2, 3], np.full(4, BOS), (BOS,)
    state = step_fn.start(SOURCES)
    for _ in range(3):
        candidates, state = step_fn.step(tokens, state, VOCAB)
        beams = len(tokens) // len(state.words.mask)
        for row in range(len(tokens)):
            src = SOURCES[row] if beams == 1 else SOURCES[kept[row // beams]]
            own = SHORTLIST([src]).tokens
            log_probs = log_probs_of(Row(tuple(src), prefix), 0, 0.0).astype(float)[own]
            expected = dict(zip(own.tolist(), log_probs - np.log(np.exp(log_probs).sum()), strict=True))
            found = dict(zip(candidates.tokens[row].tolist(), candidates.log_probs[row].tolist(), strict=True))
            assert (np.diff(candidates.log_probs[row][: len(own)]) <= 0).all()
            for token, log_prob in expected.items():
                np.testing.assert_allclose(found.pop(token), log_prob, atol=1e-6)
            assert set(found.values()) <= {-np.inf}
        if beams == 1:
            state = step_fn.keep(state, np.array(kept))
        state = step_fn.select(state, np.repeat(np.arange(len(kept)) * beams, 2))
        tokens, prefix = np.full(2 * len(kept), OTHER), (*prefix, OTHER)


def test_no_more_candidates_than_asked_for() -> None:
    step_fn = Shortlisted(TableModel(), SHORTLIST)
    few, _ = step_fn.step(np.full(4, BOS), step_fn.start(SOURCES), 2)
    every, _ = step_fn.step(np.full(4, BOS), step_fn.start(SOURCES), VOCAB)
    assert few.tokens.shape == (4, 2)
    np.testing.assert_array_equal(few.tokens, every.tokens[:, :2])


def test_translations_keep_to_their_own_words_whatever_the_batch() -> None:
    step_fn = Shortlisted(TableModel(eos_bias=-1.0), SHORTLIST)
    search = BeamSearch(beam=3, n_best=2, max_length_factor=1.0, max_length_offset=3)
    together = translate_ids(step_fn, search, SOURCES, batch_tokens=1000)
    alone = translate_ids(step_fn, search, SOURCES, batch_tokens=1)
    for src, ours, theirs in zip(SOURCES, together, alone, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert {token for h in ours for token in h.tokens} <= set(SHORTLIST([src]).tokens.tolist())
    assert OTHER in together[0][0].tokens + together[3][0].tokens


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
        found, expected = search(Banned(model, [OTHER]), SOURCES), with_option(model, SOURCES)
        assert [[(h.tokens, h.log_prob) for h in n_best] for n_best in found] == [
            [(h.tokens, h.log_prob) for h in n_best] for n_best in expected
        ]


def test_a_ban_changes_translations_that_were_free_of_the_token_too() -> None:
    free, banned = (
        [n_best[0].tokens for seed in range(20) for n_best in BeamSearch(beam=2)(step_fn(seed), SOURCES)]
        for step_fn in (TableModel, lambda seed: Banned(TableModel(seed), [OTHER]))
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
        for src, ((found,),) in ((ids, search(Banned(model, [OTHER, 0]), [ids])) for ids in SOURCES):
            (expected,) = brute_force(model, tuple(src), options)
            assert found.tokens == expected.tokens
            assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-5)
            assert found.optimal
