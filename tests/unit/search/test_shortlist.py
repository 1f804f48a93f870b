"""Which words a sentence may use, and a shortlist over a model against a softmax over its words."""

import numpy as np
import pytest

from softsearch.errors import ConfigError
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.shortlist import Shortlist, ShortlistStep
from softsearch.text.vocabulary import BOS, EOS
from tests.support.tables import VOCAB, Row, TableModel, log_probs_of

FREQUENT = np.array([9, 5])
TRANSLATIONS = np.array([[-1, -1], [-1, -1], [-1, -1], [-1, -1], [7, 8], [12, -1], [5, 20]])


def own(shortlist: Shortlist, batch: list[list[int]]) -> list[list[int]]:
    tokens, mask = shortlist(batch)
    assert tokens.dtype == np.int64
    assert (np.diff(tokens) > 0).all()
    return [tokens[row].tolist() for row in mask]


def test_frequent_words_and_translations_of_each_sentence() -> None:
    shortlist = Shortlist(FREQUENT, TRANSLATIONS)
    batch = [[4, 5], [6], []]
    expected = [[EOS, 5, 7, 8, 9, 12], [EOS, 5, 9, 20], [EOS, 5, 9]]
    assert own(shortlist, batch) == expected
    assert [own(shortlist, [sentence])[0] for sentence in batch] == expected


def test_a_shortlist_needs_frequent_words() -> None:
    with pytest.raises(ConfigError, match="0 frequent words"):
        Shortlist(FREQUENT[:0], TRANSLATIONS)


OTHER = 4
TABLE_SHORTLIST = Shortlist(np.array([EOS, 0]), np.array([[-1], [OTHER], [-1], [-1], [1]]))
SOURCES = [[1], [0], [4, 4], [1, 4]]


def test_probabilities_are_a_softmax_over_the_words_of_each_sentence() -> None:
    step_fn = ShortlistStep(TableModel(), TABLE_SHORTLIST)
    assert step_fn.vocab_size == VOCAB
    kept, tokens, prefix = [0, 2, 3], np.full(4, BOS), (BOS,)
    state = step_fn.start(SOURCES)
    for _ in range(3):
        candidates, state = step_fn.step(tokens, state, VOCAB)
        beams = len(tokens) // len(state[1].mask)
        for row in range(len(tokens)):
            src = SOURCES[row] if beams == 1 else SOURCES[kept[row // beams]]
            own = TABLE_SHORTLIST([src]).tokens
            log_probs = log_probs_of(Row(tuple(src), prefix), 0, 0.0).astype(float)[own]
            expected = dict(zip(own.tolist(), log_probs - np.log(np.exp(log_probs).sum()), strict=True))
            found = dict(zip(candidates.tokens[row].tolist(), candidates.log_probs[row].tolist(), strict=True))
            for token, log_prob in expected.items():
                np.testing.assert_allclose(found.pop(token), log_prob, atol=1e-6)
            assert set(found.values()) <= {-np.inf}
        if beams == 1:
            state = step_fn.keep(state, np.array(kept))
        state = step_fn.select(state, np.repeat(np.arange(len(kept)) * beams, 2))
        tokens, prefix = np.full(2 * len(kept), OTHER), (*prefix, OTHER)


def test_no_more_candidates_than_asked_for() -> None:
    step_fn = ShortlistStep(TableModel(), TABLE_SHORTLIST)
    few, _ = step_fn.step(np.full(4, BOS), step_fn.start(SOURCES), 2)
    every, _ = step_fn.step(np.full(4, BOS), step_fn.start(SOURCES), VOCAB)
    assert few.tokens.shape == (4, 2)
    np.testing.assert_array_equal(few.tokens, np.argsort(-every.log_probs, axis=1)[:, :2])
    np.testing.assert_array_equal(few.log_probs, -np.sort(-every.log_probs, axis=1)[:, :2])


def test_translations_keep_to_their_own_words_whatever_the_batch() -> None:
    step_fn = ShortlistStep(TableModel(eos_bias=-1.0), TABLE_SHORTLIST)
    search = BeamSearch(beam=3, n_best=2, max_length_factor=1.0, max_length_offset=3)
    together = translate_ids(step_fn, search, SOURCES, batch_tokens=1000)
    alone = translate_ids(step_fn, search, SOURCES, batch_tokens=1)
    for src, ours, theirs in zip(SOURCES, together, alone, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert {token for h in ours for token in h.tokens} <= set(TABLE_SHORTLIST([src]).tokens.tolist())
    assert OTHER in together[0][0].tokens + together[3][0].tokens
