"""Tables of the n-gram model; its probabilities are tested in tests/contract/test_transcriptions.py."""

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch

from softsearch.app.config.validation import build
from softsearch.errors import ConfigError
from softsearch.models.kneser_ney import _discounts
from softsearch.models.ngram import NGramDecoder
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import TGT_VOCAB, model_config, small_model, together
from softsearch.text.vocabulary import BOS, PAD, UNK
from tests.support.transcriptions.language_models import KneserNey


@pytest.fixture
def model() -> Seq2Seq:
    return small_model("ngram")


def counted(sentences: list[list[int]]) -> Seq2Seq:
    model = small_model("ngram", "model.decoder.order=3")
    decoder(model).count_ngrams(lambda: [together(sentences)])
    return model


def decoder(model: Seq2Seq) -> NGramDecoder:
    assert isinstance(model.decoder, NGramDecoder)
    return model.decoder


def probabilities(model: Seq2Seq, read: list[int]) -> torch.Tensor:
    """p of each token after BOS and the tokens ``read``."""
    return model(torch.tensor([[3]]), torch.tensor([[BOS, *read]]))[0, -1].double().exp()


def test_probabilities_sum_to_1_after_any_context(model: Seq2Seq) -> None:
    rng = np.random.default_rng(0)
    seen, unseen = [4, 4, 5, 4], [PAD, UNK, BOS, UNK]
    for read in ([], [4], seen, unseen, [16, 16, 16, 16, 16], *rng.integers(0, TGT_VOCAB, (20, 6)).tolist()):
        p = probabilities(model, read)
        assert float(p.sum()) == pytest.approx(1, abs=1e-6)
        assert p.min() > 0


def test_a_context_that_does_not_occur_is_that_of_the_words_after_its_first() -> None:
    model = counted([[4, 5, 6], [7, 5, 8], [4, 5, 6], [9]])
    assert torch.equal(probabilities(model, [9, 5]), probabilities(model, [11, 9, 5]))  # 9 5 does not occur
    assert not torch.allclose(probabilities(model, [4, 5]), probabilities(model, [9, 5]))
    unread = probabilities(model, [9, 12])  # neither does 12: what is left are words without context
    assert torch.allclose(unread, decoder(model).output_projection.unigrams.double(), atol=1e-7)


def test_small_texts_have_the_fallback_discounts() -> None:
    sentences = [[4, 5, 6], [7, 5, 8], [4, 5, 6], [9]]
    expected = KneserNey(sentences, 3, TGT_VOCAB)
    assert expected.D[3] == [0, 0.5, 1, 1.5]
    model = counted(sentences)
    for read in ([], [4], [4, 5], [5, 6], [13]):
        found = [expected.p(word, (BOS, *read)) for word in range(TGT_VOCAB)]
        np.testing.assert_allclose(probabilities(model, read), found, rtol=1e-6)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [  # n-grams seen 1, 2, 3 and 4 times, as in lm/builder/adjust_counts.cc of KenLM
        ((6, 3, 1, 1), (0.5, 1.5, 1)),  # Y = 6 / 12
        ((6, 3, 1, 0), (0.5, 1.5, 3)),  # n_4 may be 0
        ((6, 3, 4, 2), (0.5, 0, 2)),  # and so may a discount
        ((6, 3, 2, 3), (0.5, 1, 0)),
        ((0, 3, 1, 1), None),
        ((6, 0, 1, 1), None),
        ((6, 3, 0, 1), None),
        ((6, 3, 5, 1), None),  # D_2 = -0.5
    ],
)
def test_discounts_are_those_of_kenlm(seen: tuple[int, ...], expected: tuple[float, ...] | None) -> None:
    counts = [count for count, ngrams in enumerate(seen, start=1) for _ in range(ngrams)]
    assert _discounts(2, torch.tensor(counts)) == pytest.approx(expected or (0.5, 1.0, 1.5))
    assert KneserNey.discounts(counts) == pytest.approx([0, *(expected or (0.5, 1.0, 1.5))])


