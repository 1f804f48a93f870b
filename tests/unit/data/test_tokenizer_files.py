"""Tokenizers from files split text as they did before, with the special ids of this lab."""

import io
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
import sentencepiece

from softsearch.data.existing_tokenizers import identity
from softsearch.data.tokenizer_files import from_files
from softsearch.errors import ConfigError, CorpusError
from softsearch.export.tokenizer_json import tokenizer_files
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, TokenizerTrainer
from softsearch.text.vocabulary import UNK

LINES = ["a man is running", "two men are running fast", "a dog runs", "die H\u00fcnde rennen \ufb01x"] * 5
FOREIGN: list[dict[str, Any]] = [
    {"model_type": "bpe", "vocab_size": 45},  # unk 0, bos 1, eos 2, no pad
    {"model_type": "unigram", "vocab_size": 31, "pad_id": 3, "bos_id": -1, "unk_piece": "[UNK]"},
    {"model_type": "unigram", "vocab_size": 300, "byte_fallback": True, "hard_vocab_limit": False},
    {"model_type": "bpe", "vocab_size": 45, "user_defined_symbols": ["<sep>"], "normalization_rule_name": "nfkc_cf"},
    {"model_type": "char", "vocab_size": 40, "hard_vocab_limit": False, "eos_id": 0, "unk_id": 5},
    {"model_type": "char", "vocab_size": 40, "hard_vocab_limit": False, "normalization_rule_name": "nmt_nfkc_cf"},
    {"model_type": "bpe", "vocab_size": 45, "add_dummy_prefix": False, "normalization_rule_name": "nmt_nfkc"},
    {"model_type": "unigram", "vocab_size": 31, "remove_extra_whitespaces": False},
]
SUFFIXES: dict[str, Any] = {"treat_whitespace_as_suffix": True, "vocab_size": 40, "hard_vocab_limit": False}


def foreign(path: Path, **options: Any) -> sentencepiece.SentencePieceProcessor:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, minloglevel=2, **options
    )
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@pytest.mark.parametrize("options", FOREIGN)
def test_a_model_of_anybody_splits_text_as_before(tmp_path: Path, options: dict[str, Any]) -> None:
    theirs = foreign(tmp_path / "x.model", **options)
    src, tgt = from_files(TokenizerTrainer(model=tmp_path / "x.model")).train([], [])
    assert src is tgt
    for line in [*LINES, "a  man <sep> runs ", "</s> <s> Fast \u00e4\u4e2d"]:
        ids, pieces = src.encode(line), theirs.encode(line, out_type=str)
        shown = [None if theirs.is_unknown(theirs.piece_to_id(piece)) else piece for piece in pieces]
        assert [None if i == UNK else piece for i, piece in zip(ids, src.pieces(ids), strict=True)] == shown
        if None not in shown:
            assert src.decode(ids) == theirs.decode(pieces)


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("reverse", [False, True])
def test_the_space_behind_the_last_word_is_no_text(tmp_path: Path, kind: Kind, reverse: bool) -> None:
    theirs = foreign(tmp_path / "x.model", model_type=kind, **SUFFIXES)
    (src, _) = from_files(TokenizerTrainer(model=tmp_path / "x.model")).train([], [])
    src = SentencePieceTokenizer(src.model, reverse=reverse)
    assert theirs.decode(theirs.encode("a dog runs")) == "a dog runs "
    for line in LINES[:3]:
        ids = src.encode(line)
        assert src.decode(ids) == line
        assert src.pieces(ids) == theirs.encode(line, out_type=str)
    assert src.decode(src.encode("a dog \u4e2d")) == "a dog \u2047"


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf", "identity"])
def test_words_are_normalised_by_their_own_model(tmp_path: Path, rule: str) -> None:
    options = {"vocab_size": 40, "hard_vocab_limit": False, "normalization_rule_name": rule}
    theirs = foreign(tmp_path / "x.model", model_type="word", **options)
    src, _ = from_files(TokenizerTrainer(model=tmp_path / "x.model")).train([], [])
    for text in ("A MAN is  runn\uff49ng", "Fast\u00a0DOG", "die H\u00fcnde\trennen", "HU\u0308NDE run\u200bs"):
        pieces = theirs.encode(text, out_type=str)
        shown = ["<unk>" if theirs.is_unknown(theirs.piece_to_id(piece)) else piece for piece in pieces]
        found = src.pieces(src.encode(text))
        assert [piece for piece, last in pairwise([*found, ""]) if (piece, last) != ("<unk>", "<unk>")] == shown
        assert len(src.words(text)) == len(found)
    assert src.encode("Zwei QUATRE") == [UNK, UNK]


def test_models_of_two_sides_and_their_content(tmp_path: Path) -> None:
    foreign(tmp_path / "s.model", **FOREIGN[0])
    foreign(tmp_path / "t.model", **FOREIGN[1])
    one = from_files(TokenizerTrainer(model=[tmp_path / "s.model", str(tmp_path / "t.model")]))
    src, tgt = one.train([], [])
    assert one.kinds == ("bpe", "unigram")
    assert src.model != tgt.model
    foreign(tmp_path / "t.model", **FOREIGN[2])
    assert identity(from_files(TokenizerTrainer(model=[tmp_path / "s.model", tmp_path / "t.model"]))) != identity(one)


