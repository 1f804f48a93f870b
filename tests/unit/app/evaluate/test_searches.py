"""Searches of a curve, and searches in words."""

import pytest
from omegaconf import DictConfig, OmegaConf

from softsearch.app.evaluate.searches import curve_options, curve_searches, describe_search
from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.options import SearchOptions

GREEDY = OmegaConf.create({"_target_": "softsearch.search.greedy.Greedy", "max_length_factor": 1.0})
BEAM = OmegaConf.create(
    {
        "_target_": "softsearch.search.beam.BeamSearch",
        "beam": 3,
        "n_best": 2,
        "length_penalty": 0.5,
        "max_length_offset": 4,
    }
)
RERANK = OmegaConf.create(
    {
        "_target_": "softsearch.app.systems.reranking.rerank",
        "search": BEAM,
        "models": ["r2l.ckpt"],
        "length_penalty": 2.0,
    }
)


@pytest.mark.parametrize("search", [BEAM, RERANK])
def test_searches_of_a_curve_take_the_options_that_they_have(search: DictConfig) -> None:
    searches = curve_searches(["greedy", 7, "exact"], search)
    assert list(searches) == ["greedy", "beam 7", "exact"]
    assert searches["greedy"] == Greedy(max_length_offset=4)
    assert searches["beam 7"] == BeamSearch(beam=7, length_penalty=0.5, max_length_offset=4)
    assert isinstance(searches["exact"], ExactSearch)
    assert curve_options(search) == SearchOptions(length_penalty=0.5)
    assert curve_options(GREEDY) == SearchOptions()


@pytest.mark.parametrize("entry", ["beam", 0])
def test_an_entry_that_is_no_search_is_refused(entry: str | int) -> None:
    with pytest.raises(ConfigError, match="expected greedy, exact or a beam width"):
        curve_searches([entry], BEAM)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (BEAM, "beam 3, n best 2, length penalty 0.5"),
        (GREEDY, "greedy"),
        (OmegaConf.merge(BEAM, {"length_norm": "gnmt", "n_best": 1}), "beam 3, length penalty 0.5, length norm gnmt"),
        (RERANK, "rerank, models ['r2l.ckpt'], length penalty 2.0"),
    ],
)
def test_a_search_in_words(search: DictConfig, expected: str) -> None:
    assert describe_search(search) == expected


def test_minimum_bayes_risk_has_the_options_of_its_candidates() -> None:
    search = OmegaConf.create(
        {
            "_target_": "softsearch.app.systems.mbr.mbr",
            "candidates": BEAM,
            "references": None,
            "utility": {"_target_": "sacrebleu.metrics.CHRF", "word_order": 2},
        }
    )
    assert curve_options(search) == SearchOptions(length_penalty=0.5)
    assert curve_searches([7], search)["beam 7"] == BeamSearch(beam=7, length_penalty=0.5, max_length_offset=4)
    assert describe_search(search) == "mbr, candidates by beam 3, n best 2, length penalty 0.5"
    search.references = GREEDY
    assert describe_search(search).endswith("references by greedy")
