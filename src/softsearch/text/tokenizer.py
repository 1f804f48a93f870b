"""SentencePiece tokenizers: words, characters, BPE and unigram in one kind of file, with one set of special ids.

Subwords and characters are detokenised losslessly (Kudo & Richardson 2018, arXiv:1808.06226, section 3.1), except for

- surplus U+0020: spaces around the text, and all but one in a row, so that extra spaces do not change a translation;
- U+2581, SentencePiece's sign for a space, which becomes a space (or, if surplus, nothing);
- characters that the vocabulary lacks, including NUL, U+001F and U+2585, which SentencePiece never learns; the lab's
  models read those with a look-alike in the vocabulary as that (``softsearch.text.folding``).

A word tokenizer gives one UNK for each unknown word; adjacent smaller unknown units share one.
"""

import hashlib
import io
import logging
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import sentencepiece

from softsearch.errors import ConfigError, CorpusError, InputError
from softsearch.ranges import Range, Share
from softsearch.text.corpus import MAX_LINE_BYTES
from softsearch.text.sentencepiece_model import parse_model
from softsearch.text.vocabulary import BOS, EOS, FIRST_TAG, PAD, SOURCE_SEPARATOR, SPECIALS, SYMBOL, UNK

Kind = Literal["word", "char", "bpe", "unigram"]
_Pieces = Annotated[int, Range(len(SPECIALS) + 1, 2**24)]
_Files = Annotated[str | Path | Sequence[str | Path] | None, "a file, two as in '[src.model,tgt.model]', or null"]
JOINER = "@@ "  # from subword-nmt and its successors
_SPACE = "\u2581"
# Training cuts lines at the names of special pieces, so they contain a line end: "<s>" in a corpus is text.
_SPECIAL_PIECES: dict[str, Any] = {f"{name}_piece": f"\n{name}" for name in ("pad", "unk", "bos", "eos")}
_log = logging.getLogger(__name__)


