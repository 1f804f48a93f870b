"""Replacement of unknown words after any search, compared with alignments that a search collects."""

from dataclasses import replace

import pytest

from softsearch.errors import ConfigError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.evaluation.systems import LabSystem
from softsearch.runtime.stages.unknown_words import with_known_words
from softsearch.search.batching import translate_ids
from softsearch.search.exact import ExactSearch
from softsearch.search.sampling import Sampling
from softsearch.testing.models import TGT_VOCAB, small_model
from softsearch.text.tokenizer import train_tokenizer
from softsearch.text.unknown_words import UnknownWords
from softsearch.text.vocabulary import UNK
from tests.unit.evaluation.systems import TOKENIZER as WORDS
from tests.unit.evaluation.systems import system_of

SOURCES = ["a Rex c", "Rex", "d e f g", "x y a z", "b a Dog"]


def a_system(model: str) -> LabSystem:
    return system_of(TorchStepFunction(small_model(model, seed=3)))


@pytest.mark.parametrize("model", ["rnnsearch", "transformer_tiny"])
def test_texts_are_those_of_the_alignments_of_the_search(model: str) -> None:
    system = a_system(model)
    ids = [WORDS.encode(line) for line in SOURCES]
    search = Sampling(n_best=20, max_length_factor=1.0, max_length_offset=4, alignments=True)
    samples = translate_ids(system.step_fn, search, ids, batch_tokens=1000)
    found, sources = [h for n_best in samples for h in n_best], [line for line in SOURCES for _ in range(20)]
    ids = [WORDS.encode(line) for line in sources]
    assert sum(UNK in hypothesis.tokens for hypothesis in found) > 1
    for dictionary in ({}, {"Rex": "K\u00f6nig"}):
        by_search = UnknownWords(WORDS, WORDS, dictionary)
        expected = [by_search(line, h.tokens, h.alignments) for line, h in zip(sources, found, strict=True)]
        blind = [replace(h, alignments=None) for h in found]
        assert with_known_words(system, sources, ids, blind, dictionary) == expected


def test_a_search_without_alignments_will_do() -> None:
    system = a_system("rnnsearch")
    ids = [WORDS.encode(line) for line in SOURCES]
    search = ExactSearch(max_length_factor=0.0, max_length_offset=2, max_nodes=50)
    found = [n_best[0] for n_best in translate_ids(system.step_fn, search, ids, batch_tokens=1000)]
    assert "\u2047" not in "".join(with_known_words(system, SOURCES, ids, found, {}))


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(ConfigError, match="here has no attention"):
        with_known_words(a_system("gru"), [], [], [], {})
    pieces = train_tokenizer(["abc def ghi jkl m"] * 3, kind="char", vocab_size=TGT_VOCAB)
    with pytest.raises(ConfigError, match="the target vocabulary has smaller units"):
        with_known_words(replace(a_system("rnnsearch"), tokenizers=(WORDS, pieces)), [], [], [], {})