def test_sentences_shorter_than_the_order_and_empty_ones() -> None:
    model = counted([[], [4], []])
    assert float(probabilities(model, [4, 5, 6, 7]).sum()) == pytest.approx(1, abs=1e-6)
    assert probabilities(model, []).argmax() == 3  # EOS


@pytest.mark.parametrize("at_once", [1, 3, 50])
def test_text_in_parts_is_counted_as_one(at_once: int) -> None:
    rng = np.random.default_rng(1)
    sentences = [rng.integers(4, TGT_VOCAB, rng.integers(0, 9)).tolist() for _ in range(50)]
    model = small_model("ngram", "model.decoder.order=3")
    parts = [together(sentences[begin : begin + at_once]) for begin in range(0, 50, at_once)]
    decoder(model).count_ngrams(lambda: parts)
    expected = counted(sentences).state_dict()
    found = model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected if name.startswith("decoder"))


def test_without_counts_all_words_are_equally_likely() -> None:
    model: Seq2Seq = build(model_config("ngram"), src_vocab_size=TGT_VOCAB, tgt_vocab_size=TGT_VOCAB)
    assert probabilities(model, [4, 5]).tolist() == pytest.approx([1 / TGT_VOCAB] * TGT_VOCAB)


def test_the_tables_of_a_file_need_no_counting(model: Seq2Seq) -> None:
    other: Seq2Seq = build(model_config("ngram"), src_vocab_size=TGT_VOCAB, tgt_vocab_size=TGT_VOCAB)
    decoder(other).make_room(decoder(model).state_dict())
    other.load_state_dict(model.state_dict())
    assert decoder(other).problem() is None
    read = [4, 5, 6, 4]
    assert torch.equal(probabilities(other, read), probabilities(model.float(), read))


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("tables.1.offsets", lambda t: t[:-1], "order 3 has .* offsets, backoffs and n-grams"),
        ("tables.1.offsets", lambda t: t + 1, "order 3 has offsets that are not ranges"),
        ("tables.1.offsets", lambda t: t.flip(0) - t[-1], "order 3 has offsets that are not ranges"),
        ("tables.0.offsets", lambda t: t.where(t < t[-1], 2**31 - 1), "order 2 has offsets that are not ranges"),
        ("tables.2.words", lambda t: t + 5, "order 4 has words outside of the vocabulary of 17"),
        ("tables.2.words", lambda t: -1 - t, "order 4 has words outside of the vocabulary of 17"),
        ("tables.2.words", lambda t: t[1:], "order 4 has .* offsets, backoffs and n-grams"),
        ("tables.3.discounted", lambda t: t[1:], "order 5 has .* offsets, backoffs and n-grams"),
        ("tables.3.backoffs", lambda t: t[1:], "order 5 has .* offsets, backoffs and n-grams"),
        ("unigrams", lambda t: t[1:], "16 words, expected 17"),
    ],
)
def test_damaged_tables_are_named(
    table: str, change: Callable[[torch.Tensor], torch.Tensor], message: str, model: Seq2Seq
) -> None:
    path, _, name = table.rpartition(".")
    part = decoder(model).output_projection.get_submodule(path)
    setattr(part, name, change(getattr(part, name)))
    assert re.search(message, str(decoder(model).problem()))


@pytest.mark.parametrize("name", ["ngram", "feed_forward_lm"])
def test_a_source_that_would_not_be_used_is_refused(name: str) -> None:
    reader = model_config("rnnsearch").encoder
    config = model_config(name).copy()
    config.encoder = reader
    with pytest.raises(ConfigError, match=r"model.decoder is a .*, but model.encoder reads one; set model.encoder"):
        build(config, src_vocab_size=TGT_VOCAB, tgt_vocab_size=TGT_VOCAB)
