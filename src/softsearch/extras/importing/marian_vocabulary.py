"""Reads vocabularies of Marian: a SentencePiece model, ``.spm``, or the ids of words, ``.yml`` or ``.json``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from softsearch.data import read_pieces, with_pieces
from softsearch.data.parts import list_model, processor_of
from softsearch.errors import ConfigError, summarize
from softsearch.extras.importing.imported import read_bytes
from softsearch.extras.importing.marian_mt import source_pieces, target_pieces

_WORDS, _PIECES = (".yml", ".yaml", ".json"), (".spm",)
_MAX_NESTING = 64
_EOS, _UNK = "</s>", "<unk>"
_Split = Callable[[Path, dict[str, int]], tuple[bytes, list[int]]]


class Vocabulary(NamedTuple):
    """A vocabulary converted to our tokenizer.

    Attributes:
        model: the SentencePiece model.
        rows: the id in Marian for each of its ids, -1 for PAD and BOS.
    """

    model: bytes
    rows: list[int]


def read_vocabularies(model: Path, sizes: tuple[int, int]) -> tuple[Vocabulary, Vocabulary]:
    """Reads the vocabularies of source and target next to a ``model.npz``: those in ``decoder.yml``, or the only one.

    Args:
        model: the file ``model.npz``.
        sizes: numbers of rows of its matrices for source and target.

    Raises:
        ConfigError: there are none with these sizes, or several without a ``decoder.yml`` that assigns them.
    """
    src, tgt = _find(model)
    return (
        _read_side(src, sizes[0], model.with_name("source.spm"), source_pieces),
        _read_side(tgt, sizes[1], model.with_name("target.spm"), target_pieces),
    )


def _read_side(path: Path, size: int, spm: Path, split: _Split) -> Vocabulary:
    """Reads one side; the words of OPUS-MT are pieces of SentencePiece models in the same folder."""
    if path.suffix in _PIECES:
        return _from_pieces(path, size)
    if path.suffix not in _WORDS:
        raise ConfigError(f"{path} cannot be imported as a vocabulary, expected .spm, .yml or .json")
    words = _read_words(path, size)
    if spm.is_file():
        model, rows = split(spm, words)
    else:
        text = [word for word in words if word not in (_EOS, _UNK)]
        model, rows = list_model(text, "word", str(path)), [words[word] for word in text]
    return Vocabulary(model, [-1, words[_UNK], -1, words[_EOS], *rows])


def _find(model: Path) -> tuple[Path, Path]:
    for config in (model.with_name(f"{model.name}.decoder.yml"), model.with_name("decoder.yml")):
        if config.is_file():
            node = _read_mapping(config).get("vocabs")
            names = [each.value for each in node.value] if isinstance(node, yaml.SequenceNode) else []
            if len(names) != 2 or not all(isinstance(name, str) and Path(name).name for name in names):
                raise ConfigError(f"{config} does not name two vocabs, expected 'vocabs: [SOURCE, TARGET]'; add them")
            src, tgt = (model.with_name(Path(name).name) for name in names)  # paths are those of the training machine
            return src, tgt
    found = [path for path in sorted(model.parent.glob("*vocab*")) if path.suffix in (*_WORDS, *_PIECES)]
    if len(found) != 1:
        raise ConfigError(
            f"{model.parent} has {len(found)} vocabularies and no decoder.yml, expected one vocabulary, or a "
            f"{model.name}.decoder.yml with 'vocabs: [SOURCE, TARGET]'; add it"
        )
    return found[0], found[0]


def _from_pieces(path: Path, size: int) -> Vocabulary:
    model, name = read_bytes(path, "a vocabulary of Marian"), str(path)
    pieces = read_pieces(model, name)
    processor = processor_of(model, name)
    unk, eos, found = processor.unk_id(), processor.eos_id(), processor.get_piece_size()
    if eos < 0 or found != len(pieces) + 2:
        raise ConfigError(
            f"{path} has other special pieces than {_EOS} and {_UNK}, the only ones in Marian's own files; use the "
            ".spm file that the model was trained with"
        )
    _check_size(path, found, size)
    return Vocabulary(with_pieces(model, list(pieces.values()), name), [-1, unk, -1, eos, *pieces])


def _read_words(path: Path, size: int) -> dict[str, int]:
    """Reads the ids of words, for all rows of the model."""
    nodes = _read_mapping(path).items()
    words = {index.value: word for word, index in nodes if isinstance(index, yaml.ScalarNode)}
    ordered = [words.get(str(index), "") for index in range(min(size, len(words)))]
    if "" in ordered or not {_EOS, _UNK} <= {*ordered}:
        raise ConfigError(f"{path} is not a list of words with ids from 0, including {_EOS} and {_UNK}; use another")
    _check_size(path, len(ordered), size)
    return {word: index for index, word in enumerate(ordered)}


def _check_size(path: Path, found: int, size: int) -> None:
    if found != size:
        raise ConfigError(
            f"{path} has {found:,} entries, but the model has {size:,}; use the vocabulary that it was trained with"
        )


def _read_mapping(path: Path) -> dict[str, Any]:
    """Reads a YAML mapping as nodes, so that words like ``no`` or ``1`` do not become values of another type."""
    content, depth = read_bytes(path, "a vocabulary of Marian"), 0
    try:
        for event in yaml.parse(content, yaml.CSafeLoader):  # compose is recursive in C and could overflow the stack
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_NESTING:
                raise ValueError(f"it is nested deeper than {_MAX_NESTING} levels")
        node = yaml.compose(content, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML of plain values ({summarize(error)}); use another file") from error
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path} is not YAML of values by name; use another file")
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
