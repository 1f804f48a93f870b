"""A search of an installed package is one of the runtime's: in Python, at the command line, and in a bundle."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from softsearch.errors import ConfigError
from softsearch.runtime.cli import main
from softsearch.runtime.options import installed_searches, read_search, search_facts, strategy_class
from softsearch.runtime.translator import Translator
from tests.support.bundles import SRC_LINES

MODULE = """
from dataclasses import dataclass
from typing import Annotated

from softsearch.option import Option
from softsearch.ranges import Range
from softsearch.search.greedy import Greedy
from softsearch.search import Lengths


@dataclass(frozen=True, kw_only=True)
class Cut(Lengths):
    tokens: Annotated[int, Range(1, 50), Option("tokens that are kept", recommended=20)] = 1

    def __call__(self, step_fn, src):
        return Greedy(max_length_factor=0.0, max_length_offset=self.tokens)(step_fn, src)
"""
ENTRY_POINTS = (
    "[softsearch.searches]\ncut = outside_search:Cut\nbroken = no_such_module:Cut\nbeam = outside_search:Cut\n"
)


@pytest.fixture(autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    home = tmp_path_factory.mktemp("outside")
    (home / "outside_search.py").write_text(MODULE)
    about = home / "outside_search-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-search\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(home)
    installed_searches.cache_clear()
    yield
    installed_searches.cache_clear()
    sys.modules.pop("outside_search", None)


def test_it_translates_and_its_options_are_checked(translator: Translator) -> None:
    expected = [found.text for found in translator.translate(SRC_LINES, search="greedy", max_length="2")]
    assert [found.text for found in translator.translate(SRC_LINES, search="cut", tokens=2)] == expected
    with pytest.raises(ConfigError, match=r"search\.tokens is 51, expected a whole number of at least 1 and at mos"):
        translator.translate(SRC_LINES, search="cut", tokens=51)
    with pytest.raises(ConfigError, match="n_best is an option of search beam, sample or rerank, not of search cut"):
        translator.translate(SRC_LINES, search="cut", n_best=2)


def test_it_is_typed_as_our_own(
    bundle_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = []
    for options in (["--search", "cut", "--tokens", "2"], ["--search", "greedy", "--max-length", "2"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(SRC_LINES).encode())))
        assert main(["translate", str(bundle_dir), *options]) == 0
        typed.append(capsys.readouterr().out)
    assert typed[0] == typed[1] != ""
    with pytest.raises(SystemExit):
        main(["translate", str(bundle_dir), "--search", "cut", "--tokenss", "2"])
    assert "there is no option --tokenss; did you mean --tokens?" in capsys.readouterr().err


def test_a_bundle_recommends_it() -> None:
    facts = search_facts(strategy_class("cut")(tokens=3))
    assert facts == {"name": "cut", "tokens": 3, **{name: facts[name] for name in facts if "length" in name}}
    assert read_search(facts) == ("cut", {name: value for name, value in facts.items() if name != "name"})
    with pytest.raises(ConfigError, match=r"search\.tokens is 21, expected at most 20 in a bundle"):
        read_search(facts | {"tokens": 21})


def test_what_is_not_there_is_refused_and_ours_stay() -> None:
    with pytest.raises(ConfigError, match="search broken is no_such_module:Cut, which cannot be imported"):
        strategy_class("broken")
    with pytest.raises(ConfigError, match=r"search is 'bream'; did you mean 'beam'"):
        strategy_class("bream")
    assert strategy_class("beam").__module__ == "softsearch.search.beam"
