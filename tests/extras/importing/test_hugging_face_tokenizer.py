"""Tokenizers of Hugging Face as SentencePiece models: the same pieces, or a reason why not."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from softsearch.data.corpora.spellout import Spellout
from softsearch.data.tokenizer_files import from_files
from softsearch.errors import ConfigError
from softsearch.text.corpus import read_lines
from softsearch.text.tokenizer import SentencePieceTokenizer, TokenizerTrainer
from softsearch.text.vocabulary import UNK

SPECIAL = ["<unk>", "<s>", "</s>", "__eng__"]


ODD = [
    "an \ufb01ne \uff21bc",
    "\u00e9t\u00e9 e\u0301te\u0301 don't well-known",
    "\u0e01\u0e02 a \u0e01",
    "\u4e2d\u6587",
]
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
ADDED = {
    "id": 4,
    "content": "<x>",
    **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    pair = Spellout(train_size=1500, val_size=1, test_size=1).files(tmp_path_factory.mktemp("cache"))["train"]
    return [line for path in pair for line in read_lines(path)]


def trained(lines: list[str], kind: str, **options: Any) -> Tokenizer:
    """A tokenizer of the Hugging Face kind."""
    special = {"special_tokens": SPECIAL, "show_progress": False}
    model: Any = models.BPE(unk_token="<unk>", fuse_unk=True) if kind == "BPE" else models.Unigram()
    theirs = Tokenizer(model)
    theirs.pre_tokenizer = options.get("pre_tokenizer", pre_tokenizers.Metaspace())
    theirs.normalizer = options.get("normalizer")
    trainer: Any = (
        trainers.BpeTrainer(vocab_size=500, **special)
        if kind == "BPE"
        else trainers.UnigramTrainer(vocab_size=400, unk_token="<unk>", **special)
    )
    theirs.train_from_iterator([*lines[::2], *ODD[:2]], trainer)
    return theirs


def charsmap() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b"]), model_writer=model, model_type="char", vocab_size=9, hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc", minloglevel=2,
    )  # fmt: skip
    proto: Any = sentencepiece.sentencepiece_model_pb2
    return bytes(proto.ModelProto.FromString(model.getvalue()).normalizer_spec.precompiled_charsmap)


def converted(tmp_path: Path, content: str | bytes) -> SentencePieceTokenizer:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return from_files(TokenizerTrainer(model=path)).train([], [])[0]


@pytest.mark.parametrize("kind", ["BPE", "Unigram"])
@pytest.mark.parametrize("version", ["", "4", "5"])
def test_text_is_split_as_by_tokenizers(tmp_path: Path, corpus: list[str], kind: str, version: str) -> None:
    options: dict[str, Any] = {}
    if version:
        several = Regex(" {2,}")
        spaces: dict[str, list[normalizers.Normalizer]] = {
            "4": [normalizers.Strip(left=False, right=True), normalizers.Replace(several, "\u2581")],
            "5": [normalizers.Replace(several, " ")],
        }
        options["normalizer"] = normalizers.Sequence([normalizers.Precompiled(charsmap()), *spaces[version]])
        options["pre_tokenizer"] = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        )
    theirs = trained(corpus, kind, **options)
    described = {key: part for key, part in json.loads(theirs.to_str()).items() if part is not None}
    del described["model"]["type"]  # as in older files
    ours = converted(tmp_path, json.dumps(described))
    different = []
    for line in [*corpus, *ODD]:
        ids = ours.encode(line)
        pieces = [None if i == UNK else piece for i, piece in zip(ids, ours.pieces(ids), strict=True)]
        found = [None if i == 0 else theirs.id_to_token(i) for i in theirs.encode(line).ids]
        if pieces != found and (kind == "BPE" or sorted(map(str, pieces)) != sorted(map(str, found))):
            different.append((line, pieces, found))
    assert not different
    assert ours.decode(ours.encode("one")) == "one"
    assert not {*SPECIAL} & {*ours.vocabulary()}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"pre_tokenizer": BYTES}, "splits text by .*ByteLevel"),
    ({"pre_tokenizer": None}, "splits text by null"),
    ({"normalizer": {"type": "Lowercase"}}, "changes text by .*Lowercase"),
    ({"model": {"byte_fallback": True}}, "has byte_fallback=True"),
    ({"model": {"end_of_word_suffix": "</w>"}}, "has end_of_word_suffix='</w>'"),
    ({"model": {"fuse_unk": False}}, "has fuse_unk=false"),
    ({"added_tokens": [ADDED]}, "adds '<x>'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "reason"), REFUSED)
def test_what_sentencepiece_does_not_do_is_refused_with_the_reason(
    tmp_path: Path, corpus: list[str], change: dict[str, Any], reason: str
) -> None:
    described = json.loads(trained(corpus[:40], "BPE").to_str())
    described |= {**change, "model": described["model"] | change.get("model", {})}
    with pytest.raises(ConfigError, match=rf"tokenizer.model=.*tokenizer.json {reason}.*; use the model's") as caught:
        converted(tmp_path, json.dumps(described))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"{", b'{"a": 1}', b"{\xff}", b'{"model":' * 100_000, b'{"model": {"type": "BPE", "vocab": 3}}', b"{\0}"],
    ids=["cut", "other", "not-utf-8", "deep", "wrong-type", "nul"],
)
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer.json is not a tokenizer.json \(") as caught:
        converted(tmp_path, content)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def normalized_by(charsmap: object) -> Any:
    return lambda file: file.update(normalizer={"type": "Precompiled", "precompiled_charsmap": charsmap})


def model(**values: Any) -> Any:
    return lambda file: file["model"].update(values)


HOSTILE: dict[str, Any] = {
    "no charsmap": normalized_by(None),
    "charsmap beyond its end": normalized_by(base64.b64encode(b"\xff\xff\xff\x7f" + b"\xff" * 40).decode()),
    "no unknown piece": model(unk_id=None),
    "an empty piece": model(vocab=[["<unk>", 0.0], ["", -1.0]]),
    "half a character": model(vocab=[["<unk>", 0.0], ["\ud800", -1.0]]),
    "BPE without its unknown piece": model(type="BPE", vocab={"a": 0}, merges=[], unk_token="<unk>", fuse_unk=True),
    "BPE with ids beyond": model(type="BPE", vocab={"<unk>": 0, "a": 2**31}, merges=[], unk_token=None, fuse_unk=True),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_nothing_but_its_reader(tmp_path: Path, name: str) -> None:
    file = json.loads(Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -2.0)], 0)).to_str())
    file["pre_tokenizer"] = json.loads(pre_tokenizers.Metaspace().__getstate__())
    HOSTILE[name](file)
    with pytest.raises(ConfigError, match=r"tokenizer\.model=.*(is not|has|splits|expected)") as caught:
        converted(tmp_path, json.dumps(file))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
