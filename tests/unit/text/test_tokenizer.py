"""SentencePiece as the lab uses it: plain text stays plain, ids are the lab's, training is repeatable."""

import copy
import hashlib
import io
import pickle
from functools import cache
from typing import get_args

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from softsearch.app.config.allowed_classes import name_of
from softsearch.app.config.validation import build
from softsearch.errors import BundleError, ConfigError, CorpusError, InputError
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, TokenizerTrainer, train_tokenizer
from softsearch.text.vocabulary import BOS, EOS, PAD, SPECIALS, UNK

LINES = ["one small red house", "two small houses", "three red cars and one small car", "ein kleines rotes Haus"] * 5


@cache
def bpe() -> SentencePieceTokenizer:
    return train_tokenizer(LINES, kind="bpe", vocab_size=60)


@pytest.fixture(scope="module", params=get_args(Kind))
def tokenizer(request: pytest.FixtureRequest) -> SentencePieceTokenizer:
    sizes = {"word": 18, "char": 24, "bpe": 60, "unigram": 36}
    return train_tokenizer(LINES, kind=request.param, vocab_size=sizes[request.param])


def test_round_trip(tokenizer: SentencePieceTokenizer) -> None:
    for line in LINES:
        ids = tokenizer.encode(line)
        assert all(len(SPECIALS) <= token < tokenizer.vocab_size for token in ids)
        assert tokenizer.decode(ids) == line
        assert "".join(tokenizer.pieces(ids)).replace("\u2581", " ").strip() == line


def test_special_ids(tokenizer: SentencePieceTokenizer) -> None:
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == list(SPECIALS)
    word = tokenizer.encode("small")
    assert tokenizer.decode([BOS, *word, EOS, PAD, PAD]) == "small"


def test_unknown_text_is_shown_as_a_sign(tokenizer: SentencePieceTokenizer) -> None:
    ids = tokenizer.encode("\u20ac small \u20ac")
    assert ids.count(UNK) == 2
    assert tokenizer.decode(ids) == "\u2047 small \u2047"


@cache
def words() -> SentencePieceTokenizer:
    return train_tokenizer(LINES, kind="word", vocab_size=18)


@pytest.mark.parametrize("reverse", [False, True])
def test_each_unknown_word_has_an_id_of_its_own(reverse: bool) -> None:
    tokenizer = SentencePieceTokenizer(words().model, reverse=reverse)
    ids = tokenizer.encode("alpha beta small gamma\u2581delta  epsilon")
    known = tokenizer.encode("small")
    assert ids == [UNK, UNK, *known, UNK, UNK, UNK][:: -1 if reverse else 1]
    assert tokenizer.decode(ids) == "\u2047 \u2047 small \u2047 \u2047 \u2047"


@given(text=st.text(st.sampled_from("onewsmal \t\xa0\0\n\u2047\u20ac<s>"), max_size=30))
def test_words_are_those_of_sentencepiece_which_merges_unknown_neighbours(text: str) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=words().model)
    ids = words().encode(text)
    assert len(ids) == len([word for word in text.split(" ") if word])
    assert [token for token, before in zip(ids, [None, *ids], strict=False) if (token, before) != (UNK, UNK)] == (
        processor.encode(text)
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_pieces_of_a_text_have_its_letters_for_what_is_unknown(
    tokenizer: SentencePieceTokenizer, reverse: bool
) -> None:
    tokenizer = SentencePieceTokenizer(tokenizer.model, reverse=reverse)
    for text in ("small \u6f22\u5b57 one", "\u6f22x\u5b57", "one \u20ac \u20ac", "two small"):
        ids = [*tokenizer.encode(text), EOS]
        pieces = tokenizer.read_pieces(text, ids)
        assert len(pieces) == len(ids)
        assert "".join(pieces).replace("\u2581", " ").strip() == f"{text}</s>"
    assert tokenizer.read_pieces("another text", [UNK] * 9) == ["<unk>"] * 9


def test_empty_text(tokenizer: SentencePieceTokenizer) -> None:
    assert tokenizer.encode("") == tokenizer.encode("  ") == []
    assert tokenizer.decode([]) == ""


def test_lone_surrogate(tokenizer: SentencePieceTokenizer) -> None:
    with pytest.raises(InputError, match=r"character 3 is the lone surrogate U\+D83D"):
        tokenizer.encode("ab\ud83d")


@pytest.mark.parametrize("token", [-1, 999])
def test_id_outside_the_vocabulary(tokenizer: SentencePieceTokenizer, token: int) -> None:
    for method in (tokenizer.decode, tokenizer.pieces):
        with pytest.raises(InputError, match=f"token id {token} is outside the vocabulary of {tokenizer.vocab_size}"):
            method([token])


def test_same_model_again(tokenizer: SentencePieceTokenizer) -> None:
    assert tokenizer.fingerprint == hashlib.sha256(tokenizer.model).hexdigest()
    copies = SentencePieceTokenizer(tokenizer.model), pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)
    for other in copies:
        assert other.fingerprint == tokenizer.fingerprint
        assert other.encode(LINES[2]) == tokenizer.encode(LINES[2])


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_encoded(text: str) -> None:
    ids = bpe().encode(text)
    assert not {PAD, BOS, EOS} & set(ids)
    bpe().decode(ids).encode("utf-8")


