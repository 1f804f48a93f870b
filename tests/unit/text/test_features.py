"""Files of feature vectors, and sources that carry them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softsearch.errors import CorpusError, InputError
from softsearch.text.features import (
    FeatureSource,
    check_finite,
    feature_lines,
    padded_features,
    read_features,
    with_features,
)

FEATURES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_file_is_mapped_into_memory(tmp_path: Path, dtype: type[np.floating]) -> None:
    np.save(tmp_path / "a.npy", FEATURES.astype(dtype))
    read = read_features(tmp_path / "a.npy")
    assert isinstance(read, np.memmap)
    assert read.dtype == dtype
    assert read.tolist() == FEATURES.tolist()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (FEATURES.astype(np.float64), r"values of float64, expected float16 or float32"),
        (FEATURES.astype(np.int64), r"values of int64"),
        (FEATURES[0], r"shape \[3, 4\], expected \[examples, positions, dim\]"),
        (FEATURES[:, :0], r"shape \[2, 0, 4\]"),
        (np.array([[["text"]]], dtype=object), r"not a \.npy file of numbers \(.*Python objects"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path: Path, array: Any, message: str) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(CorpusError, match=rf"a\.npy .*{message}"):
        read_features(tmp_path / "a.npy")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"text\n", pickle.dumps([1, 2])])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(CorpusError, match=r"a\.npy is not a \.npy file of numbers"):
        read_features(tmp_path / "a.npy")


def test_missing_cut_off_and_packed_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"cannot be read \(No such file"):
        read_features(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", FEATURES)
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-1])
    with pytest.raises(CorpusError, match=r"is not a \.npy file of numbers"):
        read_features(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", FEATURES)
    with pytest.raises(CorpusError, match=r"holds NpzFile, expected one array"):
        read_features(tmp_path / "a.npz")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_found(value: float) -> None:
    many = np.zeros((600, 2, 3), dtype=np.float32)
    check_finite(many, "x")
    many[599, 1, 2] = value
    with pytest.raises(CorpusError, match="x: example 610 has NaN or infinite values"):
        check_finite(many, "x", first=11)


def test_a_line_has_a_tag_for_each_vector() -> None:
    assert list(feature_lines(FEATURES)) == ["<feature> <feature> <feature>"] * 2


def test_a_batch_is_padded_as_its_tokens_are() -> None:
    first, second = with_features([[4, 4, 4], [4, 4, 4]], FEATURES)
    short = FeatureSource([4], FEATURES[1, :1])
    padded = padded_features([first, short], 4, "m")
    assert padded is not None
    assert padded.dtype == np.float32
    assert padded.tolist() == [[*FEATURES[0].tolist(), [0] * 4], [FEATURES[1, 0].tolist(), [0] * 4, [0] * 4, [0] * 4]]
    assert list(second) == [4, 4, 4]
    assert padded_features([[4, 5], []], None, "m") is None


def test_sources_of_another_kind_are_refused() -> None:
    sources = with_features([[4, 4, 4], [4, 4, 4]], FEATURES)
    with pytest.raises(InputError, match="m reads text without features, but the sources are features of 4 values"):
        padded_features(sources, None, "m")
    with pytest.raises(InputError, match="m reads features of 5 values, but the sources are features of 4 values"):
        padded_features(sources, 5, "m")
    with pytest.raises(InputError, match="m reads features of 4 values, but the sources are text without features"):
        padded_features([[4, 5]], 4, "m")
    with pytest.raises(InputError, match="2 examples of features for 1 sources"):
        with_features([[4, 4, 4]], FEATURES)
    for ids in ([4, 4], [4, 4, 4, 4], [4, 4, 5]):
        with pytest.raises(
            InputError, match=r"source 2 of \d tokens begins with \d equal tokens and has 3 feature vec"
        ):
            with_features([[4, 4, 4], ids], FEATURES)


def test_text_beside_vectors_has_none() -> None:
    padded = padded_features(with_features([[5, 5, 5, 4, 9], []], FEATURES), 4, "m")
    assert padded is not None
    assert padded.tolist() == [[*FEATURES[0].tolist(), [0] * 4, [0] * 4, [0] * 4], [[0] * 4] * 6]
