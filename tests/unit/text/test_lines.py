"""Lines of one text: compression, encodings, damage, and limits."""

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import MAX_LINE_BYTES, read_lines
from softsearch.text.filters import read_parallel


def zstandard(content: bytes) -> bytes:
    return pa.compress(content, codec="zstd", asbytes=True)


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


LINES = [
    pytest.param(b"a\nb\n", ["a", "b"], id="plain"),
    pytest.param(b"a\nb", ["a", "b"], id="no-newline-at-end"),
    pytest.param(b"a\n\nb\n\n", ["a", "", "b", ""], id="empty-lines-stay"),
    pytest.param(b"a\r\nb\r\n", ["a", "b"], id="crlf"),
    pytest.param(b"a\rb\r\nc\r", ["a b", "c"], id="lone-cr"),
    pytest.param(b"\xef\xbb\xbfa\nb\n", ["a", "b"], id="bom"),
    pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfa\n\xef\xbb\xbfb\nc\xef\xbb\xbfd", ["a", "b", "cd"], id="bom-anywhere"),
    pytest.param("a\u2028b\n".encode(), ["a\u2028b"], id="u2028"),
    pytest.param("a\u2029b\n".encode(), ["a\u2029b"], id="u2029"),
    pytest.param("a\u0085b\n".encode(), ["a\u0085b"], id="u0085"),
    pytest.param(b"a\x0bb\x0cc\x1cd\x1de\x1ef\n", ["a\x0bb\x0cc\x1cd\x1de\x1ef"], id="vt-ff-separators"),
    pytest.param(b"a\x00b\n", ["a\x00b"], id="nul"),
    pytest.param(b" a\tb \n", [" a\tb "], id="white-space"),
]


@pytest.mark.parametrize(("content", "expected"), LINES)
@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, lzma.compress, bz2.compress, zstandard], ids=["plain", "gz", "xz", "bz2", "zst"]
)
def test_lines(tmp_path: Path, pack: Callable[[bytes], bytes], content: bytes, expected: list[str]) -> None:
    """Fault: a byte order mark, or Unicode line separators such as U+2028 within a line.

    Effect: the mark is removed; the line stays one line.
    """
    # The name says nothing: magic bytes decide.
    path = write(tmp_path, "corpus.txt", pack(content))
    assert list(read_lines(path)) == expected


def test_zstandard_without_pyarrow_and_of_several_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a", zstandard(b"a\nb") + zstandard(b"c\n"))
    assert list(read_lines(path)) == ["a", "bc"]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"a is compressed by Zstandard, .* pip install .*\[table\]'"):
        list(read_lines(path))


def test_plain_text_named_gz_and_concatenated_gz(tmp_path: Path) -> None:
    """Fault: plain text named `.gz`, or several compressed files in one.

    Effect: recognised by its content and read completely.
    """
    assert list(read_lines(write(tmp_path, "a.gz", b"a\n"))) == ["a"]
    assert list(read_lines(write(tmp_path, "b.gz", gzip.compress(b"a\nb") + gzip.compress(b"c\nd\n")))) == [
        "a",
        "bc",
        "d",
    ]


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"])), min_size=1))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = write(tmp_path_factory.mktemp("any"), "a", ("\ufeff" + "\n".join(lines) + "\n").encode())
    assert list(read_lines(path)) == lines


