"""Searches with terms against brute force over texts, which regular expressions read."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from softsearch.errors import ConfigError
from softsearch.search import term_search
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import Candidates, Hypothesis, SearchStrategy, State, StepFunctionWrapper
from softsearch.search.sampling import Sampling
from softsearch.search.terms import Spelling, Term, Terms
from softsearch.text.vocabulary import EOS
from tests.support.tables import Found, TableModel, everything, score_of

TEXTS = [" a", "b", "ab", "", " "]  # of the five tokens; EOS writes nothing
SPELLING = Spelling(TEXTS)
SOURCES = [(4, 1), (1,), (4, 4, 4), ()]
TERMS = st.sampled_from(["a", "b", "ab", "a b", "abb", "bab"])


def search_with_terms(
    search: SearchStrategy, model: TableModel, src: Sequence[Sequence[int]], terms: Sequence[Terms | None]
) -> list[list[Hypothesis]]:
    return translate_ids(model, search, src, terms=terms, batch_tokens=100)


def text_of(tokens: Sequence[int]) -> str:
    return "".join(TEXTS[token] for token in tokens)


def times(term: Term, text: str) -> int:
    """At how many places of a text an alternative of the term ends."""
    before, after = (r"(?<!\w)", r"(?!\w)") if term.whole_words else ("", "")
    patterns = [re.compile(before + each + after) for each in term.alternatives]
    return len({found.end() for pattern in patterns for at in range(len(text)) if (found := pattern.match(text, at))})


def holds(terms: Terms, tokens: Sequence[int]) -> bool:
    text = text_of(tokens)
    counts = [times(term, text) for term in terms.required]
    return all(
        count == need if term.exact else count >= need
        for count, term, need in zip(counts, terms.required, terms.needed, strict=True)
    )


def brute_force(model: TableModel, src: tuple[int, ...], options: BeamSearch, terms: Terms) -> list[Found]:
    found = [each for each in everything(model, src, options.lengths(len(src)).most) if holds(terms, each.tokens)]
    return sorted(found, key=lambda each: (each.truncated, -score_of(each, src, options)))[: options.n_best]


def is_free(texts: Sequence[str]) -> bool:
    """Whether none of the texts is part of another."""
    return not any(one in other for one in texts for other in texts if one != other)


@st.composite
def required(draw: st.DrawFn) -> list[Term]:
    alternatives = st.lists(TERMS, min_size=1, max_size=2, unique=True).filter(is_free)
    several = draw(st.lists(alternatives, min_size=1, max_size=2))
    terms = [Term(tuple(each), draw(st.integers(1, 2)), draw(st.booleans())) for each in several]
    return [term if term.whole_words else term._replace(exact=draw(st.booleans())) for term in terms]


def can_be_met_step_by_step(terms: list[Term]) -> bool:
    """Whether no term is in the way of an exact one, as symbols are not."""
    return len(terms) == 1 or not any(term.exact for term in terms)


@settings(max_examples=200)
@given(required(), st.lists(st.integers(0, 4).filter(lambda token: token != EOS), max_size=8))
def test_terms_are_found_in_the_text_whatever_spells_it(terms: list[Term], tokens: list[int]) -> None:
    automaton = Terms(terms, SPELLING)
    text = text_of(tokens)
    expected = [
        max(0, need - times(term, text)) for term, need in zip(automaton.required, automaton.needed, strict=True)
    ]
    assert automaton.missing_in(tokens).tolist() == expected
    place, counts = 0, np.zeros(len(terms), dtype=np.int64)
    for token in tokens:
        places, completed = automaton.automaton.after(place)
        place = int(places[token])
        counts = counts if completed is None else np.minimum(counts + completed[token], automaton.needed)
    assert automaton.automaton.missing(np.array([place]), counts[None])[0].tolist() == expected


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), eos_bias=st.sampled_from([-1.0, 1.5]), terms=required(), n_best=st.integers(1, 3))
def test_a_large_beam_finds_the_best_translation_with_the_terms(
    seed: int, eos_bias: float, terms: list[Term], n_best: int
) -> None:
    model = TableModel(seed, eos_bias)
    search = BeamSearch(beam=150, n_best=n_best, max_length_factor=0.5, max_length_offset=2)
    automaton = Terms(terms, SPELLING)
    plain = search(model, SOURCES)
    lists = search_with_terms(search, model, SOURCES, [automaton] * len(SOURCES))
    for src, found, without in zip(SOURCES, lists, plain, strict=True):
        expected = brute_force(model, src, search, automaton)
        if not expected:  # they do not fit into the length
            assert found == without
            continue
        assert [(each.tokens, each.truncated) for each in found] == [(each.tokens, each.truncated) for each in expected]
        assert [each.log_prob for each in found] == pytest.approx([each.log_prob for each in expected], abs=1e-5)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), beam=st.integers(1, 5), terms=required().filter(can_be_met_step_by_step))
def test_small_beams_meet_the_terms_too(seed: int, beam: int, terms: list[Term]) -> None:
    model, automaton = TableModel(seed), Terms(terms, SPELLING)
    search = BeamSearch(beam=beam, max_length_offset=14)
    for (found,) in search_with_terms(search, model, SOURCES, [automaton] * len(SOURCES)):
        assert holds(automaton, found.tokens)
        assert found.score == pytest.approx(found.log_prob / found.length)


class Counted(StepFunctionWrapper):
    """Counts the hypotheses of all steps."""

    hypotheses = 0

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        self.hypotheses += len(tokens)
        return self.step_fn.step(tokens, state, k)


@pytest.mark.parametrize("often", [1, 10, 30])
def test_many_terms_are_met_within_a_limit_of_work(often: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_search, "_MAX_WORK", 3000)
    terms, model = Terms([Term(("abb",), often), Term(("bab",), often)], SPELLING), Counted(TableModel(5))
    search = BeamSearch(beam=5, max_length_factor=0.0, max_length_offset=8 * often + 20)
    ((found, *_),) = search_with_terms(search, model, [(4, 1)], [terms])
    assert holds(terms, found.tokens)
    assert model.hypotheses <= 3000


def test_terms_that_do_not_fit_cost_little_and_leave_the_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_search, "_MAX_WORK", 1000)
    terms, model = Terms([Term(("abb",), 40)], SPELLING), Counted(TableModel(5))
    search = BeamSearch(beam=5, max_length_factor=0.0, max_length_offset=60)
    assert search_with_terms(search, model, [(4, 1)], [terms]) == [search(TableModel(5), [(4, 1)])[0]]
    assert model.hypotheses <= 1000 + 5 * 60


def test_what_the_search_finds_itself_stays_to_the_last_bit() -> None:
    model, search = TableModel(3), BeamSearch(beam=3, alignments=True)
    plain = search(model, SOURCES)
    terms = [
        Terms([Term((text_of(n_best[0].tokens).strip() or "a",), 1, whole_words=False)], SPELLING) for n_best in plain
    ]
    ids = [number for number, n_best in enumerate(plain) if text_of(n_best[0].tokens).strip()]
    assert len(ids) > 1
    found = search_with_terms(search, model, [SOURCES[i] for i in ids], [terms[i] for i in ids])
    for one, other in zip(found, [plain[i] for i in ids], strict=True):
        assert [(h.tokens, h.log_prob, h.score) for h in one] == [(h.tokens, h.log_prob, h.score) for h in other]


def test_a_bonus_of_nothing_changes_nothing_and_a_large_one_meets_the_terms() -> None:
    model, search = TableModel(5), BeamSearch(beam=4, max_length_offset=14)
    terms, none, much = ([Terms([Term(("bab",), bonus=b)], SPELLING)] * len(SOURCES) for b in (None, 0.0, 50.0))
    plain = search(model, SOURCES)
    assert not all(holds(terms[0], n_best[0].tokens) for n_best in plain)
    assert search_with_terms(search, model, SOURCES, none) == plain
    soft = search_with_terms(search, model, SOURCES, much)
    assert all(holds(terms[0], n_best[0].tokens) for n_best in soft)
    assert all(n_best[0].score == pytest.approx(n_best[0].log_prob / n_best[0].length) for n_best in soft)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    eos_bias=st.sampled_from([-2.0, -1.0, 0.0, 1.5]),
    beam=st.integers(1, 4),
    bonus=st.sampled_from([0.0, 0.5, 2.0, 8.0]),
    term=TERMS,
)
def test_a_bonus_adds_terms_or_leaves_the_plain_translation(
    seed: int, eos_bias: float, beam: int, bonus: float, term: str
) -> None:
    model, search = TableModel(seed, eos_bias), BeamSearch(beam=beam, max_length_factor=0.5, max_length_offset=4)
    terms = Terms([Term((term,), bonus=bonus)], SPELLING)

    def rank(found: Hypothesis) -> tuple[bool, float]:
        more = times(terms.required[0], text_of(found.tokens)) > 0
        return not found.truncated, found.score + bonus * more / found.length

    plain = search(model, SOURCES)
    for (before, *_), (found, *_) in zip(
        plain, search_with_terms(search, model, SOURCES, [terms] * len(SOURCES)), strict=True
    ):
        assert found.tokens == before.tokens or holds(terms, found.tokens)
        assert rank(found) >= rank(before)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), beam=st.integers(1, 4), term=TERMS)
def test_a_translation_with_the_terms_that_ends_is_found_if_there_is_one(seed: int, beam: int, term: str) -> None:
    model, search = TableModel(seed, -2.0), BeamSearch(beam=beam, max_length_factor=0.5, max_length_offset=4)
    terms = Terms([Term((term,))], SPELLING)
    plain = search(model, SOURCES)
    lists = search_with_terms(search, model, SOURCES, [terms] * len(SOURCES))
    for src, (before, *_), (found, *_) in zip(SOURCES, plain, lists, strict=True):
        if not holds(terms, before.tokens):
            assert found.truncated == brute_force(model, src, search, terms)[0].truncated


def test_sentences_without_terms_and_greedy_search() -> None:
    model = TableModel(1)
    terms = [None, Terms([Term(("ab ab",))], SPELLING), None, None]
    plain = Greedy()(model, SOURCES)
    found = search_with_terms(Greedy(), model, SOURCES, terms)
    assert [found[0], found[2], found[3]] == [plain[0], plain[2], plain[3]]
    assert "ab ab" in text_of(found[1][0].tokens)


def test_other_searches_are_refused() -> None:
    with pytest.raises(
        ConfigError, match="terms and text to copy need beam or greedy search, found Sampling; change search"
    ):
        search_with_terms(Sampling(), TableModel(), SOURCES, [None, Terms([Term(("ab",))], SPELLING), None, None])


def test_an_alternative_that_contains_another_counts_once() -> None:
    terms = Terms([Term(("ab", "ab b"), 2)], SPELLING)
    assert terms.missing_in([2, 0, 1, 4, 1]).tolist() == [0]  # "ab ab b"
    assert terms.missing_in([2, 4, 1]).tolist() == [1]  # "ab b"


def test_terms_inside_other_terms_are_needed_besides() -> None:
    terms = Terms([Term(("ab",)), Term(("ab ab", "ab b ab"), 2)], SPELLING)
    assert terms.needed.tolist() == [5, 2]


def test_words_of_scripts_without_spaces_have_edges_everywhere() -> None:
    spelling = Spelling(["", "", "", "", "東京", "都", "に", "行"])
    assert Terms([Term(("京都",))], spelling).missing_in([4, 5, 6]).tolist() == [0]


def test_translations_do_not_depend_on_the_batch() -> None:
    model, search = TableModel(7), BeamSearch(beam=2, max_length_offset=14)
    terms = [
        Terms([Term((text,), times)], SPELLING) for text, times in (("bab", 1), ("ab ab", 3), ("abb", 1), ("b", 2))
    ]
    together = search_with_terms(search, model, SOURCES, terms)
    alone = [search_with_terms(search, model, [src], [each])[0] for src, each in zip(SOURCES, terms, strict=True)]
    assert together == alone