class SentencePieceTokenizer:
    """Converts text to token ids and back with a SentencePiece model.

    With ``reverse`` ids run from the text's end to its start (Sutskever et al. 2014, arXiv:1409.3215, section 3.3);
    text and pieces are always in the order of the text.

    Raises:
        BundleError: the bytes are not a SentencePiece model, or its special ids or its pieces are wrong.
    """

    unknown_ids: Set[int] = frozenset({UNK})

    def __init__(self, model: bytes, *, reverse: bool = False) -> None:
        self.model, self.reverse = model, reverse
        self.fingerprint = hashlib.sha256(model + b"reverse" * reverse).hexdigest()  # of all that determines the ids
        self._processor = parse_model(model)
        self.vocab_size: int = self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without BOS and EOS; names of special tokens in it ("</s>") are plain text.

        Raises:
            InputError: the text holds a lone surrogate, which UTF-8 cannot encode.
        """
        _without_surrogates(text)
        if self.has_words:  # SentencePiece gives adjacent unknown words one UNK
            return self._in_model_order(self._processor.piece_to_id([_SPACE + word for word in self._words(text)]))
        return self._in_model_order(self._processor.encode(text))

    def decode(self, ids: Sequence[int], *, joined: bool = True) -> str:
        """Returns the text of ids without spaces around it; PAD, BOS and EOS are skipped, UNK becomes a visible sign.

        In a model of split text the words are joined (``joiner``), or stay split with ``joined`` false.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        plain = [token for token in self._validated(ids) if token not in (PAD, BOS, EOS)]
        if self.joiner and not joined:
            return " ".join(self._processor.decode([token]).strip(" ") for token in self._in_model_order(plain))
        return self._processor.decode(self._in_model_order(plain)).strip(" ")

    def normalize_like_decode(self, text: str) -> str:
        """Returns a text as ``decode`` writes it: split text is joined, other text is unchanged."""
        return text.replace(self.joiner, "") if self.joiner else text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Returns the names of ids, in the order of the text; U+2581 in them stands for a space.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        tokens = self._validated(ids)
        ordered = [tokens[index] for index in self.text_order(tokens)]
        return [self._names[token] for token in ordered]

    def read_pieces(self, text: str, ids: Sequence[int]) -> list[str]:
        """Returns the names of a text's ids, with the letters of the text for what the vocabulary lacks."""
        names = self.pieces(ids)
        unknown = self._unknown(text) if UNK in ids else []
        if len(unknown) != sum(name == SPECIALS[UNK] for name in names):  # of another text, such as a folded one
            return names
        letters = iter(unknown)
        return [next(letters) if name == SPECIALS[UNK] else name for name in names]

    def names(self) -> list[str]:
        """Returns the name of every id, as in ``pieces``."""
        return list(self._names)

    @cached_property
    def _names(self) -> list[str]:
        return [*SPECIALS, *self._processor.id_to_piece(list(range(len(SPECIALS), self.vocab_size)))]

    @cached_property
    def has_words(self) -> bool:
        """Tells whether the pieces are whole words: each begins with a space."""
        return all(piece.startswith(_SPACE) for piece in self.vocabulary())

    @cached_property
    def joiner(self) -> str:
        """The joiner that decoding removes from text split in advance: "@@ ", or ""."""
        ends = (token for name, (token, _) in self.vocabulary().items() if name.endswith(JOINER.rstrip()))
        continued = next(ends, None) if self.has_words else None
        return JOINER if continued and JOINER not in self._processor.decode([continued, continued]) else ""

    @cached_property
    def reads_several_sources(self) -> bool:
        """Tells whether the model's lines have several sources, or text and feature vectors, separated by a tag."""
        return self.encode(SOURCE_SEPARATOR) == [FIRST_TAG]

    @cached_property
    def reads_symbols(self) -> bool:
        """Tells whether the model reads numbered symbols instead of what is not language (``<1>``, data=catalogs)."""
        return bool(self._processor.piece_to_id("<1>") != UNK)

    def words(self, text: str) -> list[str]:
        """Returns the words of the ids of ``encode(text)``, UNK included; for word tokenizers."""
        words = self._words(text)
        return words[::-1] if self.reverse else words

    def normalized(self, text: str) -> str:
        """Returns a text as the model reads it: folded by its rules, without surplus spaces.

        Raises:
            InputError: the text holds a lone surrogate.
        """
        return " ".join(self._words(text))

    def unknown(self, text: str) -> list[str]:
        """Returns what the vocabulary lacks of a text, in order: characters, or words for a word tokenizer."""
        unknown = self._unknown(text)
        return [word.removeprefix(_SPACE) for word in unknown] if self.has_words else list("".join(unknown))

    def _unknown(self, text: str) -> list[str]:
        """Returns the pieces that the vocabulary lacks, in the order of the text."""
        ids = self._in_model_order(self.encode(text))
        pieces: list[str] = (
            [_SPACE + word for word in self._words(text)]
            if self.has_words
            else self._processor.encode(text, out_type=str)
        )
        return [piece for piece, token in zip(pieces, ids, strict=True) if token == UNK]

    def vocabulary(self) -> dict[str, tuple[int, float]]:
        """Returns the ids and scores (log probability, or rank of the merge) of the text pieces, ordered by id."""
        tokens = range(len(SPECIALS), self.vocab_size)
        return {self._names[token]: (token, self._processor.get_score(token)) for token in tokens}

    def text_order(self, ids: Sequence[int]) -> list[int]:
        """Returns the indices of ``ids`` in the order of the text, as in ``pieces``; PAD, BOS and EOS stay."""
        if not self.reverse:
            return list(range(len(ids)))
        plain = [index for index, token in enumerate(ids) if token not in (PAD, BOS, EOS)]
        turned = dict(zip(plain, self._in_model_order(plain), strict=True))
        return [turned.get(index, index) for index in range(len(ids))]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the model's bytes, for worker processes."""
        return partial(type(self), reverse=self.reverse), (self.model,)

    def _words(self, text: str) -> list[str]:
        """The words of a text after the model's normalisation."""
        normalized = self._processor.normalize(_without_surrogates(text))
        return [word for word in normalized.replace(_SPACE, " ").split(" ") if word]

    def _in_model_order(self, ids: list[int]) -> list[int]:
        return ids[::-1] if self.reverse else ids

    def _validated(self, ids: Sequence[int]) -> list[int]:
        tokens = [int(token) for token in ids]
        for token in tokens:
            if not 0 <= token < self.vocab_size:
                raise InputError(f"token id {token} is outside the vocabulary of {self.vocab_size}; wrong tokenizer?")
        return tokens


Tokenizers = tuple[SentencePieceTokenizer, SentencePieceTokenizer]  # source and target


