"""Several bundles that write together, language models and shortlists, against the same put together by hand."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from softsearch.errors import ConfigError
from softsearch.runtime.bundle import Bundle, write_bundle
from softsearch.runtime.models import EnsembleSpec, limited, open_step_function
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.shortlist_files import open_shortlist, shortlist_facts, shortlist_files
from softsearch.search.beam import BeamSearch
from softsearch.search.ensemble import AVERAGES, Average, Ensemble
from softsearch.search.interface import Hypothesis, StepFunction
from softsearch.text.vocabulary import EOS
from tests.unit.runtime.bundles import SRC_LINES, bundle_parts, make_bundle, tokenizers

SOURCES = [[*tokenizers()[0].encode(line), EOS] for line in dict.fromkeys(SRC_LINES)]
SEARCH = BeamSearch(beam=3, n_best=2, max_length_factor=1.0, max_length_offset=3)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    """Three models of the same vocabularies; the last one reads and writes from right to left."""
    folder = tmp_path_factory.mktemp("members")
    return [
        make_bundle(folder / "a"),
        make_bundle(folder / "b", seed=1),
        make_bundle(folder / "turned", seed=2, reversed={"src": True, "tgt": True}),
    ]


def found(step_fn: StepFunction, sources: Sequence[list[int]] = SOURCES) -> list[list[tuple[int, ...]]]:
    return [[h.tokens for h in n_best] for n_best in hypotheses(step_fn, sources)]


def hypotheses(step_fn: StepFunction, sources: Sequence[list[int]] = SOURCES) -> list[list[Hypothesis]]:
    return SEARCH(step_fn, sources)


def test_one_bundle_alone_is_itself(bundles: list[Bundle]) -> None:
    assert isinstance(open_step_function(EnsembleSpec(bundles[:1]), alignments=False), OnnxStepFunction)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("weights", [None, [3.0, 1.0]])
def test_several_are_an_ensemble(bundles: list[Bundle], weights: list[float] | None, average: Average) -> None:
    both = [OnnxStepFunction(bundle) for bundle in bundles[:2]]
    members = EnsembleSpec(bundles[:2], weights, average)
    expected = found(Ensemble(both, weights, average))
    assert found(open_step_function(members, alignments=False)) == expected
    assert expected not in (found(both[0]), found(both[1]))


def test_a_language_model_listens_in(bundles: list[Bundle]) -> None:
    first, other = (OnnxStepFunction(bundle) for bundle in bundles[:2])
    members = EnsembleSpec(bundles[:1], language_model=bundles[1], language_model_weight=0.8)
    expected = found(Ensemble([first], language_model=other, language_model_weight=0.8))
    assert found(open_step_function(members, alignments=False)) == expected != found(first)


def test_a_member_that_reads_backwards_gets_its_ids_turned(bundles: list[Bundle], tmp_path: Path) -> None:
    reader = make_bundle(tmp_path / "b", seed=1, reversed={"src": True, "tgt": False})
    together = open_step_function(EnsembleSpec([bundles[0], reader], [0.0, 1.0]), alignments=False)
    turned = [[*reversed(source[:-1]), EOS] for source in SOURCES]
    assert found(together) == found(OnnxStepFunction(reader), turned)


def test_members_that_write_differently_are_refused(bundles: list[Bundle], tmp_path: Path) -> None:
    words = make_bundle(tmp_path / "w", words=True)
    for other, message in ((words, "different target vocabularies"), (bundles[2], "write in different directions")):
        for members in (EnsembleSpec([bundles[0], other]), EnsembleSpec(bundles[:1], None, "probs", other, 1.0)):
            with pytest.raises(ConfigError, match=message):
                open_step_function(members, alignments=False)


def test_a_shortlist_holds_for_every_member(bundles: list[Bundle], tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    src_vocab, tgt_vocab = (tokenizer.vocab_size for tokenizer in tokenizers())
    tables = np.arange(tgt_vocab)[::-1], (np.arange(src_vocab)[:, None] * 3) % tgt_vocab
    facts = {**manifest, "shortlist": shortlist_facts()}
    bundle = write_bundle(tmp_path / "b", files | shortlist_files(*tables), facts)
    shortlist = open_shortlist(bundle, 8)
    for members in (EnsembleSpec([bundle], shortlist=8), EnsembleSpec([bundle, bundles[1]], shortlist=8)):
        step_fn = open_step_function(members, alignments=False)
        for source, n_best in zip(SOURCES, found(step_fn), strict=True):
            allowed = set(shortlist([source]).tokens.tolist())
            assert len(allowed) < tgt_vocab
            assert {token for tokens in n_best for token in tokens} <= allowed
    everything = open_step_function(EnsembleSpec([bundle], shortlist=tgt_vocab), alignments=False)
    plain = hypotheses(OnnxStepFunction(bundle))
    for ours, theirs in zip(hypotheses(everything), plain, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        np.testing.assert_allclose([h.score for h in ours], [h.score for h in theirs], atol=1e-5)


def test_the_shortest_limit_holds_for_all(bundles: list[Bundle], tmp_path: Path) -> None:
    search = {"name": "beam", "max_length_factor": 3.0}
    short = make_bundle(tmp_path / "short", limits={"max_src_tokens": 9}, search=search)
    both = limited([bundles[0], short])
    assert both.manifest.max_src_tokens == 9
    assert (both.path, both.manifest.search["max_length_factor"]) == (bundles[0].path, 1.5)
