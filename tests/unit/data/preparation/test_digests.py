"""Digests of text are remembered by path, size and time; a start with unchanged files reads none of them."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from softsearch.data.preparation.digests import digest_of
from softsearch.data.preparation.prepare import prepare
from softsearch.errors import CorpusError
from softsearch.text.tokenizer import TokenizerTrainer
from tests.support.pairs import write_corpus

IO = Path("/proc/self/io")
OLD = 1_700_000_000


def bytes_read() -> int:
    """Bytes that this process has read by system calls, also from the page cache."""
    return int(IO.read_text().partition("rchar: ")[2].split()[0])


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write(path: Path, text: str, seconds: float = OLD) -> Path:
    path.write_text(text)
    os.utime(path, (seconds, seconds))
    return path


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("the file is read again"))


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path, cache = write(tmp_path / "a.en", "text"), tmp_path / "cache"
    assert digest_of(path, cache) == sha(path)
    request.getfixturevalue("no_reading")
    assert digest_of(path, cache) == sha(path)


@pytest.mark.parametrize(("text", "seconds"), [("longer", OLD), ("same", OLD + 1)])
def test_a_changed_file_is_read_again(tmp_path: Path, text: str, seconds: float) -> None:
    path, cache = write(tmp_path / "a.en", "text"), tmp_path / "cache"
    for _ in range(2):
        assert digest_of(path, cache) == sha(path)
        write(path, text, seconds)


def test_a_new_file_is_read_again_because_a_later_version_may_have_its_time(tmp_path: Path) -> None:
    path, cache, now = tmp_path / "a.en", tmp_path / "cache", time.time()
    for text in ("text", "same"):
        assert digest_of(write(path, text, now), cache) == sha(path)


@pytest.mark.parametrize("damage", [b"", b"4", b"\xff", b"4 1700000000000000000 " + b"0" * 63, None])
def test_a_damaged_memory_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    path, cache = write(tmp_path / "a.en", "text"), tmp_path / "cache"
    digest_of(path, cache)
    (memory,) = (cache / "digests").iterdir()
    if damage is None:
        memory.unlink()
        memory.mkdir()  # it cannot be written, either
    else:
        memory.write_bytes(damage)
    assert digest_of(path, cache) == sha(path)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"x\.en cannot be read \(No such file or directory\)"):
        digest_of(tmp_path / "x.en", tmp_path)


@pytest.mark.skipif(not IO.exists(), reason="the system does not count bytes")
def test_a_start_with_unchanged_files_reads_headers_alone(tmp_path: Path) -> None:
    source, cache = write_corpus(tmp_path, train=4000), tmp_path / "cache"
    trainer = TokenizerTrainer(kind="char", vocab_size=60)
    for path in tmp_path.glob("*.*"):
        os.utime(path, (OLD, OLD))
    made = prepare(source, trainer, cache)
    files = [path for folder in ("prepared", "parts") for path in (cache / folder).rglob("*") if path.is_file()]
    sizes = {path: path.stat().st_size for path in (*tmp_path.glob("*.*"), *files)}
    large = [size for path, size in sizes.items() if path.suffix == ".ids" or path.stem == "train"]
    headers = sum(size for path, size in sizes.items() if path.suffix in (".json", ".model"))
    assert sorted(large)[2] > 50_000  # all but those of validation

    def start() -> int:
        before = bytes_read()
        assert prepare(source, trainer, cache).fingerprint == made.fingerprint
        return bytes_read() - before

    start()  # imports
    assert start() < headers + 20_000
    train = source.files(cache)["train"][0]
    os.utime(train, (OLD + 1, OLD + 1))
    assert start() > train.stat().st_size  # it may have changed
    assert start() < headers + 20_000