@dataclass(frozen=True, kw_only=True)
class TokenizerTrainer:
    """Trains the tokenizers of a language pair.

    Args:
        kind: the unit: words, characters, or subwords by BPE or unigram.
        src_kind: the unit of the source, if different from the target's; not with ``joint``.
        vocab_size: maximum number of entries, including the four special ones; a corpus that supports fewer gets fewer.
        src_vocab_size: maximum number of source entries, if different from the target's; not with ``joint``.
        joint: one vocabulary for both languages, or one each.
        sampling: ``alpha`` of subword sampling (``SubwordSampler``) in training;
            0 turns it off. A larger value varies BPE more (0.1 is usual) and unigram less (0.2 makes Multi30k's
            sentences a third longer, 0.5 a twentieth).
        model: SentencePiece model to use instead of training one, with any special ids, or ``tokenizer.json`` from
            Hugging Face; or one for each side.
        vocabulary: file of the words or characters to use, one per line, or one file for each side.
        joiner: "@@ " for text whose words are already split, such as ``low@@ er``: translations are joined; otherwise
            "".

    Raises:
        ConfigError: the options contradict each other, or ``kind`` has only one segmentation.
    """

    kind: Kind = "bpe"
    src_kind: Kind | None = None
    vocab_size: _Pieces = 8000
    src_vocab_size: _Pieces | None = None
    joint: bool = True
    sampling: Share = 0.0
    model: _Files = None
    vocabulary: _Files = None
    joiner: Literal["", "@@ "] = ""

    def __post_init__(self) -> None:
        if self.model is not None and self.vocabulary is not None:
            raise ConfigError("tokenizer.model and tokenizer.vocabulary are both set; set one of them to null")
        if self.joiner and (set(self.kinds) != {"word"} or self.model is not None):
            raise ConfigError(
                f"tokenizer.joiner is {self.joiner!r}, for text that is split already, expected tokenizer.kind=word "
                "and no tokenizer.model; set tokenizer=pretokenised, or tokenizer.joiner=''"
            )
        for key in ("src_vocab_size", "src_kind"):
            if (value := getattr(self, key)) is not None and self.joint:
                raise ConfigError(
                    f"tokenizer.{key} is {value}, but with tokenizer.joint=true both sides share one vocabulary; set "
                    f"tokenizer.joint=false or tokenizer.{key}=null"
                )
        for key, kind in (("kind", self.kind), ("src_kind", self.src_kind)):
            if self.sampling and kind in ("word", "char"):
                raise ConfigError(
                    f"tokenizer.sampling is {self.sampling}, but text has only one segmentation with tokenizer.{key} "
                    f"{kind}; set tokenizer.sampling=0, or choose tokenizer=bpe or tokenizer=unigram"
                )

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The units of source and target."""
        return self.src_kind or self.kind, self.kind

    def train(self, src_lines: Iterable[str], tgt_lines: Iterable[str], tags: Sequence[str] = ()) -> Tokenizers:
        """Returns the source and the target tokenizer, the same object twice when joint.

        Each of the ``tags``, words of source lines, becomes one piece of the source vocabulary, and each symbol among
        them (``<1>``) one piece of both.
        """
        if self.joint:
            both = train_tokenizer(chain(src_lines, tgt_lines), kind=self.kind, vocab_size=self.vocab_size, tags=tags)
            return both, both
        src_key = "vocab_size" if self.src_vocab_size is None else "src_vocab_size"
        (src_kind, kind), size = self.kinds, getattr(self, src_key)
        src = train_tokenizer(src_lines, kind=src_kind, vocab_size=size, tags=tags, key=f"tokenizer.{src_key}")
        symbols = [*filter(SYMBOL.fullmatch, tags)]
        return src, train_tokenizer(tgt_lines, kind=kind, vocab_size=self.vocab_size, tags=symbols)


def train_tokenizer(
    lines: Iterable[str], *, kind: Kind, vocab_size: int, tags: Sequence[str] = (), key: str = "tokenizer.vocab_size"
) -> SentencePieceTokenizer:
    """Trains a tokenizer; the same lines and options give the same bytes, on any number of cores.

    Text is used unchanged: no Unicode normalisation, every character of the corpus in the vocabulary. Blank lines are
    ignored. If the corpus supports fewer entries than ``vocab_size``, that many are trained and a warning is logged.
    Each of the ``tags`` is one piece, with the space before it, wherever it begins a word; a symbol such as ``<1>`` is
    one wherever it stands. ``key`` is the option that sets ``vocab_size``, for messages.

    Raises:
        ConfigError: ``vocab_size`` has no room for the corpus's characters and tags.
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
            unk_surface=" \u2047" if kind == "word" else "\u2047",  # a word includes the space before it
            user_defined_symbols=[tag if SYMBOL.fullmatch(tag) else _SPACE + tag for tag in tags],
            normalization_rule_name="identity",
            character_coverage=1.0,
            max_sentence_length=4 * MAX_LINE_BYTES,
            num_threads=4,  # constant: unigram's sums depend on how sentences are distributed
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _training_error(str(error), kind, key, vocab_size, len(SPECIALS) + len(tags)) from error
    tokenizer = SentencePieceTokenizer(model.getvalue())
    if tokenizer.vocab_size < vocab_size:
        _log.warning(
            "%s is %d, but the corpus supports only %d entries of kind %s: trained with %d",
            key,
            vocab_size,
            tokenizer.vocab_size,
            kind,
            tokenizer.vocab_size,
        )
    return tokenizer


def _training_error(message: str, kind: str, key: str, vocab_size: int, reserved: int) -> ConfigError | CorpusError:
    wanted = ""
    if room := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        wanted = f"but characters, special tokens and tags alone need {room[1]}"
    elif "(vocab_size) >= (0)" in message or "insert_id" in message:
        wanted = f"which has no room besides {reserved} special tokens and tags"
    if wanted:
        return ConfigError(f"{key} is {vocab_size}, {wanted} with tokenizer.kind {kind}; raise {key}")
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return CorpusError("there is no text to train a tokenizer on; expected lines with words; check the corpus")
    return CorpusError(f"SentencePiece cannot train a {kind} tokenizer on this corpus: {message}")


def _without_surrogates(text: str) -> str:
    """Returns the text; refuses lone surrogates, for which SentencePiece would raise a type error."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"character {error.start + 1} is the lone surrogate U+{ord(text[error.start]):04X}, which is not text; "
            "decode the input as UTF-8"
        ) from error
    return text
