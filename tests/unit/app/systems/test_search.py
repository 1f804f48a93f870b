"""Searches that compare texts are built for a system, and refused where there is none."""

import pytest
from omegaconf import DictConfig

from softsearch.app.config.build import needs_tokenizers, search_maker, with_trained_length
from softsearch.app.config.composition import composed
from softsearch.app.config.validation import build
from softsearch.app.export import recommended_search
from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.mbr import MinimumBayesRisk
from softsearch.search.options import Lengths
from softsearch.search.sampling import Sampling
from softsearch.text.tokenizer import train_tokenizer

TOKENIZER = train_tokenizer(["one two three"] * 3, kind="char", vocab_size=20)


def search(*options: str) -> DictConfig:
    """The strategy's options; those of the glossary, which ``evaluate`` takes out, are not of it."""
    node = composed("evaluate", "ckpt=a.ckpt", "run_dir=x", *options).search
    return DictConfig({key: value for key, value in node.items() if not str(key).startswith("glossary")})


def test_minimum_bayes_risk_is_built_for_the_tokenizers() -> None:
    built = search_maker(search("search=mbr", "search.utility.word_order=2"))((TOKENIZER, TOKENIZER))
    assert isinstance(built, MinimumBayesRisk)
    assert isinstance(built.candidates, Sampling)
    assert (built.candidates.n_best, built.references) == (64, None)
    ids = [tuple(TOKENIZER.encode(text)) for text in ("one two", "one three")]
    scores = built.utility(ids, ids[:1])
    assert scores.shape == (2, 1)
    assert scores[0, 0] == pytest.approx(100)
    assert 0 < scores[1, 0] < 100


def test_candidates_and_references_are_any_searches() -> None:
    beam = ("search@search.candidates=beam", "search.candidates.n_best=4")
    node = search("search=mbr", *beam, "+search@search.references=sample", "search.references.n_best=9")
    built = search_maker(node)((TOKENIZER, TOKENIZER))
    assert isinstance(built, MinimumBayesRisk)
    assert isinstance(built.candidates, BeamSearch)
    assert isinstance(built.references, Sampling)
    assert (built.candidates.n_best, built.references.n_best) == (4, 9)


SAMPLES = "+search@search.references=sample"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("beam", ""),
        ("greedy", ""),
        (f"mbr {SAMPLES}", "candidates"),
        (f"mbr {SAMPLES}", "references"),
        ("rerank", "search"),
    ],
)
def test_translations_may_be_as_long_as_in_the_test_after_training(options: str, part: str) -> None:
    def factor(trained: float, *own: str) -> float:
        changed = with_trained_length(search(*f"search={options}".split(), *own), trained)
        found = build(changed[part] if part else changed)
        assert isinstance(found, Lengths)
        return found.max_length_factor

    assert factor(8) == 8
    assert factor(1) == factor(0) == 2  # a shorter limit, or an unknown one
    assert factor(8, f"++search.{f'{part}.' * bool(part)}max_length_factor=1.5") == 1.5


@pytest.mark.parametrize("name", ["mbr", "rerank"])
def test_without_a_system_they_are_refused(name: str) -> None:
    node = search(f"search={name}")
    assert needs_tokenizers(node)
    with pytest.raises(ConfigError, match=rf"search={name} works only in evaluate\.py"):
        build(node)
    with pytest.raises(ConfigError, match=f"a bundle cannot recommend search={name}"):
        recommended_search(node)


def test_a_beam_of_one_translation_is_refused_where_it_is_set() -> None:
    with pytest.raises(ConfigError, match=r"search\.candidates\.n_best is 1, expected at least 2, such as samples"):
        search_maker(search("search=mbr", "search@search.candidates=beam", "search.candidates.n_best=1"))(
            (TOKENIZER,) * 2
        )
