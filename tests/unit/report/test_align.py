"""Alignments of given translations."""

import numpy as np
import pytest

from softsearch.evaluation.inference import evaluating
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.evaluation.word_alignment import align
from softsearch.search.batching import translate_ids
from softsearch.search.forced import forced_alignments
from softsearch.search.greedy import Greedy
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import EOS
from tests.contract.models import TGT_VOCAB, small_model

SOURCES = [[4, 9, 6, 12, EOS], [7, EOS], [EOS], [8, 10, 11, 13, 14, 15, EOS]]


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny", "transformer_ssru"])
def test_what_search_found_is_aligned_as_search_aligned_it(name: str) -> None:
    model = small_model(name, seed=3)
    search = Greedy(max_length_factor=1.0, max_length_offset=4, alignments=True)
    found = [n_best[0] for n_best in translate_ids(TorchStepFunction(model), search, SOURCES, batch_tokens=100)]
    targets = [h.tokens if h.truncated else (*h.tokens, EOS) for h in found]
    assert len({len(target) for target in targets}) > 1
    model.train()
    with evaluating(model):
        forced = forced_alignments(TorchStepFunction(model), SOURCES, targets, batch_tokens=100)
    assert model.training
    assert forced is not None
    for hypothesis, source, target, matrix in zip(found, SOURCES, targets, forced, strict=True):
        assert matrix.shape == (len(target), len(source))
        assert matrix == pytest.approx(hypothesis.alignments, abs=1e-6)


def test_a_model_without_attention_has_no_alignments() -> None:
    assert forced_alignments(TorchStepFunction(small_model("gru")), SOURCES, SOURCES, batch_tokens=100) is None


@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True), (True, True)])
def test_pieces_stand_in_the_order_of_the_text(reverse: tuple[bool, bool]) -> None:
    trained = train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)
    src, tgt = (SentencePieceTokenizer(trained.model, reverse=side) for side in reverse)
    model, pairs = small_model("rnnsearch", seed=2), [("abc d", "fed"), ("g", "abcdef")]
    step_fn = TorchStepFunction(model.eval())
    found = align(step_fn, (src, tgt), *zip(*pairs, strict=True), units="pieces")
    assert found is not None
    assert found[0].src == ["▁", "a", "b", "c", "▁", "d", "</s>"]
    assert [aligned.tgt[-1] for aligned in found] == ["</s>", "</s>"]
    for (source, target), aligned in zip(pairs, found, strict=True):
        read, written = [*src.encode(source), EOS], [*tgt.encode(target), EOS]
        (matrix,) = forced_alignments(step_fn, [read], [written], batch_tokens=100) or []
        # All but EOS, which stays at the end, is turned around.
        rows, columns = (
            [*range(len(ids) - 1)[:: -1 if turned else 1], len(ids) - 1]
            for ids, turned in ((written, reverse[1]), (read, reverse[0]))
        )
        assert aligned.weights == pytest.approx(matrix[rows][:, columns], abs=1e-6)
        assert np.allclose(aligned.weights.sum(axis=1), 1, atol=1e-5)
