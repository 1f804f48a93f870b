"""A model of Marian computes here what its equations say, and files that are none are refused with a reason."""

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from softsearch.app.config.build import rebuild_model
from softsearch.errors import SoftsearchError
from softsearch.extras.importing.command import read
from softsearch.text.vocabulary import BOS, EOS, PAD, UNK
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents
from softsearch.training.checkpoints.folder import checkpoint_file
from tests.support.marian_equations import SIZES, SRC_WORDS, TGT_WORDS, Equations, vocabulary, write_model
from tests.support.written import Payload

ALL = {"tied-embeddings-all": True}
PRE_NORM = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}
SSRU = {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
RELU, GELU = ({"transformer-ffn-activation": name} for name in ("relu", "gelu"))
MODELS: dict[str, dict[str, Any]] = {
    "transformer": ALL,
    "student": ALL | SSRU | RELU | {"enc-depth": 3, "transformer-tied-layers": [1, 1]},
    "pre-norm": PRE_NORM | GELU | {"tied-embeddings": True, "transformer-decoder-dim-ffn": 10},
    "pre-norm student": PRE_NORM | SSRU | {"tied-embeddings-src": True, "output-omit-bias": True},
    "untied": {"transformer-train-position-embeddings": True},  # which Marian ignores
}


def imported(source: Path, run: Path) -> CheckpointContents:
    read(source).write(run)
    return read_contents(checkpoint_file(run))


def ours(contents: CheckpointContents, src: list[int], tgt: list[int]) -> Any:
    """The logits of each position of the target."""
    model, ids = rebuild_model(contents), torch.tensor([[*src, EOS]])
    with torch.no_grad():
        state = model.decoder.init_state(model.encoder(ids, torch.ones_like(ids, dtype=torch.bool)))
        return model.decoder(torch.tensor([[BOS, *tgt]]), state)[0].numpy()


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_its_equations(tmp_path: Path, name: str) -> None:
    joint = "tied-embeddings-all" in MODELS[name]
    equations = write_model(tmp_path / "marian", MODELS[name], joint=joint)
    contents = imported(tmp_path / "marian", tmp_path / "run")
    words = (SRC_WORDS, SRC_WORDS if joint else TGT_WORDS)
    text = [" ".join(word for word in side if "<" not in word) for side in words]
    theirs = [[side.index(word) for word in [*line.split(), "</s>"]] for side, line in zip(words, text, strict=True)]
    mine = [tokenizer.encode(line) for tokenizer, line in zip(contents.tokenizers, text, strict=True)]
    found, expected = ours(contents, *mine), equations.logits(*theirs)
    order = [mine[1][theirs[1].index(i)] if i in theirs[1][:-1] else UNK for i in range(len(words[1]))]
    order[words[1].index("</s>")] = EOS
    np.testing.assert_allclose(found[:, order], expected, rtol=0, atol=1e-5)
    assert (found[:, [PAD, BOS]] < expected.min() - 50).all()
    assert contents.tokenizers[1].decode(mine[1]) == text[1]
    assert contents.tokenizers[0].encode("other a") == [UNK, mine[0][0]]


def test_a_sentencepiece_vocabulary(tmp_path: Path) -> None:
    write_model(tmp_path / "marian", ALL, joint=True)
    model, lines = io.BytesIO(), ["a man runs", "two men run fast", "ein Mann rennt"] * 9
    sentencepiece.SentencePieceTrainer.train(  # as Marian trains one
        sentence_iterator=iter(lines), model_writer=model, vocab_size=20, bos_id=-1, eos_id=0, unk_id=1, minloglevel=2
    )
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    (tmp_path / "marian" / "vocab.yml").unlink()
    (tmp_path / "marian" / "vocab.deen.spm").write_bytes(model.getvalue())
    equations = Equations(SIZES | ALL, [20, 20])
    equations.logits([0], [0])
    equations.save(tmp_path / "marian" / "model.npz")
    contents = imported(tmp_path / "marian", tmp_path / "run")
    src, tgt = contents.tokenizers
    assert src.model == tgt.model
    mine, ids = src.encode("a man runs \u4e2d"), theirs.encode("a man runs \u4e2d")
    assert src.pieces(mine) == [theirs.id_to_piece(i) for i in ids]
    expected = equations.logits([*ids, 0], [*ids, 0])
    found = ours(contents, mine, mine)
    np.testing.assert_allclose(found[:, [*mine, EOS]], expected[:, [*ids, 0]], rtol=0, atol=1e-5)


def test_words_that_are_pieces_of_sentencepiece_models(tmp_path: Path) -> None:
    """As in OPUS-MT, whose list of words lacks some pieces and has those of both languages."""
    equations = write_model(tmp_path / "marian", {"tied-embeddings-all": True}, joint=True)
    pieces = ["</s>", "<unk>", "\u2581a", "\u2581", "m", "n", "b", "r"]
    (tmp_path / "marian" / "vocab.yml").write_text(vocabulary(tuple(pieces)))
    for side, line in (("source", "a man ran"), ("target", "a barn")):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([line] * 9), model_writer=model, vocab_size=9, hard_vocab_limit=False, minloglevel=2
        )
        (tmp_path / "marian" / f"{side}.spm").write_bytes(model.getvalue())
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "marian" / "source.spm"))
    contents = imported(tmp_path / "marian", tmp_path / "run")
    src, tgt = contents.tokenizers
    ids = [pieces.index(piece) if piece in pieces else 1 for piece in theirs.encode("a man", out_type=str)]
    assert 1 in ids
    assert tgt.decode(tgt.encode("mbn")) == "mbn"
    found = ours(contents, src.encode("a man"), tgt.encode("bn"))
    target = [pieces.index(piece) for piece in tgt.pieces(tgt.encode("bn"))]
    expected = equations.logits([*ids, 0], [*target, 0])
    np.testing.assert_allclose(found[:, [UNK, EOS, *tgt.encode("bn")]], expected[:, [1, 0, *target]], rtol=0, atol=1e-5)


