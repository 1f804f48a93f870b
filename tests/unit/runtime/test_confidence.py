"""Confidence against a transcription of its formulas, and through the Translator."""

import math
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import ConfigError
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.search.confidence import Confidence, chrf, measure_confidence
from softsearch.search.sampling import Sampling
from softsearch.text.vocabulary import BOS
from tests.support.bundles import SRC_LINES, make_bundle, tokenizers
from tests.support.tables import Row, TableModel, alignment_of

SOURCES = [(4,), (1, 4, 1), (4, 4, 4, 1)]


@pytest.mark.parametrize("has_attention", [True, False])
@pytest.mark.parametrize(
    "search", [BeamSearch(beam=4, n_best=3), Sampling(n_best=5, max_length_factor=0, max_length_offset=3)]
)
def test_figures_are_those_of_the_formulas(search: Any, has_attention: bool) -> None:
    model: Any = TableModel(3, eos_bias=0.5, has_alignments=has_attention)
    lists = search(model, SOURCES)
    found = iter(measure_confidence(model, tokenizers()[1], search, SOURCES, lists))
    cut_off = 0
    for src, hypothesis in [(src, h) for src, n_best in zip(SOURCES, lists, strict=True) for h in n_best]:
        confidence = next(found)
        log_probs, entropies, looks = [], [], []
        for place, token in enumerate(hypothesis.written):
            row = Row(src, (BOS, *hypothesis.written[:place]))
            every = model.row_log_probs(row).tolist()
            log_probs.append(every[token])
            entropies.append(-sum(math.exp(each) * each for each in every))
            looks.append(-sum(a * math.log(a) for a in alignment_of(row, len(src) + 1).tolist()))
        cut_off += hypothesis.truncated
        length = len(hypothesis.written)
        assert confidence.token_log_probs == pytest.approx(log_probs)
        assert confidence.mean_log_prob == pytest.approx(hypothesis.log_prob / length)
        assert confidence.min_log_prob == min(confidence.token_log_probs)
        assert confidence.softmax_entropy == pytest.approx(sum(entropies) / length)
        expected = pytest.approx(sum(looks) / length, rel=1e-6) if has_attention else None
        assert confidence.attention_entropy == expected
        assert confidence.agreement is None
    assert next(found, None) is None
    assert cut_off > 0 or isinstance(search, BeamSearch)


@given(*[st.text(st.sampled_from("ab cdé"), max_size=14)] * 2)
def test_chrf_is_sacrebleus(text: str, reference: str) -> None:
    assert 100 * chrf(text, reference) == pytest.approx(sacrebleu.sentence_chrf(text, [reference]).score)


def test_translations_come_with_it_if_asked(translator: Translator) -> None:
    lines = [SRC_LINES[0], "", SRC_LINES[3]]
    plain, asked = translator.translate(lines, n_best=3), translator.translate(lines, n_best=3, confidence=True)
    assert [each.text for each in asked] == [each.text for each in plain]
    assert plain[0].confidence is None
    assert asked[1].confidence is None
    for line, best in zip(lines, asked, strict=True):
        for each in best.n_best if line else ():
            assert each.confidence is not None
            assert len(each.confidence.token_log_probs) == len(each.tgt_pieces)
            assert sum(each.confidence.token_log_probs) == pytest.approx(each.log_prob, abs=1e-4)


def test_agreement_is_the_mean_chrf_with_the_models_samples(translator: Translator) -> None:
    (best,) = translator.translate([SRC_LINES[0]], agreement=6)
    (drawn,) = translator.translate([SRC_LINES[0]], search="sample", n_best=6)
    assert best.confidence is not None
    assert best.confidence.agreement == pytest.approx(fmean(chrf(best.text, each.text) for each in drawn.n_best))
    assert 0 < best.confidence.agreement < 1
    (judged,) = translator.translate([SRC_LINES[0]], search="sample", agreement=6)
    (others,) = translator.translate([SRC_LINES[0]], search="sample", n_best=6, seed=2)
    assert judged.confidence is not None
    assert judged.confidence.agreement == pytest.approx(fmean(chrf(judged.text, each.text) for each in others.n_best))


def test_that_of_a_split_line_is_of_all_tokens(translator: Translator) -> None:
    (whole,) = translator.translate([" ".join(f"{line}." for line in SRC_LINES)], agreement=2)
    assert whole.confidence is not None
    assert len(whole.confidence.token_log_probs) == len(whole.tgt_pieces)
    assert whole.confidence.mean_log_prob == pytest.approx(whole.log_prob / len(whole.tgt_pieces), abs=1e-4)
    one, three = np.array([[-1.0], [2.0], [0.5]]), np.array([[-4.0, -4.0, -2.0], [1.0, 0.0, 1.0], [0.5, 0.5, 0.9]])
    joined = Confidence(one, 0.2).followed_by([Confidence(three, 0.8)])
    figures = (joined.mean_log_prob, joined.min_log_prob, joined.softmax_entropy, joined.attention_entropy)
    assert (*figures, joined.agreement) == pytest.approx((-2.75, -4.0, 1.0, 0.6, 0.65))
    assert joined.token_log_probs == (-1.0, -4.0, -4.0, -2.0)


def test_tokens_are_in_the_order_of_the_text(tmp_path: Path) -> None:
    backwards = Translator(make_bundle(tmp_path / "b", reversed={"src": False, "tgt": True}), threads=1)
    (best,) = backwards.translate([SRC_LINES[0]], confidence=True)
    (plain,) = Translator(make_bundle(tmp_path / "c"), threads=1).translate([SRC_LINES[0]], confidence=True)
    assert best.confidence is not None
    assert plain.confidence is not None
    *tokens, end = plain.confidence.token_log_probs
    np.testing.assert_allclose(best.confidence.token_log_probs, [*tokens[::-1], end], atol=1e-5)


@pytest.mark.parametrize("agreement", [-1, 1.5, True])
def test_a_wrong_number_of_samples_is_refused(translator: Translator, agreement: Any) -> None:
    with pytest.raises(ConfigError, match=r"agreement is .*, expected a whole number"):
        translator.translate([SRC_LINES[0]], agreement=agreement)
