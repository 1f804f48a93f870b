"""Models in the main process: groups of lines with equal options, token budgets and counts."""

from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.server import models
from softsearch.runtime.server.errors import LineError
from softsearch.runtime.server.models import Model
from tests.unit.runtime.bundles import tokenizers


@pytest.fixture(scope="module")
def model(bundle_dir: Path) -> Model:
    return Model("small", Bundle.open(bundle_dir))


@pytest.mark.parametrize(
    ("options", "batch_tokens"),
    [
        ({}, 2560 // 3),  # the bundle's beam
        ({"beam": None, "search": None}, 2560 // 3),
        ({"beam": 5}, 512),
        ({"beam": 1000}, 2),
        ({"search": "greedy"}, 2560),
        ({"search": "sample", "n_best": 4}, 640),
    ],
)
def test_budget_is_that_of_translator(model: Model, options: dict[str, Any], batch_tokens: int) -> None:
    group = model.translation_group(options, prefixes=False)
    assert group.batch_tokens == batch_tokens
    assert group.options == {name: value for name, value in options.items() if value is not None}


def test_equal_options_are_one_group_and_others_are_not(model: Model) -> None:
    one = model.translation_group({"beam": 2, "n_best": 1}, prefixes=False)
    assert model.translation_group({"n_best": 1, "beam": 2, "search": None}, prefixes=False).key == one.key
    others: list[dict[str, Any]] = [{}, {"beam": 2}, {"beam": 2, "n_best": 2}, {"beam": 2, "length_penalty": 1.0}]
    keys = [model.translation_group(options, prefixes=False).key for options in others]
    keys += [one.key, model.translation_group({"beam": 2, "n_best": 1}, prefixes=True).key, model.score_group().key]
    assert len({*keys}) == len(keys)


def test_equal_values_of_another_type_are_checked_again(model: Model) -> None:
    model.translation_group({"beam": 1}, prefixes=False)
    for value in (True, 1.0, "1"):
        with pytest.raises(ConfigError, match="expected a whole number"):
            model.translation_group({"beam": value}, prefixes=False)


def test_ever_new_options_take_no_more_memory(model: Model) -> None:
    for number in range(3 * models._MAX_GROUPS):
        model.translation_group({"length_penalty": number / 1000}, prefixes=False)
        assert len(model._groups) <= models._MAX_GROUPS


def test_tokens_are_counted_with_eos(model: Model) -> None:
    src, tgt = tokenizers()
    lines, translations = ["one two three", "", "ten"], ["eins", "vier fünf sechs", "zehn"]
    assert model.count_tokens(lines) == [len(src.encode(line)) + 1 for line in lines]
    assert model.count_tokens(lines, translations) == [
        max(len(src.encode(one)), len(tgt.encode(other))) + 1 for one, other in zip(lines, translations, strict=True)
    ]
    with pytest.raises(LineError, match="line 2: ") as caught:
        model.count_tokens(["one", "\ud800"])
    assert caught.value.index == 1
