"""From pieces to words and links."""

import numpy as np
import pytest

from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.evaluation.word_alignment import Aligned, align, group_pieces, links, pharaoh
from softsearch.search.forced import forced_alignments
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import EOS
from tests.contract.models import TGT_VOCAB, small_model

WORDS = "a b c d e f g h i j k l m"


@pytest.fixture(scope="module")
def step_fn() -> TorchStepFunction:
    return TorchStepFunction(small_model("rnnsearch", seed=2))


@pytest.mark.parametrize(
    ("pieces", "whole_words", "expected"),
    [
        (["▁the", "▁ca", "t", "</s>"], False, [[0], [1, 2], [3]]),
        (["▁", "a", "b", "▁", "c"], False, [[0, 1, 2], [3, 4]]),
        (["▁ca", "<unk>", "s", "▁", "<unk>"], False, [[0, 1, 2], [3, 4]]),
        (["▁the", "<unk>", "▁cat", "<unk>"], True, [[0], [1], [2], [3]]),
        (["t", "▁x"], False, [[0], [1]]),
        ([], False, []),
    ],
)
def test_pieces_of_a_word(pieces: list[str], whole_words: bool, expected: list[list[int]]) -> None:
    assert group_pieces(pieces, whole_words=whole_words) == expected


def test_weights_of_words_by_hand(step_fn: TorchStepFunction) -> None:
    tokenizer = train_tokenizer(["abcdefghijkl abc"] * 3, kind="char", vocab_size=TGT_VOCAB)
    (found,) = align(step_fn, (tokenizer, tokenizer), ["ab c"], ["d ef"], units="words") or []
    src, tgt = ([*tokenizer.encode(text), EOS] for text in ("ab c", "d ef"))
    (pieces,) = forced_alignments(step_fn, [src], [tgt], batch_tokens=100) or []
    assert (found.src, found.tgt) == (["ab", "c", "</s>"], ["d", "ef", "</s>"])
    assert pieces.shape == (6, 6)  # d is two pieces, ef is three, and the end
    assert found.weights[1, 0] == pytest.approx(pieces[2:5, 0:3].sum(axis=1).mean())
    assert found.weights.sum(axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    (alone,) = align(step_fn, (tokenizer, tokenizer), ["ab c"], ["d ef"], units="pieces") or []
    assert alone.src == ["▁", "a", "b", "▁", "c", "</s>"]
    assert alone.weights == pytest.approx(pieces)


@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True)])
def test_words_of_any_direction_and_unknown_ones(step_fn: TorchStepFunction, reverse: tuple[bool, bool]) -> None:
    trained = train_tokenizer([WORDS] * 3, kind="word", vocab_size=TGT_VOCAB)
    src, tgt = (SentencePieceTokenizer(trained.model, reverse=side) for side in reverse)
    (found,) = align(step_fn, (src, tgt), ["a xx yy b"], ["c zz"], units="words") or []
    assert (found.src, found.tgt) == (["a", "xx", "yy", "b", "</s>"], ["c", "zz", "</s>"])
    ids = [[*t.encode(text), EOS] for t, text in ((src, "a xx yy b"), (tgt, "c zz"))]
    (plain,) = forced_alignments(step_fn, ids[:1], ids[1:], batch_tokens=100) or []
    rows, columns = ([*range(n)[:: -1 if turned else 1], n] for n, turned in ((2, reverse[1]), (4, reverse[0])))
    assert found.weights == pytest.approx(plain[rows][:, columns])


def test_ids_that_a_model_has_written_are_words_too(step_fn: TorchStepFunction) -> None:
    tokenizer = train_tokenizer([WORDS] * 3, kind="word", vocab_size=TGT_VOCAB)
    cut = tokenizer.encode("c zz d")
    (found,) = align(step_fn, (tokenizer, tokenizer), ["a b"], [cut], units="words") or []
    assert found.tgt == ["c", "<unk>", "d"]


def test_links_leave_the_ends_out() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.4, 0.1, 0.5], [0.0, 0.9, 0.1]], dtype=np.float32)
    assert links(Aligned(["a", "b", "</s>"], ["x", "y", "</s>"], weights)) == [(1, 0), (0, 1)]
    assert links(Aligned(["a", "b", "</s>"], ["x", "y", "z"], weights)) == [(1, 0), (0, 1), (1, 2)]
    assert links(Aligned(["</s>"], ["x", "</s>"], weights[:2, :1])) == []


def test_pharaohs_format() -> None:
    assert pharaoh([(1, 0), (0, 1), (0, 0)]) == "0-0 0-1 1-0"
    assert pharaoh([]) == ""
