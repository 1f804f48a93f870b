"""Systems: names that tell them apart, and ensembles of those that can write together."""

from dataclasses import replace
from pathlib import Path

import pytest

from softsearch.app.systems.open import System, combine, open_any, open_systems
from softsearch.errors import BundleError, CheckpointError, ConfigError
from softsearch.runtime.models import companion
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Hypothesis
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import EOS
from tests.unit.runtime.bundles import SRC_LINES, TGT_LINES, make_bundle

FACTS = {"model": "toy", "parameters": "1,234", "config": {"data": {"variant": "lc_tok", "src_lang": "en"}}}


@pytest.fixture
def systems(tmp_path: Path) -> list[System]:
    """Two bundles with the same tokenizers."""
    for seed, name in enumerate(("a", "b")):
        make_bundle(tmp_path / name / "toy", seed=seed, training=FACTS)
    return open_systems(None, [str(tmp_path / name / "toy") for name in ("a", "b")], None)


def sources(system: System) -> list[list[int]]:
    return [[*system.tokenizers[0].encode(line), EOS] for line in SRC_LINES[:4]]


def reading(system: System, tokenizer: SentencePieceTokenizer) -> System:
    return replace(system, tokenizers=(tokenizer, system.tokenizers[1]))


def writing(system: System, tokenizer: SentencePieceTokenizer) -> System:
    return replace(system, tokenizers=(system.tokenizers[0], tokenizer))


def test_a_bundle_is_a_system(systems: list[System]) -> None:
    first = systems[0]
    assert (first.backend, first.architecture, first.parameters) == ("onnx", "toy", 1234)
    assert (first.text_form, first.src_lang, first.tgt_lang) == ("lc_tok", "en", "")
    assert first.size_bytes > sum(len(t.model) for t in first.tokenizers)
    assert not first.tokenizers[1].reverse
    assert [system.name for system in systems] == ["a/toy", "b/toy"]


def test_names_are_unique_at_any_rate(tmp_path: Path) -> None:
    make_bundle(tmp_path / "toy")
    path = str(tmp_path / "toy")
    names = [system.name for system in open_any([path, path])]
    assert len(set(names)) == 2
    assert [system.name for system in open_any([path])] == ["toy"]


def test_nothing_and_what_is_not_there_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no system is named; expected ckpt="):
        open_systems(None, None, None)
    with pytest.raises(ConfigError, match=r"ckpt=3: expected a path"):
        open_systems(3, None, None)  # type: ignore[arg-type]
    with pytest.raises(BundleError, match="cannot be read"):
        open_systems(None, str(tmp_path / "missing"), None)
    with pytest.raises(CheckpointError, match="does not exist"):
        open_any([str(tmp_path / "missing")])


def test_an_ensemble_is_a_system(systems: list[System]) -> None:
    whole = combine(systems, "probs", [1, 3])
    assert (whole.name, whole.backend, whole.architecture) == ("a/toy + b/toy", "onnx", "toy")
    assert whole.parameters == 2468
    assert whole.origin == ", ".join(system.origin for system in systems)
    alone = combine(systems, "probs", [0, 1])
    search = BeamSearch(beam=3, n_best=3)
    ours, theirs = (search(system.step_fn, sources(systems[0])) for system in (alone, systems[1]))
    assert [[h.tokens for h in n_best] for n_best in ours] == [[h.tokens for h in n_best] for n_best in theirs]


def test_members_may_read_other_pieces_or_in_the_other_direction(systems: list[System]) -> None:
    first, second = systems
    src = first.tokenizers[0]
    ids = sources(first)
    turned = reading(second, SentencePieceTokenizer(src.model, reverse=True))
    (found,), (expected,) = (
        BeamSearch()(combine([first, turned], weights=[0, 1]).step_fn, ids[:1]),
        BeamSearch()(second.step_fn, [[*reversed(ids[0][:-1]), EOS]]),
    )
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    chars = train_tokenizer(SRC_LINES, kind="char", vocab_size=45)
    member = reading(second, chars)
    (found,), (expected,) = (
        BeamSearch()(combine([first, member], weights=[0, 1]).step_fn, ids[:1]),
        BeamSearch()(second.step_fn, [[*chars.encode(SRC_LINES[0]), EOS]]),
    )
    assert [h.tokens for h in found] == [h.tokens for h in expected]


def test_members_that_write_other_pieces_are_refused(systems: list[System]) -> None:
    first, second = systems
    tgt = first.tokenizers[1]
    same_size = train_tokenizer([line.upper() for line in TGT_LINES], kind="bpe", vocab_size=tgt.vocab_size)
    with pytest.raises(ConfigError, match=r"a/toy and .*b/toy have different target vocabularies"):
        combine([first, writing(second, same_size)])
    with pytest.raises(ConfigError, match="different target vocabularies"):
        combine([first], language_model=writing(second, same_size), language_model_weight=0.1)
    with pytest.raises(ConfigError, match="write in different directions"):
        combine([first, writing(second, SentencePieceTokenizer(tgt.model, reverse=True))])


def test_a_reranker_needs_no_common_pieces(systems: list[System]) -> None:
    first, second = systems
    tgt = first.tokenizers[1]
    turned = writing(second, SentencePieceTokenizer(tgt.model, reverse=True))
    chars = writing(second, train_tokenizer(TGT_LINES, kind="char", vocab_size=55))
    ids, text = sources(first)[:1], "eins vier zehn"
    tokens = tgt.encode(text)
    same, backwards, spelt = (companion(s.step_fn, s.tokenizers, first.tokenizers) for s in (second, turned, chars))
    assert (same.src, same.tgt, same.back) == (None, None, None)
    assert backwards.tgt
    assert backwards.tgt(tokens) == tokens[::-1]
    assert spelt.tgt
    assert spelt.tgt(tokens) == chars.tokenizers[1].encode(text)
    assert spelt.back
    assert spelt.back(spelt.tgt(tokens)) == tokens
    assert backwards.score(ids, [tokens]) == same.score(ids, [tokens[::-1]])
    found = [Hypothesis((5, 6, 7), -1.0, -1.0, None, False), Hypothesis((8,), -1.0, -1.0, None, True)]
    assert backwards.propose(lambda *_: [found], ids) == [[(7, 6, 5)]]
    assert same.propose(lambda *_: [found], ids) == [[(5, 6, 7)]]


def test_what_a_bundle_says_of_its_training_is_printable_text_or_nothing(tmp_path: Path) -> None:
    attack, shown = "\x1b[2J\nOK", r"\x1b[2J\nOK"
    facts = {"model": attack, "parameters": "9" * 5000, "config": {"data": {"src_lang": attack, "tgt_lang": ["de"]}}}
    system = open_any([str(make_bundle(tmp_path / "b", training=facts).path)])[0]
    assert (system.architecture, system.src_lang, system.tgt_lang) == (shown, shown, "['de']")
    assert system.parameters == 0
    odd = make_bundle(tmp_path / "odd", training={"config": [{"data": 1}], "parameters": None})
    assert open_any([str(odd.path)])[0].architecture == "unknown"
