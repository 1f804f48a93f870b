"""Sampled segmentations: the same text, the paper's probabilities, repeatable."""

import io
import math
import random
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from softsearch.text.subword_sampling import SubwordSampler
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import UNK

LINES = ["one small red house", "two small houses", "three red cars and one small car", "ein kleines rotes Haus"] * 5


@cache
def tagged(kind: Kind) -> SentencePieceTokenizer:
    lines = [f"{tag} {line}" for line in LINES for tag in ("<2de>", "<2fr>")]
    return train_tokenizer(lines, kind=kind, vocab_size=70, tags=["<2de>", "<2fr>"])


def sampler(tokenizer: SentencePieceTokenizer, kind: Kind, alpha: float) -> Callable[[list[int]], list[int]]:
    rng, sampler = random.Random(1), SubwordSampler(tokenizer, kind, alpha)
    return lambda ids: sampler(ids, rng)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("alpha", [0.01, 0.5])
def test_a_sample_is_the_same_text_with_its_tag_whole(kind: Kind, reverse: bool, alpha: float) -> None:
    tokenizer = SentencePieceTokenizer(tagged(kind).model, reverse=reverse)
    ids = tokenizer.encode(f"<2de> {LINES[2]}")
    draw = sampler(tokenizer, kind, alpha)
    samples = [draw(ids) for _ in range(200)]
    assert {tokenizer.decode(sample) for sample in samples} == {f"<2de> {LINES[2]}"}
    assert {sample[-1 if reverse else 0] for sample in samples} == {ids[-1 if reverse else 0]}
    assert len({tuple(sample) for sample in samples}) > 10
    assert draw([]) == []


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_unknown_characters_keep_their_segmentation(kind: Kind) -> None:
    unknown = tagged(kind).encode("one \u20ac house")
    assert UNK in unknown
    draw = sampler(tagged(kind), kind, 0.5)
    assert [draw(unknown) for _ in range(20)] == [unknown] * 20


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_text_with_pieces_of_bytes_keeps_its_segmentation(kind: Kind) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*LINES, "0x<>"]), model_writer=model, model_type=kind, vocab_size=300, minloglevel=2,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, byte_fallback=True, hard_vocab_limit=False,
        user_defined_symbols=["[x]"],
    )  # fmt: skip
    tokenizer = SentencePieceTokenizer(model.getvalue())
    draw = sampler(tokenizer, kind, 0.5)
    assert {tokenizer.decode(draw(tokenizer.encode(LINES[2]))) for _ in range(20)} == {LINES[2]}
    for text in ("one \u20ac house", "one [x] house"):
        assert {tokenizer.decode(draw(tokenizer.encode(text))) for _ in range(200)} == {text}


@given(text=st.text("aceilmnorst \u2581"))
def test_without_dropout_bpe_is_that_of_sentencepiece(text: str) -> None:
    tokenizer = tagged("bpe")
    ids = tokenizer.encode(text)
    assert SubwordSampler(tokenizer, "bpe", 0.0)(ids, random.Random(1)) == ids


@given(text=st.text("aceilmnorst "))
def test_sharpened_to_the_best_unigram_is_that_of_sentencepiece(text: str) -> None:
    """As good, that is: of two segmentations of equal score either may be taken."""
    tokenizer = tagged("unigram")
    scores = {piece: score for piece, (_, score) in tokenizer.vocabulary().items()}
    ids = tokenizer.encode(text)
    found = SubwordSampler(tokenizer, "unigram", 1e4)(ids, random.Random(1))
    best, sharp = (sum(scores[piece] for piece in tokenizer.pieces(x)) for x in (ids, found))
    assert sharp == pytest.approx(best, abs=1e-2)


def test_pieces_may_end_with_the_space() -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, model_type="bpe", vocab_size=70, minloglevel=2,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, treat_whitespace_as_suffix=True,
    )  # fmt: skip
    tokenizer = SentencePieceTokenizer(model.getvalue())
    for line in LINES:
        ids = tokenizer.encode(line)
        assert any(len(piece) > 1 and piece.endswith("\u2581") for piece in tokenizer.pieces(ids))
        assert sampler(tokenizer, "bpe", 0.0)(ids) == ids
        assert tokenizer.decode(sampler(tokenizer, "bpe", 0.5)(ids)) == line


def test_dropout_of_all_merges_leaves_characters() -> None:
    tokenizer = tagged("bpe")
    found = sampler(tokenizer, "bpe", 1.0)(tokenizer.encode("one small car"))
    assert tokenizer.pieces(found) == list("\u2581one\u2581small\u2581car")


def test_bpe_drops_merges_with_the_probability_that_was_asked_for() -> None:
    """A word made by merges without a choice is whole when none was dropped."""
    tokenizer = train_tokenizer(["ab ab ab b a"], kind="bpe", vocab_size=9)
    word = tokenizer.pieces(tokenizer.encode("ab"))
    draw = sampler(tokenizer, "bpe", 0.2)
    samples = [draw(tokenizer.encode("ab")) for _ in range(4000)]
    whole = sum(len(sample) == len(word) for sample in samples) / len(samples)
    assert whole == pytest.approx(0.8 ** (len("\u2581ab") - len(word)), abs=0.03)


def test_unigram_samples_by_the_smoothed_probabilities() -> None:
    """The frequencies of all segmentations of a word against P(x)^alpha, Kudo 2018, section 3.3."""
    tokenizer = train_tokenizer(LINES, kind="unigram", vocab_size=36)
    alpha, word = 0.4, "\u2581three"
    scores = {piece: score for piece, (_, score) in tokenizer.vocabulary().items()}
    expected: dict[tuple[str, ...], float] = {}
    for cuts in range(2 ** (len(word) - 1)):
        parts = [word[0]]
        for place, char in enumerate(word[1:]):
            parts = [*parts, char] if cuts >> place & 1 else [*parts[:-1], parts[-1] + char]
        if all(part in scores for part in parts):
            expected[tuple(parts)] = math.exp(alpha * sum(scores[part] for part in parts))
    total, draws = sum(expected.values()), 4000
    draw = sampler(tokenizer, "unigram", alpha)
    found = Counter(tuple(tokenizer.pieces(draw(tokenizer.encode("three")))) for _ in range(draws))
    assert set(found) <= set(expected)
    assert len(expected) > 2
    for segmentation, weight in expected.items():
        assert found[segmentation] / draws == pytest.approx(weight / total, abs=0.03)
