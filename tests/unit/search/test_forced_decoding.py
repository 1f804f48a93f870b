"""Forced decoding against the table that the model is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import InputError
from softsearch.search.beam import BeamSearch
from softsearch.search.forced_decoding import forced_alignments, score_pairs
from softsearch.text.features import FeatureSource
from softsearch.text.vocabulary import BOS, EOS
from tests.support.tables import Row, TableModel, alignment_of
from tests.unit.search.test_exact import SOURCES, Endless, Wide

TARGETS = [(4,), (1, 4, 0, 2), (), (4, 4), (1, 1, 4, 4, 1, 1)]


def by_hand(model: TableModel, src: tuple[int, ...], tgt: tuple[int, ...]) -> list[float]:
    written = (BOS, *tgt, EOS)
    return [float(model.row_log_probs(Row(src, written[:place]))[written[place]]) for place in range(1, len(written))]


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), batch_tokens=st.sampled_from([1, 6, 14, 1000]))
def test_scores_are_sums_over_the_table_in_any_batch(seed: int, batch_tokens: int) -> None:
    model = TableModel(seed)
    found = score_pairs(model, SOURCES, TARGETS, batch_tokens=batch_tokens)
    for src, tgt, pair in zip(SOURCES, TARGETS, found, strict=True):
        expected = by_hand(model, src, tgt)
        assert pair.token_log_probs == tuple(expected)
        assert pair.log_prob == pytest.approx(sum(expected))


def test_what_search_finds_has_the_score_that_search_gave_it() -> None:
    model = TableModel(5, eos_bias=1.0)
    found = BeamSearch(beam=4, n_best=4)(model, SOURCES)
    pairs = [(src, h) for src, n_best in zip(SOURCES, found, strict=True) for h in n_best if not h.truncated]
    scored = score_pairs(model, [src for src, _ in pairs], [h.tokens for _, h in pairs], batch_tokens=50)
    assert [pair.log_prob for pair in scored] == pytest.approx([h.log_prob for _, h in pairs])
    assert len(pairs) > 10


def test_improbable_tokens_of_a_wide_vocabulary_are_scored_too() -> None:
    model = Wide(1)
    targets = [(int(np.argmin(model.row_log_probs(Row(src, (BOS,))))), 4) for src in SOURCES]
    found = score_pairs(model, SOURCES, targets, batch_tokens=50)
    for src, tgt, pair in zip(SOURCES, targets, found, strict=True):
        assert pair.token_log_probs == tuple(by_hand(model, src, tgt))


def test_finished_sentences_are_not_stepped_again() -> None:
    model = TableModel()
    score_pairs(model, SOURCES, TARGETS, batch_tokens=1000)
    assert model.stepped == [5, 4, 3, 2, 2, 1, 1]


def test_a_source_with_several_translations_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, started = TableModel(3), list[int]()
    monkeypatch.setattr(model, "start", lambda src: started.append(len(src)) or TableModel.start(model, src))
    sources = [SOURCES[0], SOURCES[1], SOURCES[0], SOURCES[0], SOURCES[1]]
    found = score_pairs(model, sources, TARGETS, batch_tokens=1000)
    assert started == [2]
    for src, tgt, pair in zip(sources, TARGETS, found, strict=True):
        assert pair.token_log_probs == tuple(by_hand(model, src, tgt))


def test_sources_with_other_features_are_other_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    model, started = TableModel(3), list[int]()
    monkeypatch.setattr(model, "start", lambda src: started.append(len(src)) or TableModel.start(model, src))
    one, other = (FeatureSource(SOURCES[0], np.full((2, 3), value, dtype=np.float32)) for value in (0, 1))
    score_pairs(model, [one, other, one], TARGETS[:3], batch_tokens=1000)
    assert started == [2]


def test_what_the_model_excludes_has_no_probability() -> None:
    (pair,) = score_pairs(Endless(), [SOURCES[0]], [(4,)], batch_tokens=10)
    assert pair.log_prob == pair.token_log_probs[1] == -np.inf
    assert np.isfinite(pair.token_log_probs[0])


class Broken(TableModel):
    """Returns no numbers from the second token on."""

    value = np.nan

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        return super().row_log_probs(row) * np.float32(self.value if len(row.prefix) > 1 else 1)


@pytest.mark.parametrize(("value", "found"), [(np.nan, "NaN"), (-np.inf, "infinite")])
def test_what_is_no_log_probability_is_an_error(value: float, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "value", value)  # -inf times a log probability is +inf
    with pytest.raises(InputError, match=f"at target position 1 are {found}"):
        score_pairs(Broken(), SOURCES, TARGETS, batch_tokens=1000)


@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        (SOURCES, TARGETS[:4], "5 sources and 4 translations"),
        ([(4,)], [(4, 5)], "translation 0 has the token 5, expected ids below 5"),
        ([(4,)], [(-1,)], "translation 0 has the token -1"),
    ],
)
def test_pairs_that_cannot_be_scored_are_named(
    src: list[tuple[int, ...]], tgt: list[tuple[int, ...]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        score_pairs(TableModel(), src, tgt, batch_tokens=10)


def test_no_pairs_give_no_scores() -> None:
    assert score_pairs(TableModel(), [], [], batch_tokens=10) == []


ALIGNED_SRC = [[4], [4, 4, 4], []]
ALIGNED_TGT = [[4, 4], [], [4]]


@pytest.mark.parametrize("batch_tokens", [1, 8, 100])
def test_each_row_is_where_the_model_looked(batch_tokens: int) -> None:
    found = forced_alignments(TableModel(seed=1), ALIGNED_SRC, ALIGNED_TGT, batch_tokens=batch_tokens)
    assert found is not None
    for src, tgt, matrix in zip(ALIGNED_SRC, ALIGNED_TGT, found, strict=True):
        assert matrix.shape == (len(tgt) + 1, len(src) + 1)
        prefixes = [(2, *tgt[:place]) for place in range(len(tgt) + 1)]  # BOS is what is read first
        expected = [alignment_of(Row(tuple(src), prefix), len(src) + 1) for prefix in prefixes]
        assert matrix == pytest.approx(np.array(expected))


def test_a_model_without_alignments_has_none() -> None:
    assert forced_alignments(TableModel(has_alignments=False), ALIGNED_SRC, ALIGNED_TGT, batch_tokens=8) is None


def test_no_pairs_give_no_alignments() -> None:
    assert forced_alignments(TableModel(), [], [], batch_tokens=8) == []
