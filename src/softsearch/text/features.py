"""Fixed feature vectors, instead of source text or in addition: files of vectors, and sources with vectors.

A source of L vectors begins with L tags ``<feature>``, so that its length, attention and line in a file are those of a
sentence of L tokens. Text that comes with the vectors follows, after the tag ``<and>``.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.errors import CorpusError, InputError
from softsearch.files import open_file
from softsearch.text.vocabulary import FEATURE_TAG

Features = NDArray[np.floating]
_CHUNK = 256  # examples checked together


class FeatureSource(tuple[int, ...]):
    """The token ids of a source, without EOS, and a feature vector for each of the first ones, ``[vectors, dim]``.

    No two are equal, because their ids are.
    """

    features: Features
    __eq__, __hash__ = object.__eq__, object.__hash__

    def __new__(cls, ids: Sequence[int], features: Features) -> "FeatureSource":
        """Checks nothing; ``with_features`` does."""
        source = super().__new__(cls, ids)
        source.features = features
        return source


def read_features(path: Path) -> Features:
    """Maps a ``.npy`` file of features ``[examples, positions, dim]``, float16 or float32, into memory.

    No code in it is run: a file of Python objects is refused.

    Raises:
        CorpusError: the file is missing or damaged, or has the wrong type or shape.
    """
    try:
        open_file(path).close()  # NumPy waits for a pipe
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise CorpusError(
            f"{path} cannot be read ({error.strerror or error}); expected features, a .npy file"
        ) from error
    except Exception as error:  # the header of a damaged file may raise anything
        raise CorpusError(f"{path} is not a .npy file of numbers ({error}); write it with numpy.save") from error
    check_features(array, str(path))
    return array


def check_features(array: Any, name: str) -> None:
    """Checks type and shape.

    Raises:
        CorpusError: they are wrong.
    """
    if not isinstance(array, np.ndarray):
        raise CorpusError(
            f"{name} holds {type(array).__name__}, expected one array of features; write it with numpy.save"
        )
    if array.dtype not in (np.float16, np.float32):
        raise CorpusError(f"{name} has values of {array.dtype}, expected float16 or float32; convert it with astype")
    if array.ndim != 3 or not array.shape[1] or not array.shape[2]:
        raise CorpusError(f"{name} has the shape {list(array.shape)}, expected [examples, positions, dim]; reshape it")


def check_finite(features: Features, name: str, first: int = 1) -> None:
    """Checks all values; ``first`` is the number of the first example, for the message.

    Raises:
        CorpusError: a value is NaN or infinite.
    """
    for begin in range(0, len(features), _CHUNK):
        finite = np.isfinite(features[begin : begin + _CHUNK]).all(axis=(1, 2))
        if not finite.all():
            number = first + begin + int(np.argmin(finite))
            raise CorpusError(f"{name}: example {number} has NaN or infinite values, expected finite numbers; fix it")


def feature_lines(features: Features) -> Iterator[str]:
    """Yields the source text of each example: a tag for each vector."""
    line = " ".join([FEATURE_TAG] * features.shape[1])
    return (line for _ in range(len(features)))


def with_features(src: Sequence[Sequence[int]], features: Features | None) -> list[Sequence[int]]:
    """Returns the sources with their features; unchanged without features.

    Raises:
        InputError: a source does not begin with a tag for each vector.
    """
    if features is None:
        return list(src)
    if len(src) != len(features):
        raise InputError(f"{len(features)} examples of features for {len(src)} sources, expected one for each")
    for number, ids in enumerate(src, 1):
        tags = next((place for place, token in enumerate(ids) if token != ids[0]), len(ids))
        if ids and tags != features.shape[1]:
            raise InputError(
                f"source {number} of {len(ids)} tokens begins with {tags} equal tokens and has {features.shape[1]} "
                f"feature vectors, expected one {FEATURE_TAG} for each, in a vocabulary that has it"
            )
    return [FeatureSource(ids, vectors[: len(ids)]) for ids, vectors in zip(src, features, strict=True)]


def padded_features(src: Sequence[Sequence[int]], dim: int | None, name: str) -> NDArray[np.float32] | None:
    """The features of a batch, ``[batch, longest + 1, dim]``, 0 elsewhere, for a model that reads ``dim``.

    Args:
        src: the sources.
        dim: width of the vectors; None for a model that reads text.
        name: name of the model, for messages.

    Raises:
        InputError: the sources lack features, have some that the model does not read, or their width is wrong.
    """
    found = {source.features.shape[1] if isinstance(source, FeatureSource) else None for source in src}
    if found != {dim}:
        kinds = {None: "text without features"} | {width: f"features of {width} values" for width in found if width}
        raise InputError(
            f"{name} reads {kinds.get(dim, f'features of {dim} values')}, but the sources are "
            f"{' and '.join(kinds[width] for width in found)}; give it sources of its kind"
        )
    if dim is None:
        return None
    padded = np.zeros((len(src), max(map(len, src)) + 1, dim), dtype=np.float32)
    for row, source in zip(padded, src, strict=True):
        assert isinstance(source, FeatureSource)
        row[: len(source.features)] = source.features
    return padded
