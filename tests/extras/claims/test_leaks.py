"""No sentence that a claim's models are measured on is in the training text of any of its runs."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import build
from softsearch.data.corpora.base import ParallelSource
from softsearch.data.corpora.joined import Joined
from softsearch.data.corpora.multilingual import Multilingual
from softsearch.data.corpora.spellout import Spellout
from softsearch.extras.claims.claim import Claim, claim_names, read_claim
from softsearch.text.corpus import read_lines

pytestmark = pytest.mark.day

_DATA = ("data", "+data", "~data", "experiment=")
Sentences = set[tuple[str, str]]  # of a language


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Claims share corpora here."""
    return tmp_path_factory.mktemp("corpora")


def corpora(*overrides: str) -> list[ParallelSource]:
    """The generated corpora that options of ``train`` name, one by one."""
    return generated(*(each for each in overrides if each.startswith(_DATA)))


@cache
def generated(*overrides: str) -> list[ParallelSource]:
    source: Any = build(composed("train", *overrides, "name=NAME", "run_dir=RUN", "cache_dir=CACHE").data)
    parts = source.pairs.values() if isinstance(source, Multilingual) else [source]
    return [part for part in parts if isinstance(part.source if isinstance(part, Joined) else part, Spellout)]


def measured_on(claim: Claim) -> Iterator[tuple[ParallelSource, int | None]]:
    """The corpora of the measures and of runs on one corpus, and how many sentences of their test sets are taken."""
    limits = [
        [int(each.partition("=")[2]) for each in node.get("options", ()) if each.startswith("sentences=")]
        for node in claim.measures.values()
        if node is not None and node["_target_"].endswith("Evaluate")
    ]
    limit = max((each[0] for each in limits), default=None) if all(limits) else None
    for node in filter(None, claim.measures.values()):
        if any(each.startswith(_DATA) for each in node.get("options", ())):
            yield from ((corpus, limit) for corpus in corpora(*node["options"]))
        for each in node.get("rows", {}).get("corpora", ()):
            yield build(each), None
    for options in claim.runs.values():
        if len(own := corpora(*claim.common, *claim.sizes, *options)) == 1:
            yield own[0], limit


def sentences(corpus: ParallelSource, split: str, cache_dir: Path, limit: int | None = None) -> Sentences:
    languages = (corpus.src_lang, corpus.tgt_lang)
    files = corpus.files(cache_dir)[split]
    return {(lang, line) for lang, path in zip(languages, files, strict=True) for line in [*read_lines(path)][:limit]}


def distinct(found: Iterable[Any]) -> list[Any]:
    return list({repr(each): each for each in found}.values())


@pytest.mark.parametrize("scale", ["cpu", *(pytest.param(s, marks=pytest.mark.nightly) for s in ("quick", "smallest"))])
@pytest.mark.parametrize("name", claim_names())
def test_no_test_sentence_is_in_training_text(name: str, scale: str, cache_dir: Path) -> None:
    claim = read_claim(name, scale)
    chosen = [*((*claim.common, *claim.sizes, *options) for options in claim.runs.values())]
    chosen += [node.get("options", ()) for node in filter(None, claim.measures.values())]
    if len({texts for each in chosen if (texts := tuple(o for o in each if o.startswith(_DATA)))}) < 2:
        return  # one corpus, whose splits share nothing: test_spellout.py
    trained_on = distinct(
        corpus for options in claim.runs.values() for corpus in corpora(*claim.common, *claim.sizes, *options)
    )
    tested = distinct(measured_on(claim))
    if len(distinct([*trained_on, *(corpus for corpus, _ in tested)])) < 2:
        return
    trained: Sentences = set().union(*(sentences(corpus, "train", cache_dir) for corpus in trained_on))
    for corpus, limit in tested:
        assert not trained & sentences(corpus, "test", cache_dir, limit), corpus
