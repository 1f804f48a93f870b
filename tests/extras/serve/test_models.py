"""Models in the main process: groups of lines with equal options, token budgets and counts."""

from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError, InputError
from softsearch.extras.serve.models import Model
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.translation import Part
from softsearch.search.beam import BeamSearch
from tests.support.bundles import edit_manifest, tokenizers


@pytest.fixture(scope="module")
def model(bundle_dir: Path) -> Model:
    return Model("small", Bundle.open(bundle_dir))


@pytest.mark.parametrize(
    ("options", "batch_tokens"),
    [
        ({}, 2560 // 3),  # the bundle's beam
        ({"beam": 5}, 512),
        ({"beam": 1000}, 2),
        ({"search": "greedy"}, 2560),
        ({"search": "sample", "n_best": 4}, 640),
    ],
)
def test_budget_is_that_of_translator(model: Model, options: dict[str, Any], batch_tokens: int) -> None:
    group = model.translation_group(options, prefixes=False)
    assert group.batch_tokens == batch_tokens
    assert group.search is not None


def test_equal_options_are_one_group_and_others_are_not(model: Model) -> None:
    one = model.translation_group({"beam": 2, "n_best": 1}, prefixes=False)
    assert model.translation_group({"n_best": 1, "beam": 2}, prefixes=False) == one
    others: list[dict[str, Any]] = [{}, {"beam": 2, "n_best": 2}, {"beam": 2, "length_penalty": 0.5}]
    groups = [model.translation_group(options, prefixes=False) for options in others]
    groups += [one, model.translation_group({"beam": 2, "n_best": 1}, prefixes=True), model.score_group()]
    assert len({*groups}) == len(groups)


@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_values_of_another_type_are_refused(model: Model, value: object) -> None:
    with pytest.raises(ConfigError, match="expected a whole number"):
        model.translation_group({"beam": value}, prefixes=False)


def test_exact_search_which_a_bundle_recommends_is_not_the_servers_default(victim: Path) -> None:
    edit_manifest(victim, lambda tree: tree.update(search={"name": "exact"}))
    served = Model("small", Bundle.open(victim))
    assert served.facts.search == "beam"
    assert isinstance(served.translation_group({}, prefixes=False).search, BeamSearch)


def test_tokens_are_counted_with_eos(model: Model) -> None:
    src, tgt = tokenizers()
    group, pairs = model.translation_group({}, prefixes=False), model.score_group()
    for line, other in (("one two three", "eins"), ("ten", "vier fünf sechs")):
        ids, other_ids = src.encode(line), tgt.encode(other)
        assert model.encode(group, line, None, 1) == ([Part(line, ids)], None, len(ids) + 1)
        assert model.encode(pairs, line, other, 1) == (ids, other_ids, max(len(ids), len(other_ids)) + 1)
    assert model.encode(group, "", None, 1) == ([], None, 1)
    with pytest.raises(InputError, match="line 2: "):
        model.encode(group, "\ud800", None, 2)
