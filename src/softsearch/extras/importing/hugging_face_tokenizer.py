"""Converts ``tokenizer.json`` files of Hugging Face to SentencePiece models, if both split text alike.

Files are read in a separate process, which runs this module, because the libraries that read them panic, abort or crash
on damaged files.
"""

import base64
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Literal

from tokenizers import Tokenizer

from softsearch.data import Piece, with_pieces
from softsearch.errors import ConfigError, summarize
from softsearch.extras.importing.pieces import with_normalizer
from softsearch.text import UNK, SentencePieceTokenizer, train_tokenizer
from softsearch.text.parts import read_json

_KINDS: dict[str, Literal["bpe", "unigram"]] = {"BPE": "bpe", "Unigram": "unigram"}
_OPTIONS = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")
_CHECKED, _MAX_PIECES = 1000, 30
_SPACE = "\u2581"
_SPACES = (  # steps of transformers 4 and 5 that change only surplus spaces
    *({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": space} for space in (" ", _SPACE)),
    {"type": "Strip", "strip_left": False, "strip_right": True},
)
_MAX_ID = 2**24
_REFUSED = 3  # exit status if a file is refused with a message
_MAX_BYTES, _MAX_SECONDS = 4 << 30, 600  # limits of the process; a vocabulary of 250,000 pieces needs a tenth of them
_REMEDY = "use the model's SentencePiece file (.model or .spm), or train a tokenizer"


def from_tokenizer_json(content: bytes, name: str) -> bytes:
    """Runs ``convert`` in a separate process; raises the same errors."""
    command = [sys.executable, "-P", "-m", __name__, name]
    done = subprocess.run(command, input=content, capture_output=True, check=False)
    if done.returncode == _REFUSED:
        raise ConfigError(done.stdout.decode())
    if done.returncode:
        raise ConfigError(
            f"{name} is not a tokenizer.json (reading it ended with status {done.returncode}); expected one from "
            "Hugging Face"
        )
    return done.stdout


def convert(content: bytes, name: str) -> bytes:
    """Returns a SentencePiece model that splits text like the file, except for surplus spaces.

    The score of a BPE piece is the rank of its first merge. SentencePiece then merges any two pieces that form a piece,
    but ``tokenizers`` only the pairs in its list; random text of all pieces is used to check that this makes no
    difference. Names of special tokens, which ``tokenizers`` would find in text, are plain text.

    Args:
        content: content of the file.
        name: name of the file, for messages.

    Raises:
        ConfigError: it is not such a file, or splits text differently; the message has the reason.
    """
    try:
        _check_ids(read_json(content))
        described = json.loads(Tokenizer.from_str(content.decode()).to_str())  # adds defaults that older files omit
    except Exception as error:  # tokenizers has no exception class
        why = " ".join(str(error).split())
        raise ConfigError(f"{name} is not a tokenizer.json ({why:.200}); expected one from Hugging Face") from error
    model = described["model"]
    if reason := next(_reasons(described), None):
        raise ConfigError(f"{name} {reason}, which SentencePiece does not support; {_REMEDY}")
    special = {token["content"] for token in described["added_tokens"]}
    if model["type"] == "BPE":
        ranks: dict[str, int] = {}
        for rank, merge in enumerate(model["merges"]):
            ranks.setdefault("".join(merge), rank)
        ordered = sorted(model["vocab"], key=model["vocab"].__getitem__)
        scored = [(piece, -float(ranks.get(piece, len(ranks)))) for piece in ordered]
    else:
        scored = [(piece, score) for index, (piece, score) in enumerate(model["vocab"]) if index != model["unk_id"]]
    pieces = [Piece(piece, score) for piece, score in scored if piece not in special]
    kind = _KINDS[model["type"]]
    base = with_normalizer(train_tokenizer(["a"], kind=kind, vocab_size=8).model, _charsmap(described["normalizer"]))
    converted = with_pieces(base, pieces, name)
    _compare(described, SentencePieceTokenizer(converted), name)
    return converted


def _check_ids(file: Any) -> None:
    """Refuses ids so large that ``tokenizers`` would allocate memory for them."""
    model = file.get("model") if isinstance(file, dict) else None
    vocab = model.get("vocab") if isinstance(model, dict) else None
    ids = vocab.values() if isinstance(vocab, dict) else ()
    if (largest := max((token for token in ids if isinstance(token, int)), default=0)) >= _MAX_ID:
        raise ValueError(f"it has the id {largest}")


def _reasons(described: dict[str, Any]) -> Iterator[str]:
    """Yields reasons why a file cannot be a SentencePiece model."""
    model = described["model"]
    if model["type"] not in _KINDS:
        yield f"has a model of type {model['type']}"
    if found := [option for option in _OPTIONS if model.get(option)]:
        yield f"has {found[0]}={model[found[0]]!r:.40}"
    if model["type"] == "BPE" and not model.get("fuse_unk"):
        yield "has fuse_unk=false"
    if words := [token["content"] for token in described["added_tokens"] if not token["special"]]:
        yield f"adds {words[0]!r:.40} to its model"
    steps = _steps(described["pre_tokenizer"], "pretokenizers")
    if steps and steps[0] == {"type": "WhitespaceSplit"}:
        steps = steps[1:]
    spaces = [step for step in steps if step["type"] == "Metaspace" and step["replacement"] == _SPACE]
    if len(steps) != 1 or not spaces or spaces[0].get("prepend_scheme", "always") != "always":
        yield f"splits text by {json.dumps(described['pre_tokenizer']):.200}"
    for step in _steps(described["normalizer"], "normalizers"):
        if step["type"] != "Precompiled" and step not in _SPACES:
            yield f"changes text by {json.dumps(step):.200}"


def _steps(part: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    if part is None:
        return []
    return list(part[key]) if part["type"] == "Sequence" else [part]


def _charsmap(normalizer: dict[str, Any] | None) -> bytes:
    maps = [s["precompiled_charsmap"] for s in _steps(normalizer, "normalizers") if s["type"] == "Precompiled"]
    return base64.b64decode(maps[0]) if maps else b""


def _compare(described: dict[str, Any], ours: SentencePieceTokenizer, name: str) -> None:
    """Compares random text of all pieces; raises ConfigError if there is a difference."""
    plain: dict[str, Any] = {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    theirs = Tokenizer.from_str(json.dumps({**described, **plain}))
    rng, names = random.Random(0), [piece.replace(_SPACE, " ") for piece in ours.vocabulary()]
    lines = ["".join(rng.choices(names, k=rng.randint(1, _MAX_PIECES))) for _ in range(_CHECKED)]
    own = {piece: token for piece, (token, _) in ours.vocabulary().items()}
    for line in (" ".join(line.split()) for line in [*lines, *names]):
        ids = ours.encode(line)
        found = [own.get(str(theirs.id_to_token(token)), UNK) for token in theirs.encode(line).ids]
        if found != ids and sorted(found) != sorted(ids):  # rounding decides the order of equal scores
            raise ConfigError(
                f"{name} splits {line!r:.60} into {len(found)} pieces, but SentencePiece into {len(ids)} or others, "
                f"expected the same; {_REMEDY}"
            )


def main() -> None:
    """Converts standard input; the exit status tells whether the output is a model or a message."""
    _limit()
    name = sys.argv[1]
    try:
        sys.stdout.buffer.write(convert(sys.stdin.buffer.read(), name))
    except ConfigError as error:
        _refuse(str(error))
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is not an Exception
        _refuse(f"{name} is not a tokenizer.json ({summarize(error)}); expected one from Hugging Face")


def _refuse(message: str) -> None:
    sys.stdout.buffer.write(message.encode(errors="replace"))
    sys.exit(_REFUSED)


def _limit() -> None:
    """Limits this process, if the system supports it."""
    try:
        import resource
    except ModuleNotFoundError:
        return
    for kind, most in (("AS", _MAX_BYTES), ("CPU", _MAX_SECONDS), ("CORE", 0)):
        limit = getattr(resource, f"RLIMIT_{kind}")
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main()
