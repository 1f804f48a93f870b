"""SentencePiece tokenizers: words, characters, BPE and unigram in one kind of file, with one set of special ids."""

import hashlib
import io
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, Protocol

import sentencepiece

from softsearch.errors import BundleError, ConfigError, CorpusError, InputError
from softsearch.text.checks import require_bool, require_choice, require_int
from softsearch.text.corpus import MAX_LINE_BYTES
from softsearch.text.vocabulary import BOS, EOS, PAD, SPECIALS, UNK

Kind = Literal["word", "char", "bpe", "unigram"]
KINDS: tuple[Kind, ...] = ("word", "char", "bpe", "unigram")
# Training cuts lines at the names of special pieces, so these hold what no line can hold: "<s>" in a corpus is text.
_SPECIAL_PIECES: dict[str, Any] = {f"{name}_piece": f"\n{name}" for name in ("pad", "unk", "bos", "eos")}
_UNK_SURFACE = {"word": " \u2047"}  # a word comes with the space before it, smaller units do not
_log = logging.getLogger(__name__)


class Tokenizer(Protocol):
    """Text to token ids and back."""

    vocab_size: int
    fingerprint: str  # sha256 of the model, in hexadecimal

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of ids; PAD, BOS and EOS are skipped."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Returns the name of each id, for people to read."""
        ...


class SentencePieceTokenizer:
    """A :class:`Tokenizer` that is a SentencePiece model.

    Args:
        model: the bytes of a model file.

    Raises:
        BundleError: the bytes are no SentencePiece model, or one with other special ids.
    """

    def __init__(self, model: bytes) -> None:
        """Parses the model."""
        self.model = model
        self.fingerprint = hashlib.sha256(model).hexdigest()
        self._processor = _parse(model)
        self.vocab_size: int = self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS; special names in it ("</s>") are plain text.

        Raises:
            InputError: the text holds a lone surrogate, which no file or terminal can hold.
        """
        ids: list[int] = self._processor.encode(_without_surrogates(text))
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of ids; PAD, BOS and EOS are skipped, UNK is shown as a sign.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        text: str = self._processor.decode([token for token in self._inside(ids) if token not in (PAD, BOS, EOS)])
        return text.lstrip(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Returns the name of each id; U+2581 in it stands for a space.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        return [
            SPECIALS[token] if token < len(SPECIALS) else self._processor.id_to_piece(token)
            for token in self._inside(ids)
        ]

    def __reduce__(self) -> tuple[type["SentencePieceTokenizer"], tuple[bytes]]:
        """Copies travel (to workers) as the model's bytes."""
        return type(self), (self.model,)

    def _inside(self, ids: Sequence[int]) -> list[int]:
        tokens = [int(token) for token in ids]
        for token in tokens:
            if not 0 <= token < self.vocab_size:
                raise InputError(f"token id {token} is outside the vocabulary of {self.vocab_size}; wrong tokenizer?")
        return tokens


@dataclass(frozen=True, kw_only=True)
class TokenizerTrainer:
    """Trains the tokenizers of a language pair on its training side.

    Args:
        kind: the unit: words, characters, or subwords by BPE or unigram.
        vocab_size: the most entries, the four special ones included; a corpus that supports fewer gets fewer.
        joint: one vocabulary for both languages, or one each.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    kind: Kind = "bpe"
    vocab_size: int = 8000
    joint: bool = True

    def __post_init__(self) -> None:
        """Checks the options."""
        require_choice("tokenizer.kind", self.kind, KINDS)
        require_int("tokenizer.vocab_size", self.vocab_size, at_least=len(SPECIALS) + 1)
        require_bool("tokenizer.joint", self.joint)

    def train(
        self, src_lines: Iterable[str], tgt_lines: Iterable[str]
    ) -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
        """Returns the source and the target tokenizer, the same object twice when joint."""
        if self.joint:
            both = self._train_one(chain(src_lines, tgt_lines))
            return both, both
        return self._train_one(src_lines), self._train_one(tgt_lines)

    def _train_one(self, lines: Iterable[str]) -> SentencePieceTokenizer:
        return train_tokenizer(lines, kind=self.kind, vocab_size=self.vocab_size)


def train_tokenizer(lines: Iterable[str], *, kind: Kind, vocab_size: int) -> SentencePieceTokenizer:
    """Trains a tokenizer; the same lines and options give the same bytes, on any number of cores.

    Text is taken as it is: no Unicode normalisation, every character of the corpus in the vocabulary.

    Args:
        lines: the training text; blank lines do nothing.
        kind: the unit.
        vocab_size: the most entries; when the corpus supports fewer, that many are trained and a warning is logged.

    Raises:
        ConfigError: ``vocab_size`` has no room for the corpus's characters.
        CorpusError: there is no text at all.
        InputError: a line holds a lone surrogate.
    """
    checked = [_without_surrogates(line) for line in lines]
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(checked),
            model_writer=model,
            model_type=kind,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            **_SPECIAL_PIECES,
            unk_surface=_UNK_SURFACE.get(kind, "\u2047"),
            normalization_rule_name="identity",
            character_coverage=1.0,
            max_sentence_length=4 * MAX_LINE_BYTES,
            num_threads=4,  # a constant: unigram's sums depend on how the sentences are shared out
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _training_error(str(error), kind, vocab_size) from error
    tokenizer = SentencePieceTokenizer(model.getvalue())
    if tokenizer.vocab_size < vocab_size:
        _log.warning(
            "tokenizer.vocab_size is %d, but the corpus supports only %d entries of kind %s: trained with %d",
            vocab_size,
            tokenizer.vocab_size,
            kind,
            tokenizer.vocab_size,
        )
    return tokenizer


def _training_error(message: str, kind: str, vocab_size: int) -> ConfigError | CorpusError:
    room = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if room:
        return ConfigError(
            f"tokenizer.vocab_size is {vocab_size}, but the characters of the corpus alone need {room[1]} with "
            f"tokenizer.kind {kind}; raise tokenizer.vocab_size"
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return CorpusError("there is no text to train a tokenizer on; expected lines with words, look at the corpus")
    return CorpusError(f"SentencePiece cannot train a {kind} tokenizer on this corpus: {message}")


def _parse(model: bytes) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        if not model:
            raise RuntimeError("it is empty")
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise BundleError(
            f"the tokenizer is no SentencePiece model ({len(model)} bytes: {str(error).strip()}); "
            "expected the bytes of a .model file, export or train it again"
        ) from error
    found = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if found != (PAD, UNK, BOS, EOS):
        raise BundleError(
            f"the tokenizer has the special ids pad, unk, bos, eos = {found}, expected {(PAD, UNK, BOS, EOS)}; "
            "train it with this lab"
        )
    return processor


def _without_surrogates(text: str) -> str:
    """Checks what SentencePiece would answer with a type error."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"character {error.start + 1} is the lone surrogate U+{ord(text[error.start]):04X}, which is no text; "
            "decode the input as UTF-8"
        ) from error
    return text
