"""Scores of token ids against sacreBLEU on the texts, one pair at a time."""

from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from softsearch.evaluation.inference import SentenceScore
from softsearch.evaluation.metrics import BLEU
from softsearch.evaluation.sentence_scores import PairwiseCHRF
from softsearch.text.tokenizer import train_tokenizer

TEXTS = [
    "Two dogs run on the beach.",
    "Two dogs are running along the beach!",
    "A dog runs.",
    "Zwei Hunde laufen am Strand entlang, sagt man (oft).",
    "a",
    "ab ab ab",
    "",
]
TOKENIZER = train_tokenizer([*TEXTS, "the quick brown fox"] * 3, kind="bpe", vocab_size=80)
IDS = [TOKENIZER.encode(text) for text in TEXTS]


@pytest.mark.parametrize(
    "options", [{}, {"word_order": 2}, {"beta": 1, "lowercase": True}, {"whitespace": True}, {"eps_smoothing": True}]
)
def test_chrf_of_all_pairs_is_that_of_each(options: dict[str, Any]) -> None:
    metric = CHRF(**options)
    expected = [[metric.sentence_score(ours, [theirs]).score for theirs in TEXTS[1:]] for ours in TEXTS]
    found = PairwiseCHRF(metric, TOKENIZER)(IDS, IDS[1:])
    assert found.shape == (len(IDS), len(IDS) - 1)
    np.testing.assert_array_equal(found, expected)
    assert len({*found.flat}) > 15


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(4, TOKENIZER.vocab_size - 1), max_size=8), min_size=1, max_size=5))
def test_chrf_of_any_ids(sentences: list[list[int]]) -> None:
    metric, texts = CHRF(), list(map(TOKENIZER.decode, sentences))
    expected = [[metric.sentence_score(ours, [theirs]).score for theirs in texts] for ours in texts]
    np.testing.assert_array_equal(PairwiseCHRF(metric, TOKENIZER)(sentences, sentences), expected)


def test_sentence_bleu_is_sacrebleus() -> None:
    score = SentenceScore(BLEU(), TOKENIZER)
    for ours, text in zip(IDS, TEXTS, strict=True):
        for theirs, reference in zip(IDS, TEXTS, strict=True):
            assert 100 * score(ours, theirs) == pytest.approx(sacrebleu.sentence_bleu(text, [reference]).score)
    assert score(IDS[0], IDS[0]) == pytest.approx(1.0)
