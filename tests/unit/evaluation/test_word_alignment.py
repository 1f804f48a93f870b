"""From pieces to words, links and counts."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from softsearch.errors import ConfigError
from softsearch.evaluation.inference import TorchStepFunction, evaluating
from softsearch.evaluation.word_alignment import (
    Alignment,
    Sentence,
    Units,
    align,
    align_by_head,
    attention_counts,
    encode_sentences,
    links,
    pharaoh,
)
from softsearch.search.batching import translate_ids
from softsearch.search.forced_decoding import forced_alignments
from softsearch.search.greedy import Greedy
from softsearch.testing.models import TGT_VOCAB, small_model
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, UNK
from tests.unit.evaluation.systems import TOKENIZER

SOURCES = [[4, 9, 6, 12], [7], [], [8, 10, 11, 13, 14, 15]]
PAIRS = [("a b Rex d", "e Pudel a"), ("c", "c c"), ("x y a", "b new one"), ("Rex", "Rex"), ("m l k", "f")] * 2


@pytest.fixture(scope="module")
def step_fn() -> TorchStepFunction:
    return TorchStepFunction(small_model("rnnsearch", seed=2))


@pytest.mark.parametrize("units", ["words", "pieces"])
def test_a_translation_that_was_cut_before_its_first_token_has_no_rows(
    step_fn: TorchStepFunction, units: Units
) -> None:
    tokenizer = train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)
    sources, targets = (
        encode_sentences(tokenizer, ["ab c", "d"]),
        [Sentence([], truncated=True), Sentence(tokenizer.encode("d"), truncated=True)],
    )
    empty, other = align(step_fn, (tokenizer, tokenizer), sources, targets, units=units) or []
    assert empty.tgt == []
    assert empty.weights.shape == (0, len(empty.src))
    assert other.weights.shape == (len(other.tgt), len(other.src))


def test_weights_of_words_by_hand(step_fn: TorchStepFunction) -> None:
    tokenizer = train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)
    sources, targets = (encode_sentences(tokenizer, [text]) for text in ("ab c", "d ef"))
    (found,) = align(step_fn, (tokenizer, tokenizer), sources, targets, units="words") or []
    src, tgt = (tokenizer.encode(text) for text in ("ab c", "d ef"))
    (pieces,) = forced_alignments(step_fn, [src], [tgt], batch_tokens=100) or []
    assert (found.src, found.tgt) == (["ab", "c", "</s>"], ["d", "ef", "</s>"])
    assert pieces.shape == (6, 6)  # d is two pieces, ef is three, and the end
    assert found.weights[1, 0] == pytest.approx(pieces[2:5, 0:3].sum(axis=1).mean())
    assert found.weights.sum(axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    (alone,) = align(step_fn, (tokenizer, tokenizer), sources, targets, units="pieces") or []
    assert alone.src == ["▁", "a", "b", "▁", "c", "</s>"]
    assert alone.weights == pytest.approx(pieces)


@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True)])
def test_words_of_any_direction_and_unknown_ones(step_fn: TorchStepFunction, reverse: tuple[bool, bool]) -> None:
    src, tgt = (SentencePieceTokenizer(TOKENIZER.model, reverse=side) for side in reverse)
    sources, targets = encode_sentences(src, ["a xx yy b"]), encode_sentences(tgt, ["c zz"])
    (found,) = align(step_fn, (src, tgt), sources, targets, units="words") or []
    assert (found.src, found.tgt) == (["a", "xx", "yy", "b", "</s>"], ["c", "zz", "</s>"])
    ids = [t.encode(text) for t, text in ((src, "a xx yy b"), (tgt, "c zz"))]
    (plain,) = forced_alignments(step_fn, ids[:1], ids[1:], batch_tokens=100) or []
    rows, columns = ([*range(n)[:: -1 if turned else 1], n] for n, turned in ((2, reverse[1]), (4, reverse[0])))
    assert found.weights == pytest.approx(plain[rows][:, columns])


def test_ids_that_a_model_has_written_are_words_too(step_fn: TorchStepFunction) -> None:
    cut = TOKENIZER.encode("c zz d")
    sources = encode_sentences(TOKENIZER, ["a b"])
    (found,) = align(step_fn, (TOKENIZER, TOKENIZER), sources, [Sentence(cut, truncated=True)], units="words") or []
    assert found.tgt == ["c", "<unk>", "d"]


def test_links_leave_the_ends_out() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.4, 0.1, 0.5], [0.0, 0.9, 0.1]], dtype=np.float32)
    assert links(Alignment(["a", "b", "</s>"], ["x", "y", "</s>"], weights)) == [(1, 0), (0, 1)]
    assert links(Alignment(["a", "b", "</s>"], ["x", "y", "z"], weights)) == [(1, 0), (0, 1), (1, 2)]
    assert links(Alignment(["</s>"], ["x", "</s>"], weights[:2, :1])) == []


def test_pharaohs_format() -> None:
    assert pharaoh([(1, 0), (0, 1), (0, 0)]) == "0-0 0-1 1-0"
    assert pharaoh([]) == ""


@pytest.mark.parametrize("name", ["transformer_tiny", "transformer_ssru", "decoder_only", "gao2020"])
@pytest.mark.parametrize("cut", [False, True])
def test_each_head_is_what_a_model_with_its_alignments_returns(name: str, cut: bool) -> None:
    source, target = Sentence(TOKENIZER.encode("a b c")), Sentence(TOKENIZER.encode("c zz d"), truncated=cut)
    model = small_model(name, seed=3)
    decoder: Any = model.decoder
    step_fn, tokenizers = TorchStepFunction(model), (TOKENIZER, TOKENIZER)
    found = align_by_head(step_fn, tokenizers, source, target, units="words")
    heads = {f"layer {layer}, head {head}": (layer, head) for layer in range(2) for head in range(2)}
    assert list(found) == ["mean of all layers and heads", *heads]
    for called, (layer, head) in heads.items():
        decoder.alignment_layer, decoder.alignment_head = layer, head
        (expected,) = align(step_fn, tokenizers, [source], [target], units="words") or []
        assert found[called] == pytest.approx(expected.weights, abs=1e-6)
    mean = found.pop("mean of all layers and heads")
    assert mean == pytest.approx(np.mean([*found.values()], axis=0), abs=1e-6)


def test_a_decoder_with_one_attention_has_no_heads(step_fn: TorchStepFunction) -> None:
    sentence = Sentence(TOKENIZER.encode("a"))
    assert align_by_head(step_fn, (TOKENIZER, TOKENIZER), sentence, sentence, units="words") == {}


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny", "transformer_ssru"])
def test_what_search_found_is_aligned_as_search_aligned_it(name: str) -> None:
    model = small_model(name, seed=3)
    search = Greedy(max_length_factor=1.0, max_length_offset=4, alignments=True)
    found = [n_best[0] for n_best in translate_ids(TorchStepFunction(model), search, SOURCES, batch_tokens=100)]
    assert len({hypothesis.length for hypothesis in found}) > 1
    targets = [hypothesis.tokens for hypothesis in found]
    model.train()
    with evaluating(model):
        forced = forced_alignments(TorchStepFunction(model), SOURCES, targets, batch_tokens=100)
    assert model.training
    assert forced is not None
    for hypothesis, source, target, matrix in zip(found, SOURCES, targets, forced, strict=True):
        assert matrix.shape == (len(target) + 1, len(source) + 1)
        assert matrix[: hypothesis.length] == pytest.approx(hypothesis.alignments, abs=1e-6)


def test_a_model_without_attention_has_no_alignments() -> None:
    step_fn, sentences = TorchStepFunction(small_model("gru")), [Sentence(ids) for ids in SOURCES]
    assert forced_alignments(step_fn, SOURCES, SOURCES, batch_tokens=100) is None
    assert align(step_fn, (TOKENIZER, TOKENIZER), sentences, sentences, units="words") is None


@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True), (True, True)])
def test_pieces_stand_in_the_order_of_the_text(reverse: tuple[bool, bool]) -> None:
    trained = train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)
    src, tgt = (SentencePieceTokenizer(trained.model, reverse=side) for side in reverse)
    model, pairs = small_model("rnnsearch", seed=2), [("abc d", "fed"), ("g", "abcdef")]
    step_fn = TorchStepFunction(model.eval())
    sides = (encode_sentences(t, lines) for t, lines in zip((src, tgt), zip(*pairs, strict=True), strict=True))
    found = align(step_fn, (src, tgt), *sides, units="pieces")
    assert found is not None
    assert found[0].src == ["▁", "a", "b", "c", "▁", "d", "</s>"]
    assert [aligned.tgt[-1] for aligned in found] == ["</s>", "</s>"]
    for (source, target), aligned in zip(pairs, found, strict=True):
        read, written = src.encode(source), tgt.encode(target)
        (matrix,) = forced_alignments(step_fn, [read], [written], batch_tokens=100) or []
        # All but EOS, which stays at the end, is turned around.
        rows, columns = (
            [*range(len(ids))[:: -1 if turned else 1], len(ids)]
            for ids, turned in ((written, reverse[1]), (read, reverse[0]))
        )
        assert aligned.weights == pytest.approx(matrix[rows][:, columns], abs=1e-6)
        assert np.allclose(aligned.weights.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", ["rnnsearch", "transformer_tiny"])
@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True)])
def test_counts_are_those_of_a_loop(name: str, reverse: tuple[bool, bool]) -> None:
    assert TOKENIZER.vocab_size == TGT_VOCAB
    model = small_model(name, seed=3)
    tokenizers = tuple(SentencePieceTokenizer(TOKENIZER.model, reverse=side) for side in reverse)
    expected: Counter[tuple[str, str]] = Counter()
    for pair in PAIRS:
        read, written = (text.split()[:: -1 if turned else 1] for text, turned in zip(pair, reverse, strict=True))
        ids = [[TOKENIZER.encode(word)[0] for word in words] for words in (read, written)]
        state, token = model.encode(torch.tensor([[*ids[0], EOS]])), BOS
        for place, word in enumerate(written):
            with torch.no_grad():
                output = model.decoder.step(torch.tensor([token]), state)
            looked_at = read[int(output.alignments[0, : len(read)].argmax())]
            expected[looked_at, word] += 1
            state, token = output.state, ids[1][place]
    done: list[int] = []
    found = attention_counts(TorchStepFunction(model), tokenizers, PAIRS, done.append)  # type: ignore[arg-type]
    assert found == expected
    assert sum(done) == len(PAIRS)
    assert any(TOKENIZER.encode(a) == [UNK] for a, _ in found)


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(ConfigError, match="the model has no attention"):
        attention_counts(TorchStepFunction(small_model("gru")), (TOKENIZER, TOKENIZER), PAIRS)


def test_smaller_units_than_words_are_refused() -> None:
    pieces = train_tokenizer(["abc def ghi jkl m"] * 3, kind="char", vocab_size=TGT_VOCAB)
    with pytest.raises(ConfigError, match="smaller units than words"):
        attention_counts(TorchStepFunction(small_model("rnnsearch")), (TOKENIZER, pieces), PAIRS)


def test_no_text_has_no_counts() -> None:
    assert attention_counts(TorchStepFunction(small_model("rnnsearch")), (TOKENIZER, TOKENIZER), []) == Counter()