def test_a_list_of_words_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("<unk>\n</s>\nzwei\nlow@@\ner\nzwei\n")
    src, _ = from_files(TokenizerTrainer(kind="word", vocabulary=tmp_path / "words")).train([], [])
    assert src.names()[4:] == ["\u2581zwei", "\u2581low@@", "\u2581er"]
    assert src.encode("low@@ er x y zwei") == [5, 6, UNK, UNK, 4]
    assert src.decode(src.encode("low@@ er x zwei")) == "low@@ er \u2047 zwei"


COUNTED = [
    "zwei\t7\nlow@@\t3\n#1\t1\n",
    "zwei 7\nlow@@ 3\n#1 1 #fairseq:overwrite\n",
    "zwei\t-0.5\nlow@@\t-1e-3\n#1\t-2\n",
]


@pytest.mark.parametrize("content", COUNTED)
def test_a_list_with_counts(tmp_path: Path, content: str) -> None:
    (tmp_path / "words").write_text(f"<unk>\t0\n{content}")
    src, _ = from_files(TokenizerTrainer(kind="word", vocabulary=tmp_path / "words")).train([], [])
    assert src.names()[4:] == ["\u2581zwei", "\u2581low@@", "\u2581#1"]


@pytest.mark.parametrize("with_list", [False, True])
@pytest.mark.parametrize("joint", [False, True])
def test_split_text_is_joined_as_it_is_decoded(tmp_path: Path, with_list: bool, joint: bool) -> None:
    (tmp_path / "words").write_text("low@@\ner\nzwei\n@@\n")
    files = {"vocabulary": tmp_path / "words"} if with_list else {}
    trainer = TokenizerTrainer(kind="word", joiner="@@ ", joint=joint, **files)
    src, tgt = from_files(trainer).train(["low@@ er zwei @@"], ["low@@ er zwei @@"])
    assert from_files(trainer).train(["low@@ er zwei @@"], ["low@@ er zwei @@"])[1].model == tgt.model
    for text in ("zwei low@@ er", "low@@ low@@ er x @@ zwei", "zwei low@@"):
        assert tgt.pieces(src.encode(text)) == [f"\u2581{word}".replace("\u2581x", "<unk>") for word in text.split()]
        joined = text.replace("x", "\u2047").replace("@@ ", "")
        assert tgt.decode(src.encode(text)) == joined == tgt.normalize_like_decode(text).replace("x", "\u2047")
        assert tgt.decode(src.encode(text), joined=False) == text.replace("x", "\u2047")
    (content,) = tokenizer_files((tgt, tgt)).values()  # which is checked there
    assert b'"@@ "' in content


def test_a_joiner_is_for_words() -> None:
    for options in (
        {"kind": "bpe"},
        {"kind": "word", "model": "x"},
        {"kind": "word", "src_kind": "char", "joint": False},
    ):
        with pytest.raises(ConfigError, match=r"tokenizer.joiner is '@@ ', for text that is split already, expected"):
            TokenizerTrainer(joiner="@@ ", **options)


def test_a_list_of_characters(tmp_path: Path) -> None:
    (tmp_path / "chars").write_text("b\na\n \n\u4e2d\n")
    src, _ = from_files(TokenizerTrainer(kind="char", vocabulary=tmp_path / "chars")).train([], [])
    assert src.names()[4:] == ["\u2581", "b", "a", "\u4e2d"]
    assert src.decode(src.encode("ab \u4e2d")) == "ab \u4e2d"


def test_a_trainer_without_files_is_the_maker() -> None:
    trainer = TokenizerTrainer()
    assert from_files(trainer) is trainer


WRONG: list[tuple[dict[str, Any], bytes | None, type[Exception], str]] = [
    ({"model": "x"}, None, ConfigError, r"tokenizer.model=x cannot be read \(No such file"),
    ({"model": "x"}, b"", ConfigError, "is not a SentencePiece model"),
    ({"model": "x"}, b'{"version": "1.0"}', ConfigError, "is not a tokenizer.json"),
    ({"model": "x"}, b"\n\3\n\1\xff", ConfigError, "is not a SentencePiece model .a piece is not UTF-8"),
    ({"model": ["x"]}, b"", ConfigError, "expected a file, or two"),
    ({"vocabulary": "x"}, b"a\n", ConfigError, "a list without scores.*set tokenizer=word"),
    ({"vocabulary": "x", "kind": "word"}, b"a b\n", ConfigError, "a list with 'a b', expected one word per line"),
    (
        {"vocabulary": "x", "kind": "word"},
        b"a\tb\n",
        ConfigError,
        r"a list with 'a\\tb', .*a tab or a space, and a number",
    ),
    (
        {"vocabulary": "x", "kind": "word"},
        b"a\t1\nb\n",
        ConfigError,
        r"a list with 'a\\t1', expected one word per line",
    ),
    ({"vocabulary": "x", "kind": "word"}, b"7 a\n5 b\n", ConfigError, "a list with '7 a', expected one word per line"),
    ({"vocabulary": "x", "kind": "char"}, b"ab\n", ConfigError, "a list with 'ab', expected one char per line"),
    ({"vocabulary": "x", "kind": "word"}, b"\n", ConfigError, "is empty, expected one word"),
    ({"vocabulary": "x", "kind": "word"}, b"\xff\n", CorpusError, "x:1:1 is not UTF-8"),
    ({"vocabulary": "x", "model": "y"}, b"a\n", ConfigError, "are both set"),
]


@pytest.mark.parametrize(("options", "content", "error", "message"), WRONG)
def test_files_that_are_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    content: bytes | None,
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("x").write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        from_files(TokenizerTrainer(**options))
    assert "\n" not in str(caught.value)