def entry(array: Any) -> bytes:
    """An array as in an archive."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def put(name: str, array: Any) -> Callable[[Path], object]:
    """Sets or removes an array of ``model.npz``."""

    def change(path: Path) -> None:
        with np.load(path) as archive:
            arrays = dict(archive) | {name: array}
        np.savez(path, **{key: value for key, value in arrays.items() if value is not None})

    return change


def set_option(text: str) -> Callable[[Path], object]:
    """Adds a line to the options."""

    def change(path: Path) -> None:
        with np.load(path) as archive:
            options = archive["special:model.yml"].tobytes().rstrip(b"\0") + text.encode() + b"\n\0"
        put("special:model.yml", np.frombuffer(options, np.int8))(path)

    return change


def add(name: str, data: bytes, method: int = zipfile.ZIP_STORED) -> Callable[[Path], object]:
    """Adds an entry to the archive."""

    def change(path: Path) -> None:
        with zipfile.ZipFile(path, "a", method) as archive:
            archive.writestr(name, data)

    return change


def write_text(name: str, text: str) -> Callable[[Path], object]:
    return lambda path: (path.parent / name).write_text(text)


def become_a_pipe(name: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        path.with_name(name).unlink()
        os.mkfifo(path.with_name(name))

    return change


def twice_the_same_piece(path: Path) -> None:
    path.with_name("vocab.yml").unlink()
    proto: Any = sentencepiece.sentencepiece_model_pb2.ModelProto()
    for text, kind in (("</s>", 3), ("<unk>", 2), *(("a", 1),) * 6):
        proto.pieces.add(piece=text, score=0.0, type=kind)
    path.with_name("vocab.spm").write_bytes(proto.SerializeToString())


HUGE = entry(np.zeros(1)).replace(b"(1,)", b"(%d,)" % 2**50, 1).replace(b" " * 15, b"", 1)
DEEP = "deep: " + "[" * 500
LAUGHS = "a: &a [x, x]\nb: &b [*a, *a]\ntype: *b"
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no archive": (lambda path: path.write_bytes(b"PK\x03\x04 and no more"), "it has no end"),
    "a device": (lambda path: [path.unlink(), path.symlink_to("/dev/zero")], "it is not a regular file"),
    "a pickle": (
        lambda path: add("evil.npy", entry(np.array(Payload(path.parent / "CANARY"), object)))(path),
        "Python",
    ),
    "a short array with a large header": (add("big.npy", HUGE), "cannot be read as an .npz file"),
    "a compressed array": (add("zeros.npy", entry(np.zeros(1000)), zipfile.ZIP_DEFLATED), "is compressed"),
    "two arrays of one name": (add("Wemb", b""), "one name"),
    "a path as a name": (add("../../CANARY.npy", entry(np.zeros((1, 1), np.float32))), "does not describe"),
    "16 bits": (put("Wemb", np.zeros((8, 8), np.float16)), "Wemb is float16; expected float32"),
    "8 bits": (put("encoder_l1_self_Wq", np.zeros((8, 8), np.int8)), "is int8; expected float32"),
    "8 bits in Marian's own format": (lambda path: path.rename(path.with_name("model.intgemm.bin")), "packed"),
    "a missing array": (put("decoder_l2_context_bv", None), "decoder_l2_context_bv is missing"),
    "an array too many": (put("decoder_l3_context_bv", np.zeros((1, 8), np.float32)), "decoder_l3_context_bv"),
    "another shape": (
        put("encoder_l1_ffn_W1", np.zeros((12, 8), np.float32)),
        r"is \(12, 8\), but its config expects \(8, 12\)",
    ),
    "a value that is not finite": (put("Wemb", np.full((8, 8), np.nan, np.float32)), "not finite"),
    "no options": (put("special:model.yml", None), "no special:model.yml"),
    "options that run code": (set_option("x: !!python/object/apply:os.mkdir [CANARY]"), "not YAML of plain values"),
    "deep options": (set_option(DEEP), "not YAML of plain values"),
    "a number of no digits": (set_option("x: !!int ''"), "not YAML of plain values"),
    "a truth that is none": (set_option("x: !!bool x"), "not YAML of plain values"),
    "a time that is none": (set_option("x: !!timestamp x"), "not YAML of plain values"),
    "options that repeat themselves": (set_option(LAUGHS), "references"),
    "another architecture": (set_option("type: s2s"), "type is 's2s', expected 'transformer'"),
    "no such norm": (set_option("transformer-postprocess: dar"), "transformer-postprocess is 'dar'"),
    "another gelu": (set_option("transformer-ffn-activation: gelu\nversion: v1.12.0 65bf82f"), "another function"),
    "another cell": (set_option("transformer-decoder-autoreg: rnn\ndec-cell: gru"), "dec-cell is 'gru'"),
    "a size that is none": (set_option("dim-emb: 8.5"), "dim-emb is 8.5"),
    "no list of layers": (set_option("transformer-tied-layers: 2"), "expected 2 numbers of layers"),
    "an array without rows": (put("Wemb", np.zeros((), np.float32)), "is not a list of words with ids from 0"),
    "layers that are none": (set_option("transformer-tied-layers: [1]"), "expected 2 numbers of layers"),
    "a longer vocabulary": (write_text("vocab.yml", vocabulary(SRC_WORDS[:7])), "7 entries, but the model has 8"),
    "a vocabulary with a gap": (
        write_text("vocab.yml", vocabulary(SRC_WORDS).replace(": 5", ": 50")),
        "from 0, including",
    ),
    "a vocabulary that runs code": (write_text("vocab.yml", "!!python/object/apply:os.mkdir [CANARY]"), "not YAML"),
    "a deep vocabulary": (write_text("vocab.yml", "[" * 10**6), "nested deeper than 64 levels"),
    "a deep vocabulary of another form": (write_text("vocab.yml", "- " * 10**5), "nested deeper than 64 levels"),
    "a vocabulary that is a pipe": (become_a_pipe("vocab.yml"), "it is not a regular file"),
    "a name with a null": (write_text("decoder.yml", 'vocabs: ["a\\0.yml", "b.yml"]'), "cannot be that of a file"),
    "pieces that SentencePiece refuses": (twice_the_same_piece, "vocab.spm is not a SentencePiece model"),
    "two vocabularies": (write_text("vocab2.yml", ""), "2 vocabularies and no decoder.yml"),
    "a vocabulary of another kind": (
        write_text("model.npz.decoder.yml", "vocabs: [model.npz, x.spm]"),
        "expected .spm",
    ),
    "two models": (
        lambda path: [path.with_name(f"{i}.npz").write_bytes(b"") for i in "ab"] + [path.unlink()],
        "2 models",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_files_are_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, message = REFUSED[name]
    write_model(tmp_path / "marian", ALL, joint=True)
    monkeypatch.chdir(tmp_path / "marian")
    change(tmp_path / "marian" / "model.npz")
    with pytest.raises(SoftsearchError, match=message) as refused:
        imported(tmp_path / "marian", tmp_path / "run")
    assert len(str(refused.value)) < 600
    assert not [*tmp_path.rglob("*CANARY*"), *tmp_path.glob("run")]