def tarred(content: bytes) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("train.en")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def zipped(content: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zip_file:
        zip_file.writestr("train.en", content)
    return archive.getvalue()


DAMAGED = [
    pytest.param(b"", r"corpus is empty", id="zero-bytes"),
    pytest.param(gzip.compress(b""), r"corpus is empty", id="empty-gz"),
    pytest.param(b"a\nb\xffc\n", r"corpus:2:2 is not UTF-8: byte 0xff", id="invalid-utf8"),
    pytest.param(b"\xef\xbb\xbfab\xe9\n", r"corpus:1:6 is not UTF-8: byte 0xe9", id="latin-1-after-bom"),
    pytest.param("a\n".encode("utf-16"), r"corpus is UTF-16, expected UTF-8; convert it", id="utf-16"),
    pytest.param("ab\n".encode("utf-16-le"), r"corpus is UTF-16", id="utf-16-unmarked"),
    pytest.param("ab\n".encode("utf-16-be"), r"corpus is UTF-16", id="utf-16-be-unmarked"),
    pytest.param(b"one\rtwo", r"corpus has lines that end with CR alone .* tr '\\r' '\\n'", id="cr"),
    pytest.param(b"id\ten\n1\ta\r2\tb\r3\tc\r", r"corpus has lines that end with CR alone", id="cr-after-a-line"),
    pytest.param(gzip.compress(b"one\r\rtwo\r"), r"corpus has lines that end with CR alone", id="cr-in-gz"),
    pytest.param(tarred(b"a\n"), r"corpus is a tar archive; unpack it \(tar -xf FILE\)", id="tar"),
    pytest.param(gzip.compress(tarred(b"a\n")), r"corpus is a tar archive", id="tar.gz"),
    pytest.param(zipped(b"a\n"), r"corpus is a zip archive; unpack it", id="zip"),
    pytest.param(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", r"Git LFS pointer, .* git lfs pull", id="lfs"
    ),
    pytest.param(b"\xed\xa0\x80\n", r"corpus:1:1 is not UTF-8", id="encoded-surrogate"),
    pytest.param(b"a\xe2\x82\n", r"corpus:1:2 is not UTF-8", id="cut-character"),
    pytest.param(gzip.compress(b"hello\n" * 999)[:-9], r"corpus is truncated or damaged", id="truncated-gz"),
    pytest.param(gzip.compress(b"hello\n")[:-5] + b"\0\0\0\0\0", r"corpus is truncated or damaged", id="gz-checksum"),
    pytest.param(gzip.compress(b"a\n") + b"rubbish", r"corpus is truncated or damaged", id="gz-tail"),
    pytest.param(gzip.compress(b"hello\n")[:10] + b"\xff" * 9, r"corpus is truncated or damaged", id="gz-body"),
    pytest.param(lzma.compress(b"hello\n" * 999)[:-9], r"corpus is truncated or damaged", id="truncated-xz"),
    pytest.param(bz2.compress(b"hello\n" * 999)[:-9], r"corpus is truncated or damaged", id="truncated-bz2"),
    pytest.param(zstandard(b"hello\n" * 999)[:-9], r"corpus is truncated or damaged", id="truncated-zst"),
    pytest.param(zstandard(b"hello\n") + b"rubbish", r"corpus is truncated or damaged", id="zst-tail"),
    pytest.param(b"a\n" + b"x" * (MAX_LINE_BYTES + 1), r"corpus:2 is longer than 1048576 bytes", id="over-long"),
]


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_damaged_file(tmp_path: Path, content: bytes, message: str) -> None:
    """Fault: a truncated or damaged compressed file. Effect: an error."""
    with pytest.raises(CorpusError, match=message):
        list(read_lines(write(tmp_path, "corpus", content)))


def test_one_utf16_side_is_named_before_the_lines_are_counted(tmp_path: Path) -> None:
    src, tgt = write(tmp_path, "a.en", b"one\ntwo\n"), write(tmp_path, "a.de", "eins\nzwei\n".encode("utf-16"))
    with pytest.raises(CorpusError, match=r"a\.de is UTF-16"):
        read_parallel(src, tgt)


def test_unreadable_path(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nowhere\.en does not exist"):
        list(read_lines(tmp_path / "nowhere.en"))
    with pytest.raises(CorpusError, match=r"cannot be read \(Is a directory\)"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["no-bom", "bom"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"], ids=["eof", "lf", "crlf"])
def test_cap_is_exact(tmp_path: Path, bom: bytes, end: bytes) -> None:
    longest = b"x" * MAX_LINE_BYTES
    assert list(read_lines(write(tmp_path, "fits", bom + longest + end))) == [longest.decode()]
    with pytest.raises(CorpusError, match="over:1 is longer"):
        list(read_lines(write(tmp_path, "over", bom + longest + b"x" + end)))
