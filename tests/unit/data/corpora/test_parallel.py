"""The user's own files."""

import re
from pathlib import Path

import pytest

from softsearch.data.corpora.base import UnreadPath, language_of
from softsearch.data.corpora.parallel import Parallel
from softsearch.errors import ConfigError, CorpusError

PAIR = ["a.en", "a.de"]


def touch(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).write_text("text\n")
    return [str(folder / name) for name in names]


def test_files_and_languages_from_suffixes(tmp_path: Path) -> None:
    train, val = touch(tmp_path, "t.en.gz", "t.de.xz"), touch(tmp_path, "v.en", "v.de")
    source = Parallel(train=train, val=val)
    assert (source.src_lang, source.tgt_lang, source.text_form) == ("en", "de", "plain")
    assert source.files(tmp_path) == {
        "train": (tmp_path / "t.en.gz", tmp_path / "t.de.xz"),
        "val": (tmp_path / "v.en", tmp_path / "v.de"),
    }


NAMES = {
    "x.en": "en",
    "x.tok.hsb.gz": "hsb",
    "x.pt_BR.txt": "pt_BR",
    "x.zh-Hans": "zh-Hans",
    "x.de-en.de": "de",
    "test_2016.lc.tok.de": "de",
    "x.fr.bpe": "fr",
} | (dict.fromkeys(("x", "x.src.txt", "x.tgt", "x.txt.xz", "x.de-en.txt", "en.d/x", "x.v2", "x.npy"), ""))

NAMES |= {"test_2016.lc.tok.de": "de", "x.fr.bpe": "fr", "x.dev": ""}


@pytest.mark.parametrize(("name", "language"), NAMES.items())
def test_the_language_of_a_file_is_at_the_end_of_its_name(name: str, language: str) -> None:
    assert language_of(name) == language_of(Path("folder.fr", name)) == language


def test_test_files_and_given_languages(tmp_path: Path) -> None:
    files = touch(tmp_path, "src", "tgt")
    source = Parallel(train=files, val=files, test=tuple(files), src_lang="ja", tgt_lang="en", text_form="lc_tok")
    assert (source.src_lang, source.tgt_lang, source.text_form) == ("ja", "en", "lc_tok")
    assert source.files(tmp_path)["test"] == (tmp_path / "src", tmp_path / "tgt")


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_missing_file_names_its_key(tmp_path: Path, split: str) -> None:
    there = touch(tmp_path, *PAIR)
    options = {"train": there, "val": there, "test": there, split: [there[0], str(tmp_path / "b.de")]}
    with pytest.raises(CorpusError, match=rf"data.{split}: no such file: .*/b.de"):
        Parallel(**options).files(tmp_path)


def test_prefixes_as_in_moses(tmp_path: Path) -> None:
    touch(tmp_path, "t.en", "t.de", "t.de.gz", "v.1.en.zst", "v.1.de.bz2")
    source = Parallel(train=f"{tmp_path}/t", val=tmp_path / "v.1", src_lang="en", tgt_lang="de")
    expected = {"train": ("t.en", "t.de"), "val": ("v.1.en.zst", "v.1.de.bz2")}
    assert source.files(tmp_path) == {split: (tmp_path / a, tmp_path / b) for split, (a, b) in expected.items()}
    assert source.train_files(tmp_path) == [source.files(tmp_path)["train"]]


def test_half_of_a_pair_by_prefix_names_what_was_found(tmp_path: Path) -> None:
    touch(tmp_path, "t[1].en", "t[1].fr.gz", "t.de")
    prefix = f"{tmp_path}/t[1]"
    message = f"data.train={prefix} needs {prefix}.en and {prefix}.de, plain or with .gz, .xz, .bz2, .zst, found "
    with pytest.raises(CorpusError, match=re.escape(f"{message}t[1].en, t[1].fr.gz; change")):
        Parallel(train=prefix, val=PAIR, src_lang="en", tgt_lang="de").files(tmp_path)
    with pytest.raises(CorpusError, match="found no such name"):
        Parallel(train=tmp_path / "no" / "t", val=PAIR, src_lang="en", tgt_lang="de").files(tmp_path)
    with pytest.raises(CorpusError, match="which was not read"):
        Parallel(train=UnreadPath(prefix), val=PAIR, src_lang="en", tgt_lang="de").files(tmp_path)


BAD_OPTIONS = [
    ({"train": "a.en"}, "data.train is 'a.en', expected two file names, or a prefix of both with data.src_lang and"),
    ({"train": "ab"}, "data.train is 'ab'"),
    ({"val": ["a.en"]}, "data.val is "),
    ({"test": ["a.en", "a.de", "a.fr"]}, "data.test is "),
    ({"test": ["a.en", 7]}, "data.test is "),
    ({"train": {"en": "a", "de": "b"}}, "data.train is "),
    ({"train": [PAIR, ["b.en"]]}, r"data.train is \['b.en'\], expected two file names"),
    ({"train": []}, r"data.train is \[\], expected two file names"),
    ({"weights": [1, 2]}, r"data.weights is \[1, 2\], expected a positive number for each .* data.train has 1"),
    ({"weights": [2]}, r"data.weights is \[2\]"),
    ({"train": [PAIR, PAIR], "weights": [1]}, r"data.weights is \[1\], .* data.train has 2"),
    ({"train": [PAIR, PAIR], "weights": [1, 2], "temperature": 2}, "data.weights and data.temperature are both set"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Parallel(**{"train": PAIR, "val": PAIR, **options})


def test_swapped_languages_warn(caplog: pytest.LogCaptureFixture) -> None:
    Parallel(train=PAIR, val=PAIR, src_lang="en", tgt_lang="de")
    assert caplog.text == ""
    Parallel(train=PAIR, val=PAIR, src_lang="de", tgt_lang="en")
    assert "data.train is ['a.en', 'a.de'] for de to en; swapped?" in caplog.text


def test_swapped_validation_files_warn_by_their_names(caplog: pytest.LogCaptureFixture) -> None:
    Parallel(train=PAIR, val=PAIR[::-1])
    assert "data.val is ['a.de', 'a.en'] for en to de; swapped?" in caplog.text
    caplog.clear()
    Parallel(train=[PAIR, PAIR[::-1]], val=PAIR)
    assert "data.train is ['a.de', 'a.en'] for en to de; swapped?" in caplog.text


def test_several_corpora(tmp_path: Path) -> None:
    one, other, val = (touch(tmp_path, f"{name}.en", f"{name}.de") for name in ("a", "b", "v"))
    source = Parallel(train=(one, tuple(other)), val=val)
    paths = [tuple(map(Path, pair)) for pair in (one, other)]
    assert source.train_files(tmp_path) == paths
    assert source.files(tmp_path)["train"] == paths[0]
    assert (source.src_lang, source.tgt_lang) == ("en", "de")
    Path(other[1]).unlink()
    with pytest.raises(CorpusError, match=r"data.train: no such file: .*/b.de"):
        source.train_files(tmp_path)


def test_shares_by_weight_and_by_temperature() -> None:
    two = {"train": [PAIR, PAIR], "val": PAIR}
    assert Parallel(**two).repeats([100, 4]) == [1, 1]  # type: ignore[arg-type]
    assert Parallel(**two, weights=(2, 0.5)).repeats([100, 4]) == [2, 0.5]  # type: ignore[arg-type]
    big, small = Parallel(**two, temperature=2).repeats([100, 4])  # type: ignore[arg-type]
    assert (big, 4 * small / 100) == (1, pytest.approx(0.2))  # (4 / 100) ** (1 / 2)