@pytest.mark.parametrize("kind", get_args(Kind))
def test_special_names_in_text_are_text(kind: Kind) -> None:
    text = "<s></s><pad> <unk>"
    tokenizer = train_tokenizer([text, "a"], kind=kind, vocab_size=7 if kind == "word" else 16)
    ids = tokenizer.encode(text)
    assert not {PAD, UNK, BOS, EOS} & set(ids)
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", get_args(Kind))
def test_training_is_repeatable_and_silent(kind: Kind, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = (train_tokenizer(iter(LINES), kind=kind, vocab_size=24) for _ in range(2))
    assert first.model == second.model
    assert capfd.readouterr() == ("", "")


def test_reversed_ids_are_those_of_the_text_backwards(tokenizer: SentencePieceTokenizer) -> None:
    backwards = SentencePieceTokenizer(tokenizer.model, reverse=True)
    ids = tokenizer.encode(LINES[0])
    assert backwards.encode(LINES[0]) == ids[::-1]
    assert backwards.decode(ids[::-1]) == LINES[0]
    assert backwards.pieces(ids[::-1]) == tokenizer.pieces(ids)
    assert backwards.decode([BOS, *ids[::-1], EOS, PAD]) == LINES[0]
    assert backwards.pieces([BOS, *ids[::-1], EOS, PAD]) == ["<s>", *tokenizer.pieces(ids), "</s>", "<pad>"]
    assert backwards.text_order([BOS, 7, 8, UNK, EOS]) == [0, 3, 2, 1, 4]
    assert tokenizer.text_order([BOS, 7, 8, UNK, EOS]) == [0, 1, 2, 3, 4]
    assert backwards.encode("") == []


def test_direction_is_part_of_the_fingerprint_and_travels(tokenizer: SentencePieceTokenizer) -> None:
    backwards = SentencePieceTokenizer(tokenizer.model, reverse=True)
    assert backwards.fingerprint != tokenizer.fingerprint
    assert backwards.fingerprint == SentencePieceTokenizer(tokenizer.model, reverse=True).fingerprint
    for copied in (pickle.loads(pickle.dumps(backwards)), copy.deepcopy(backwards)):
        assert copied.fingerprint == backwards.fingerprint
        assert copied.encode(LINES[2]) == backwards.encode(LINES[2])


@cache
def tagged(kind: Kind) -> SentencePieceTokenizer:
    lines = [f"{tag} {line}" for line in LINES for tag in ("<2de>", "<2zh-Hans>")]
    return train_tokenizer(lines, kind=kind, vocab_size=70, tags=["<2de>", "<2zh-Hans>"])


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_tag_is_one_piece(kind: Kind) -> None:
    tokenizer = tagged(kind)
    plain = tokenizer.encode(LINES[0])
    for tag in ("<2de>", "<2zh-Hans>"):
        ids = tokenizer.encode(f"{tag} {LINES[0]}")
        assert ids[1:] == plain
        assert tokenizer.pieces(ids)[0] == f"\u2581{tag}"
        assert tokenizer.decode(ids) == f"{tag} {LINES[0]}"


def test_no_normalisation() -> None:
    text = "\ufb01n \u00bd A\u030a \u212b"  # NFKC would change all four words
    tokenizer = train_tokenizer([text], kind="char", vocab_size=12)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_long_lines_are_learnt_from() -> None:
    tokenizer = train_tokenizer(["a", "z" * 100_000], kind="char", vocab_size=7)
    assert UNK not in tokenizer.encode("z")


@pytest.mark.parametrize("kind", get_args(Kind))
def test_vocab_size_is_an_upper_limit(kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = train_tokenizer(LINES, kind=kind, vocab_size=5000)
    assert tokenizer.vocab_size < 200
    assert f"is 5000, but the corpus supports only {tokenizer.vocab_size} entries of kind {kind}" in caplog.text


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_no_room_for_the_characters(kind: Kind) -> None:
    with pytest.raises(ConfigError, match=rf"tokenizer.vocab_size is 10, .* alone need 22 with tokenizer.kind {kind}"):
        train_tokenizer(LINES, kind=kind, vocab_size=10)


@pytest.mark.parametrize(("kind", "vocab_size"), [*((kind, 3) for kind in get_args(Kind)), ("char", 30), ("word", 30)])
def test_no_room_beside_the_tags(kind: Kind, vocab_size: int) -> None:
    tags = [f"<{number}>" for number in range(1, 60)]
    with pytest.raises(ConfigError, match=rf"is {vocab_size}, which has no room besides 63 .*kind {kind}"):
        train_tokenizer(LINES, kind=kind, vocab_size=vocab_size, tags=tags)


@pytest.mark.parametrize("lines", [[], [""], [" ", "  "]], ids=["none", "empty", "blank"])
@pytest.mark.parametrize("kind", get_args(Kind))
def test_no_text(kind: Kind, lines: list[str]) -> None:
    with pytest.raises(CorpusError, match="there is no text to train a tokenizer on"):
        train_tokenizer(lines, kind=kind, vocab_size=50)


def test_lone_surrogate_in_training() -> None:
    with pytest.raises(InputError, match=r"U\+D800"):
        train_tokenizer(["fine", "\ud800"], kind="bpe", vocab_size=50)


GARBAGE = [b"", b"garbage", b"\x00" * 64, b"PK\x03\x04 a zip"]


@pytest.mark.parametrize("model", GARBAGE)
def test_garbage_is_no_model(model: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BundleError, match=rf"not a SentencePiece model \({len(model)} bytes"):
        SentencePieceTokenizer(model)
    assert capfd.readouterr().err == ""


def test_truncated_model() -> None:
    model = bpe().model
    with pytest.raises(BundleError, match="not a SentencePiece model"):
        SentencePieceTokenizer(model[: len(model) // 2 + 1])


def test_other_special_ids() -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, vocab_size=40, hard_vocab_limit=False, minloglevel=2
    )
    with pytest.raises(BundleError, match=r"= \(-1, 0, 1, 2\), expected \(0, 1, 2, 3\)"):
        SentencePieceTokenizer(model.getvalue())


@pytest.mark.parametrize("text", ["\u00fc", "\u2047"])  # of a piece; what is written for an unknown one
def test_pieces_that_are_no_utf8(text: str) -> None:
    good = train_tokenizer(["f\u00fcnf f\u00fcr f\u00fcnf"] * 5, kind="char", vocab_size=20).model
    bad = good.replace(text.encode(), b"\xff" * len(text.encode()))
    assert bad != good
    with pytest.raises(BundleError, match="the tokenizer has a piece that is not UTF-8"):
        SentencePieceTokenizer(bad)


def test_joint_trainer_returns_one_tokenizer() -> None:
    src, tgt = TokenizerTrainer(kind="char", vocab_size=11).train(["abc"], ["xyz"])
    assert src is tgt
    assert UNK not in src.encode("abcxyz")


def test_separate_trainer_knows_one_side_each() -> None:
    src, tgt = TokenizerTrainer(kind="char", vocab_size=8, joint=False).train(["abc"], ["xyz"])
    assert UNK not in src.encode("abc") + tgt.encode("xyz")
    assert UNK in src.encode("x")
    assert UNK in tgt.encode("a")


def test_the_source_has_a_size_and_a_kind_of_its_own() -> None:
    words = [" ".join(f"word{i}" for i in range(n)) for n in range(1, 40)]  # word0 is the most frequent
    trainer = TokenizerTrainer(kind="word", vocab_size=10, src_vocab_size=25, joint=False)
    src, tgt = trainer.train(words, words)
    assert (src.vocab_size, tgt.vocab_size) == (25, 10)
    src, tgt = TokenizerTrainer(kind="char", src_kind="word", joint=False).train(words, words)
    assert (src.has_words, tgt.has_words, tgt.pieces(tgt.encode("word1"))) == (True, False, ["\u2581", *"word1"])
    with pytest.raises(ConfigError, match=r"src_vocab_size is 9, but characters, .* raise tokenizer.src_vocab_size"):
        TokenizerTrainer(kind="bpe", src_vocab_size=9, joint=False).train(words, words)


BAD_OPTIONS = [
    ({"kind": "bpee"}, "tokenizer.kind is 'bpee' .*, expected one of 'word', 'char', 'bpe', 'unigram'"),
    ({"kind": None}, "tokenizer.kind is None"),
    ({"vocab_size": "8k"}, "tokenizer.vocab_size is '8k' .*, expected a whole number of at least 5"),
    ({"vocab_size": 4}, "tokenizer.vocab_size is 4"),
    ({"vocab_size": True}, "tokenizer.vocab_size is True"),
    ({"src_vocab_size": 4, "joint": False}, "tokenizer.src_vocab_size is 4 .*, expected a whole number of at least 5"),
    ({"src_vocab_size": 9}, "tokenizer.src_vocab_size is 9, but with tokenizer.joint=true both sides share one"),
    ({"src_kind": "bpe"}, "tokenizer.src_kind is bpe, but with tokenizer.joint=true both sides share one vocabulary"),
    ({"joint": "yes"}, "tokenizer.joint is 'yes' .*, expected true or false"),
    ({"sampling": 1.5}, "tokenizer.sampling is 1.5 .*, expected a number of at least 0 and at most 1"),
    ({"sampling": True}, "tokenizer.sampling is True"),
    ({"sampling": "0.1"}, "tokenizer.sampling is '0.1'"),
    ({"kind": "char", "sampling": 0.1}, "sampling is 0.1, but text has only one segmentation with tokenizer.kind char"),
    (
        {"src_kind": "char", "joint": False, "sampling": 0.1},
        "text has only one segmentation with tokenizer.src_kind char; set tokenizer.sampling=0",
    ),
    ({"kind": "word", "sampling": 0.1}, "tokenizer.kind word; set tokenizer.sampling=0, or choose tokenizer=bpe"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(OmegaConf.create({"tokenizer": {"_target_": name_of(TokenizerTrainer), **options}}).tokenizer)


def test_symbols_are_pieces_anywhere_on_both_sides() -> None:
    trainer = TokenizerTrainer(kind="bpe", vocab_size=60, joint=False)
    symbols = ["<1>", "<2>", "<3>"]
    tokenizers = trainer.train(["open <1>all<2> (<3>)"] * 9, ["alle <1> <2>en<3>"] * 9, ["<2de>", *symbols])
    for tokenizer, line in zip(tokenizers, ("open <1>all<2> (<3>)", "<1>all<2>e <3>"), strict=True):
        pieces, ids = tokenizer.vocabulary(), tokenizer.encode(line)
        assert [ids.count(pieces[symbol][0]) for symbol in symbols] == [1, 1, 1]
        assert tokenizer.decode(ids) == line
    assert ["\u2581<2de>" in tokenizer.vocabulary() for tokenizer in tokenizers] == [True, False]
