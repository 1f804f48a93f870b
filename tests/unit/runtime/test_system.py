"""Systems: bundles, ensembles, language models, shortlists and scores, compared with the same built by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.errors import ConfigError, InputError
from softsearch.evaluation.systems import lab_bundle, lab_ensemble
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.ensembles import combine, rescoring_model, with_separate_inputs
from softsearch.runtime.shortlist_files import open_shortlist, shortlist_files
from softsearch.runtime.system import System, open_bundle
from softsearch.search.beam import BeamSearch
from softsearch.search.ensemble import AVERAGES, Average, Ensemble
from softsearch.search.forced_decoding import score_pairs
from softsearch.search.interface import Hypothesis, StepFunction
from softsearch.text.joint_sources import join_sources
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from tests.support.bundles import SRC_LINES, TGT_LINES, bundle_parts, make_bundle, tokenizers
from tests.support.tables import Row, TableModel, brute_force

SOURCES = [tokenizers()[0].encode(line) for line in dict.fromkeys(SRC_LINES)]
SEARCH = BeamSearch(beam=3, n_best=2, max_length_factor=0.0, max_length_offset=8)
FACTS = {"model": "toy", "parameters": "1,234", "config": {"data": {"variant": "lc_tok", "src_lang": "en"}}}


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> list[System]:
    """Three models of the same vocabularies; the last one reads and writes from right to left."""
    folder = tmp_path_factory.mktemp("members")
    for seed, name in enumerate(("a", "b")):
        make_bundle(folder / name, seed=seed, training=FACTS)
    make_bundle(folder / "turned", seed=2, reversed={"src": True, "tgt": True})
    return [open_bundle(folder / name) for name in ("a", "b", "turned")]


def hypotheses(step_fn: StepFunction, sources: Sequence[list[int]] = SOURCES) -> list[list[Hypothesis]]:
    return SEARCH(step_fn, sources)


def tokens(step_fn: StepFunction, sources: Sequence[list[int]] = SOURCES) -> list[list[tuple[int, ...]]]:
    return [[h.tokens for h in n_best] for n_best in hypotheses(step_fn, sources)]


def reading(system: System, tokenizer: SentencePieceTokenizer) -> System:
    return replace(system, tokenizers=(tokenizer, system.tokenizers[1]))


def writing(system: System, tokenizer: SentencePieceTokenizer) -> System:
    return replace(system, tokenizers=(system.tokenizers[0], tokenizer))


def test_a_bundle_is_a_system(systems: list[System]) -> None:
    first = lab_bundle(Path(systems[0].origin))
    assert (first.name, first.backend, first.architecture, first.parameters) == ("a", "onnx", "toy", 1234)
    assert (first.text_form, first.src_lang, first.tgt_lang) == ("lc_tok", "en", "")
    assert first.size_bytes > sum(len(t.model) for t in first.tokenizers)
    assert first.max_src_tokens == 24


def test_what_a_bundle_says_of_its_training_is_printable_text_or_nothing(tmp_path: Path) -> None:
    attack, shown = "\x1b[2J\nOK", r"\x1b[2J\nOK"
    facts = {"model": attack, "parameters": "9" * 5000, "config": {"data": {"src_lang": attack, "tgt_lang": ["de"]}}}
    system = lab_bundle(make_bundle(tmp_path / "b", training=facts))
    assert (system.architecture, system.src_lang, system.tgt_lang) == (shown, shown, "['de']")
    assert system.parameters == 0
    odd = make_bundle(tmp_path / "odd", training={"config": [{"data": 1}], "parameters": None})
    assert lab_bundle(odd).architecture == "unknown"


def test_an_ensemble_is_a_system(systems: list[System], tmp_path: Path) -> None:
    both = lab_ensemble([lab_bundle(Path(system.origin)) for system in systems[:2]], "probs", [1, 3])
    assert (both.name, both.backend, both.architecture, both.parameters) == ("a + b", "onnx", "toy", 2468)
    assert both.origin == ", ".join(system.origin for system in systems[:2])
    short = open_bundle(make_bundle(tmp_path / "short", limits={"max_src_tokens": 9}))
    assert combine([systems[0], short]).max_src_tokens == 9


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("weights", [None, [3.0, 1.0]])
def test_members_translate_together(systems: list[System], weights: list[float] | None, average: Average) -> None:
    first, second, _ = (system.step_fn for system in systems)
    expected = tokens(Ensemble([first, second], weights, average))
    assert tokens(combine(systems[:2], average, weights).step_fn) == expected
    assert expected not in (tokens(first), tokens(second))


def test_a_language_model_is_fused(systems: list[System], tmp_path: Path) -> None:
    first, other = systems[0], open_bundle(make_bundle(tmp_path / "lm", seed=1, reads=False))
    expected = tokens(Ensemble([first.step_fn], language_model=other.step_fn, language_model_weight=0.8))
    assert tokens(combine([first], language_model=other, language_model_weight=0.8).step_fn) == expected
    assert expected != tokens(first.step_fn)
    with pytest.raises(ConfigError, match="/b translates; expected a language model"):
        combine([first], language_model=systems[1], language_model_weight=0.8)


def test_members_may_read_other_pieces_or_in_the_other_direction(systems: list[System]) -> None:
    first, second, _ = systems
    reversed_reader = reading(second, SentencePieceTokenizer(first.tokenizers[0].model, reverse=True))
    together = combine([first, reversed_reader], weights=[0, 1])
    assert tokens(together.step_fn) == tokens(second.step_fn, [source[::-1] for source in SOURCES])
    chars = train_tokenizer(SRC_LINES, kind="char", vocab_size=45)
    together = combine([first, reading(second, chars)], weights=[0, 1])
    encoded = [chars.encode(line) for line in dict.fromkeys(SRC_LINES)]
    assert tokens(together.step_fn) == tokens(second.step_fn, encoded)


class Product(TableModel):
    """The oracle: the normalised geometric mean of table models that read sources of their own."""

    def __init__(self, models: Sequence[TableModel], sources: Sequence[list[int]]) -> None:
        super().__init__()
        self.models, self.sources = models, sources

    def row_log_probs(self, row: Row) -> NDArray[np.float32]:
        rows = [row._replace(src=tuple(ids)) for ids in self.sources]
        parts = [np.exp(model.row_log_probs(row)) for model, row in zip(self.models, rows, strict=True)]
        product = np.sqrt(parts[0] * parts[1])
        return np.asarray(np.log(product / product.sum()))


def test_members_may_read_separate_inputs(systems: list[System]) -> None:
    first, second, _ = systems
    chars = train_tokenizer(TGT_LINES, kind="char", vocab_size=45)
    models = [TableModel(1), TableModel(2)]
    one, other = (replace(s, step_fn=m) for s, m in zip((first, reading(second, chars)), models, strict=True))
    members = with_separate_inputs([one, other], 2)
    ensemble = combine(members)
    assert ensemble.src_lang == "en+en"
    search = BeamSearch(beam=64, n_best=4, max_length_factor=0.0, max_length_offset=3)
    pairs = [("one two", "zwei"), ("ten", "eins vier"), ("", "")]
    texts = [join_sources(pair) for pair in pairs]
    ids = [[t.encode(line) for t, line in zip((first.tokenizers[0], chars), pair, strict=True)] for pair in pairs]
    found = search(ensemble.step_fn, [ensemble.tokenizers[0].encode(text) for text in texts])
    for sources, n_best in zip(ids, found, strict=True):
        expected = brute_force(Product(models, sources), tuple(sources[0]), search)
        assert [h.tokens for h in n_best] == [f.tokens for f in expected]
        assert [h.log_prob for h in n_best] == pytest.approx([f.log_prob for f in expected], abs=1e-4)
    for place, (member, model) in enumerate(zip(members, models, strict=True)):  # alone
        alone = search(member.step_fn, [member.tokenizers[0].encode(text) for text in texts])
        whole = search(model, [sources[place] for sources in ids])
        assert [[h.tokens for h in n_best] for n_best in alone] == [[h.tokens for h in n_best] for n_best in whole]
    joint = ensemble.tokenizers[0]
    assert [joint.decode(joint.encode(text)) for text in texts] == texts
    assert len({t.fingerprint for t in (joint, first.tokenizers[0], chars)}) == 3  # so that texts are encoded for each


def test_a_source_for_each_member_is_needed(systems: list[System]) -> None:
    assert with_separate_inputs(systems, 1) == systems
    with pytest.raises(
        ConfigError, match="3 inputs for 2 models, 0 of them with several sources; expected one for all"
    ):
        with_separate_inputs(systems[:2], 3)
    tagged = train_tokenizer([f"{line} <and> {line}" for line in SRC_LINES], kind="bpe", vocab_size=50, tags=["<and>"])
    several = reading(systems[0], tagged)
    assert with_separate_inputs([several], 2) == [several]
    with pytest.raises(ConfigError, match="2 inputs for 2 models, 1 of them with several sources"):
        with_separate_inputs([several, systems[1]], 2)
    tokenizer = with_separate_inputs(systems[:2], 2)[0].tokenizers[0]
    for line in ("one", "one <and> ", "<and> one", "one <and> two <and> ten", "one <and>  <and> ten"):
        with pytest.raises(InputError, match=r"has \d sources, \d of them with text; expected 2, one for each model"):
            tokenizer.encode(line)


def test_members_that_write_differently_are_refused(systems: list[System]) -> None:
    first, second, right_to_left = systems
    upper = [line.upper() for line in TGT_LINES]
    same_size = train_tokenizer(upper, kind="bpe", vocab_size=first.tokenizers[1].vocab_size)
    other_pieces = writing(second, same_size)
    for other, message in (
        (other_pieces, r"a and .*b have different target vocabularies"),
        (right_to_left, "write in different directions"),
    ):
        with pytest.raises(ConfigError, match=message):
            combine([first, other])


def test_a_shortlist_holds_for_every_member(systems: list[System], tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    src_vocab, tgt_vocab = (tokenizer.vocab_size for tokenizer in tokenizers())
    tables = np.arange(tgt_vocab)[::-1], (np.arange(src_vocab)[:, None] * 3) % tgt_vocab
    bundle = write_bundle(tmp_path / "b", files | shortlist_files(*tables), manifest)
    system, shortlist = open_bundle(bundle), open_shortlist(bundle, 8)
    for members in ([system], [system, systems[1]]):
        step_fn = combine(members, shortlist=shortlist).step_fn
        for source, n_best in zip(SOURCES, tokens(step_fn), strict=True):
            allowed = set(shortlist([source]).tokens.tolist())
            assert len(allowed) < tgt_vocab
            assert {token for ids in n_best for token in ids} <= allowed
    everything = combine([system], shortlist=open_shortlist(bundle, tgt_vocab))
    for ours, theirs in zip(hypotheses(everything.step_fn), hypotheses(system.step_fn), strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        np.testing.assert_allclose([h.score for h in ours], [h.score for h in theirs], atol=1e-5)


def test_a_reranker_needs_no_common_pieces(systems: list[System]) -> None:
    first, second, _ = systems
    tgt = first.tokenizers[1]
    right_to_left = writing(second, SentencePieceTokenizer(tgt.model, reverse=True))
    chars = writing(second, train_tokenizer(TGT_LINES, kind="char", vocab_size=55))
    ids, text = SOURCES[:1], "eins vier zehn"
    encoded = tgt.encode(text)
    same, backwards, spelt = (rescoring_model(system, first.tokenizers) for system in (second, right_to_left, chars))
    assert (same.src, same.tgt, same.back) == (None, None, None)
    assert backwards.tgt
    assert backwards.tgt(encoded) == encoded[::-1]
    assert spelt.tgt
    assert spelt.tgt(encoded) == chars.tokenizers[1].encode(text)
    assert spelt.back
    assert spelt.back(spelt.tgt(encoded)) == encoded
    assert backwards.score(ids, [encoded]) == same.score(ids, [encoded[::-1]])
    n_best = [Hypothesis((5, 6, 7), -1.0, -1.0, None, False), Hypothesis((8,), -1.0, -1.0, None, True)]
    assert backwards.propose(lambda *_: [n_best], ids) == [[(7, 6, 5)]]
    assert same.propose(lambda *_: [n_best], ids) == [[(5, 6, 7)]]


def test_scores_are_in_the_order_of_the_text(systems: list[System]) -> None:
    first, second, _ = systems
    right_to_left = writing(second, SentencePieceTokenizer(first.tokenizers[1].model, reverse=True))
    for system in (first, right_to_left):
        encoded = system.tokenizers[1].encode(TGT_LINES[0])
        (pair,) = system.score([SOURCES[0]], [encoded])
        (expected,) = score_pairs(system.step_fn, SOURCES[:1], [encoded], batch_tokens=100)
        *log_probs, eos = expected.token_log_probs
        in_order = log_probs[::-1] if system is right_to_left else log_probs
        assert pair.token_log_probs == pytest.approx((*in_order, eos))
        assert pair.log_prob == pytest.approx(expected.log_prob)
