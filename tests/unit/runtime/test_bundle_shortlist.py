"""Shortlists of bundles: two files without a header, checked before use."""

from pathlib import Path

import numpy as np
import pytest

from softsearch.errors import BundleError, ConfigError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.shortlist_files import has_shortlist, open_shortlist, shortlist_files
from softsearch.text.vocabulary import EOS
from tests.support.bundles import bundle_parts, tokenizers

SRC_VOCAB, TGT_VOCAB = (tokenizer.vocab_size for tokenizer in tokenizers())
FREQUENT = np.array([9, 4, 30])
TRANSLATIONS = np.stack([np.arange(SRC_VOCAB) % TGT_VOCAB, np.full(SRC_VOCAB, -1)], axis=1)


def with_shortlist(path: Path, **files: bytes) -> Bundle:
    parts, manifest = bundle_parts()
    parts |= shortlist_files(FREQUENT, TRANSLATIONS)
    parts |= {name.replace("_", "."): content for name, content in files.items()}
    return write_bundle(path, parts, manifest)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    bundle = with_shortlist(tmp_path / "b")
    assert has_shortlist(bundle)
    for frequent, words in ((1, [9]), (2, [4, 9]), (50, [4, 9, 30])):
        tokens, mask = open_shortlist(bundle, frequent)([[7], [20]])
        assert tokens[mask[0]].tolist() == sorted({*words, EOS, 7})
        assert tokens[mask[1]].tolist() == sorted({*words, EOS, 20})


def test_a_bundle_without_one_says_how_to_get_one(bundle_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no shortlist; export it with shortlist=10"):
        open_shortlist(Bundle.open(bundle_dir), 5)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"frequent_int32": b""}, r"frequent\.int32 holds something other than 32-bit ids from 0"),
        ({"frequent_int32": b"\1\0\0\0\0"}, r"frequent\.int32 holds something other"),
        ({"frequent_int32": np.array([-1], "<i4").tobytes()}, r"frequent\.int32 holds something other"),
        ({"frequent_int32": np.array([TGT_VOCAB], "<i4").tobytes()}, r"frequent\.int32 holds something other"),
        ({"translations_int32": np.array([-2] * SRC_VOCAB, "<i4").tobytes()}, r"translations\.int32 .* from -1"),
        ({"translations_int32": np.array([1] * (SRC_VOCAB + 1), "<i4").tobytes()}, r"expected a multiple of the 50"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    bundle = with_shortlist(tmp_path / "b", **files)
    with pytest.raises(BundleError, match=message):
        open_shortlist(bundle, 5)
