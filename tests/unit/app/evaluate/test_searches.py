"""Searches of a curve, and searches in words."""

import pytest
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import build
from softsearch.app.evaluate.searches import curve_options, curve_searches, describe_search
from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.options import SearchOptions
from softsearch.search.sampling import Sampling

GREEDY = OmegaConf.create({"_target_": "softsearch.search.Greedy", "max_length_factor": 1.0})
BEAM = OmegaConf.create(
    {"_target_": "softsearch.search.BeamSearch", "beam": 3, "n_best": 2, "length_penalty": 0.5, "max_length_offset": 4}
)
RERANK = OmegaConf.create(
    {"_target_": "softsearch.app.systems.search.rerank", "search": BEAM, "models": ["r2l.ckpt"], "length_penalty": 2.0}
)


@pytest.mark.parametrize("search", [BEAM, RERANK])
def test_searches_of_a_curve_take_the_options_that_they_have(search: DictConfig) -> None:
    nodes = curve_searches(["greedy", "sample", 7, "mbr", "exact"], search)
    assert list(nodes) == ["greedy", "sample", "beam 7", "mbr", "exact"]
    searches = {name: build(node) for name, node in nodes.items() if name != "mbr"}
    assert searches["greedy"] == Greedy(max_length_offset=4)
    assert searches["sample"] == Sampling(max_length_offset=4)
    assert searches["beam 7"] == BeamSearch(beam=7, length_penalty=0.5, max_length_offset=4)
    assert isinstance(searches["exact"], ExactSearch)
    assert build(nodes["mbr"].candidates) == Sampling(n_best=64, max_length_offset=4)
    assert curve_options(search) == SearchOptions(length_penalty=0.5)
    assert curve_options(GREEDY) == SearchOptions()


@pytest.mark.parametrize("entry", ["beam", 0])
def test_an_entry_that_is_no_search_is_refused(entry: str | int) -> None:
    with pytest.raises(ConfigError, match="expected greedy, sample, mbr, exact or a beam"):
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


def test_mbr_of_a_curve_has_the_defaults_of_its_config() -> None:
    configured = composed("evaluate", "search=mbr").search
    (node,) = curve_searches(["mbr"], GREEDY).values()
    assert node._target_ == configured._target_
    assert node.utility == configured.utility
    assert node.candidates.n_best == configured.candidates.n_best


def test_minimum_bayes_risk_has_the_options_of_its_candidates() -> None:
    search = OmegaConf.create(
        {
            "_target_": "softsearch.app.systems.search.mbr",
            "candidates": BEAM,
            "references": None,
            "utility": {"_target_": "sacrebleu.metrics.CHRF", "word_order": 2},
        }
    )
    assert curve_options(search) == SearchOptions(length_penalty=0.5)
    nodes = curve_searches([7, "mbr"], search)
    assert build(nodes["beam 7"]) == BeamSearch(beam=7, length_penalty=0.5, max_length_offset=4)
    assert nodes["mbr"] == search
    assert describe_search(search) == "mbr, candidates by beam 3, n best 2, length penalty 0.5"
    search.references = GREEDY
    assert describe_search(search).endswith("references by greedy")
