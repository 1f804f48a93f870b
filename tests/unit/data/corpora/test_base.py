"""What all sources have: directions, and options that are checked against their annotations."""

import re
from pathlib import Path
from typing import Any

import pytest

from softsearch.app.config.validation import check
from softsearch.data.corpora.base import ParallelSource
from softsearch.data.corpora.features import FeatureFiles
from softsearch.data.corpora.multi30k import Multi30k
from softsearch.data.corpora.multi_source import MultiSource
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.parallel import Parallel
from softsearch.data.corpora.spellout import Spellout
from softsearch.errors import ConfigError

PAIR = ["a.en", "a.de"]
OPTIONS: list[tuple[type[ParallelSource], dict[str, Any]]] = [
    (Spellout, {}),
    (Multi30k, {}),
    (Parallel, {"train": PAIR, "val": PAIR}),
    (Multilingual, {"src_lang": "en", "tgt_lang": "de", "pairs": {"de": Spellout()}}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
def test_every_source_has_directions(kind: type[ParallelSource], options: dict[str, Any]) -> None:
    assert kind(**options).reversed_sides == (False, False)
    assert kind(**options, reverse_source=True, target_direction="r2l").reversed_sides == (True, True)


LANGUAGES: list[tuple[ParallelSource, str, str]] = [
    (FeatureFiles(train=["a.npy", "a.ja.txt"], val=["b.npy", "b.ja"]), "features", "ja"),
    (Multilingual(pairs={"de": Spellout(), "x": Parallel(train=["a.hsb", "a.fr"], val=PAIR)}), "en+hsb", "de+fr"),
    (MultiSource(sources={"en": Spellout(), "fr": Spellout(src_lang="fr")}), "en+fr", "de"),
    (Multilingual(src_lang="any", pairs={"de": Spellout()}), "any", "de"),
]


@pytest.mark.parametrize(("source", "src", "tgt"), LANGUAGES)
def test_languages_of_files_and_of_joined_sources(source: ParallelSource, src: str, tgt: str) -> None:
    assert (source.src_lang, source.tgt_lang) == (src, tgt)


WRONG = [
    *((kind, {"reverse_source": "yes"}, "expected true or false") for kind, _ in OPTIONS),
    *((kind, {"target_direction": "rl2"}, "expected one of 'l2r', 'r2l'") for kind, _ in OPTIONS),
    (Spellout, {"src_lang": "xx"}, "expected one of 'en', 'de', 'fr', 'es'"),
    (Spellout, {"tgt_lang": "../de"}, "expected one of 'en', "),
    (Spellout, {"tgt_lang": ["de"]}, "expected one of 'en', "),
    (Spellout, {"train_size": 0}, "expected a whole number of at least 1"),
    (Spellout, {"val_size": 10.5}, "expected a whole number of at least 1"),
    (Spellout, {"seed": None}, "expected a whole number of at least 0"),
    (Multi30k, {"variant": "lctok"}, "expected one of 'raw', 'lc_tok'"),
    (Multi30k, {"src_lang": "eng"}, "expected one of 'cs', 'de', 'en', 'fr'"),
    (Multi30k, {"test_set": "test_2016"}, "expected one of 'test_2016_flickr', "),
    (Multi30k, {"root": 7}, "expected text or a path or null"),
    (Multi30k, {"mirror": None}, "expected text"),
    (Parallel, {"text_form": "lctok"}, "expected one of 'plain', 'lc_tok'"),
    (Parallel, {"val": None}, "expected two files"),
    (Parallel, {"test": ["a.en", 7]}, "expected two files"),
    (Parallel, {"tgt_lang": 7}, "expected text"),
    (Parallel, {"weights": [1, 0]}, "expected a list, each a number of more than 0 or null"),
    (Parallel, {"weights": 3}, "expected a list"),
    (Parallel, {"temperature": 0.5}, "expected a number of at least 1 or null"),
    (Parallel, {"temperature": True}, "expected a number of at least 1 or null"),
    (Multilingual, {"pairs": ["a.en"]}, "expected a section of keys and values"),
]


@pytest.mark.parametrize(("kind", "wrong", "message"), WRONG)
def test_a_value_that_does_not_fit_its_annotation(
    kind: type[ParallelSource], wrong: dict[str, Any], message: str
) -> None:
    needed = {Parallel: OPTIONS[2][1], Multilingual: {"src_lang": "en", "tgt_lang": "de", "pairs": {}}}.get(kind, {})
    ((key, value),) = wrong.items()
    with pytest.raises(ConfigError, match=rf"data\.{key} is {re.escape(repr(value))} .*{re.escape(message)}"):
        check({"_target_": f"{kind.__module__}.{kind.__name__}", **needed, **wrong}, "data")


def test_directions_share_the_generated_files(tmp_path: Path) -> None:
    small = {"train_size": 3, "val_size": 1, "test_size": 1}
    assert Spellout(**small).files(tmp_path) == Spellout(**small, reverse_source=True).files(tmp_path)  # type: ignore[arg-type]
