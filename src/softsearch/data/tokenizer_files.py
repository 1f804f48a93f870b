"""Tokenizers from files: SentencePiece or Hugging Face models, and lists of words or characters."""

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from softsearch.data.existing_tokenizers import ExistingTokenizers, TokenizerMaker
from softsearch.data.sentencepiece_file import Piece, read_pieces, with_joiner, with_pieces
from softsearch.errors import ConfigError
from softsearch.files import open_file
from softsearch.text.corpus import read_lines
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, Tokenizers, TokenizerTrainer, train_tokenizer
from softsearch.text.vocabulary import SPECIALS

_MAX_BYTES = 256 << 20  # per model; the largest published ones have 10 MB
READERS = "softsearch.tokenizer_files"  # entry-point group; names are kinds of files
_SPACE = "\u2581"
_NOT_IN_WORDS = re.compile(rf"[ \t{_SPACE}]")
_COUNTED = re.compile(r"(\S+|.)[ \t]+[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?:[ \t]+#\S+)?[ \t]*")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class JoiningTrainer(TokenizerTrainer):
    """Trains tokenizers on text that is already split; they decode it joined."""

    def train(self, src_lines: Iterable[str], tgt_lines: Iterable[str], tags: Sequence[str] = ()) -> Tokenizers:
        trained = super().train(src_lines, tgt_lines, tags)
        src, tgt = (SentencePieceTokenizer(with_joiner(one.model, self.joiner)) for one in trained)
        return src, src if tgt.model == src.model else tgt


def from_files(trainer: TokenizerTrainer) -> TokenizerMaker:
    """Returns the tokenizers of ``trainer.model`` or ``trainer.vocabulary``; the trainer itself if it has neither.

    Raises:
        ConfigError: a file is missing or of the wrong kind, or the units in a list are subwords.
        CorpusError: a list is not UTF-8 text.
    """
    key, value = ("model", trainer.model) if trainer.model is not None else ("vocabulary", trainer.vocabulary)
    if value is None:
        return JoiningTrainer(**vars(trainer)) if trainer.joiner else trainer
    files = [value, value] if isinstance(value, str | Path) else list(value)
    if len(files) != 2:
        raise ConfigError(f"tokenizer.{key} is {value!r}, expected a file, or two as '[source,target]'")
    src, tgt = (
        _read_model(Path(path)) if key == "model" else _read_list(Path(path), kind)
        for path, kind in zip(files, trainer.kinds, strict=True)
    )
    if trainer.joiner:
        src, tgt = with_joiner(src, trainer.joiner), with_joiner(tgt, trainer.joiner)
    return ExistingTokenizers(models=(src, tgt), origin=f"tokenizer.{key}={value}", sampling=trainer.sampling)


def _read_model(path: Path) -> bytes:
    """Reads a model and gives it this lab's special ids; it segments text as before."""
    name = f"tokenizer.model={path}"
    try:
        with open_file(path) as file:
            model = file.read(_MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read ({error.strerror}); expected a .model or .spm file") from error
    if model.lstrip().startswith(b"{"):
        model = _reader_of("json", name)(model, name)
    return with_pieces(model, list(read_pieces(model, name).values()), name)


def _reader_of(kind: str, name: str) -> Callable[[bytes, str], bytes]:
    """An installed package's function that converts such a file to a SentencePiece model."""
    for point in entry_points(group=READERS, name=kind):
        reader: Callable[[bytes, str], bytes] = point.load()
        return reader
    raise ConfigError(
        f"{name} is {kind}, and no installed package lists a reader for it under the entry-point group {READERS}; "
        "install softsearch again (in a clone: make setup)"
    )


def _read_list(path: Path, kind: Kind) -> bytes:
    """Makes a model of the words or characters in a list, in its order."""
    name = f"tokenizer.vocabulary={path}"
    if kind not in ("word", "char"):
        raise ConfigError(
            f"{name} is a list without scores, so it does not define how {kind} splits text; set tokenizer=word or "
            "tokenizer=char, or tokenizer.model=FILE"
        )
    lines = [line for line in read_lines(path) if line]
    with_counts = [_COUNTED.fullmatch(line) for line in lines]
    if all(with_counts):  # from onmt_build_vocab, fairseq's dict.txt or SentencePiece's .vocab
        lines = [found[1] for found in with_counts if found]
        _log.info("%s has numbers after its words: only the words are read", name)
    units = [line for line in dict.fromkeys(lines) if line not in SPECIALS]  # from other tools, too
    return list_model(units, kind, name)


def list_model(units: Sequence[str], kind: Kind, name: str) -> bytes:
    """Returns a model of the given words or characters, in their order.

    Args:
        units: the words or characters; a space is also one.
        kind: ``word`` or ``char``.
        name: name of the list, for messages.

    Raises:
        ConfigError: there are no units, or one is not a word or a character.
    """
    if kind == "char":
        units = list(dict.fromkeys([_SPACE, *(_SPACE if unit == " " else unit for unit in units)]))
    wrong = next((unit for unit in units if (len(unit) > 1 if kind == "char" else _NOT_IN_WORDS.search(unit))), None)
    if wrong is not None or not units:
        found = "empty" if wrong is None else f"a list with {wrong!r:.60}"
        raise ConfigError(
            f"{name} is {found}, expected one {kind} per line, or on every line one {kind}, a tab or a space, and a "
            "number; fix the list or set another tokenizer.kind"
        )
    base = train_tokenizer(["a"], kind=kind, vocab_size=len(SPECIALS) + (1 if kind == "word" else 2)).model
    spaced = [_SPACE + unit if kind == "word" else unit for unit in units]
    return with_pieces(base, [Piece(unit, -float(rank)) for rank, unit in enumerate(spaced)], name)
