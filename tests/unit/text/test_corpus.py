"""The reader against the bad corpora that other toolkits mishandle silently."""

import bz2
import gzip
import io
import lzma
import pickle
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import ConfigError, CorpusError
from softsearch.text.corpus import MAX_LINE_BYTES, is_blank, read_lines, read_raw
from softsearch.text.filters import Cleaner, CorpusReport, Filters, read_parallel


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


COUNTS = [
    pytest.param(b"a\n", b"a\nb\n", 1, 2, id="target-plus-1"),
    pytest.param(b"a\nb\n", b"a\n", 2, 1, id="source-plus-1"),
    pytest.param(b"a\n" * 7, b"a\n" * 3, 7, 3, id="source-plus-n"),
    pytest.param(b"a\n" * 3, b"a\n" * 7, 3, 7, id="target-plus-n"),
    pytest.param(b"a\nb\n", b"a\nb\n\n", 2, 3, id="empty-tail"),
]


@pytest.mark.parametrize(("src", "tgt", "src_count", "tgt_count"), COUNTS)
def test_line_counts_differ(tmp_path: Path, src: bytes, tgt: bytes, src_count: int, tgt_count: int) -> None:
    """Fault: source and target have different numbers of lines. Effect: an error with both numbers, before training."""
    paths = write(tmp_path, "a.en", src), write(tmp_path, "a.de", tgt)
    with pytest.raises(CorpusError, match=rf"a\.en has {src_count} lines, .*a\.de has {tgt_count};"):
        read_parallel(*paths)


def test_pairs_are_dropped_and_counted_never_lines(tmp_path: Path) -> None:
    """Fault: an empty line on one side or on both. Effect: the pair is dropped and counted."""
    rows = [
        (b"one", b"eins"),
        (b"", b"zwei"),
        (b"three", b" \t\xc2\xa0"),
        (b"", b""),
        (b"\x00\xe2\x80\x8b", b"null"),
        (b"x" * 10_001, b"lang"),
        (b"y" * (MAX_LINE_BYTES + 1), b"lang"),
        (b"a\rb\r", b"a b"),
        (b"a\xe2\x80\xa8b", b"c"),
        (b"same", b"same"),
    ]
    src = write(tmp_path, "a.en", b"\xef\xbb\xbf" + b"\n".join(row[0] for row in rows))
    tgt = write(tmp_path, "a.de", b"\n".join(row[1] for row in rows))
    corpus = read_parallel(src, tgt)
    assert corpus.src == ["one", "a b", "a\u2028b", "same"]
    assert corpus.tgt == ["eins", "a b", "c", "same"]
    report = corpus.report
    assert (report.lines, report.kept, report.empty, report.over_long, report.invalid) == (10, 4, 4, 2, 0)
    assert (report.cleaned, report.lone_cr, report.control, report.identical) == (2, 1, 2, 2)
    assert report.summary() == (
        f"{src} | {tgt}: 4 of 10 pairs kept; 4 with an empty side; 2 over-long; 2 with a byte order mark or carriage "
        "returns removed; 1 with a carriage return inside, now a space; 2 with control characters; "
        "2 with the same text on both sides"
    )


def test_crlf_and_lone_cr_are_told_apart(tmp_path: Path) -> None:
    """Fault: Windows line ends, or a carriage return within a line.

    Effect: the carriage return is removed, or becomes a space; both are counted.
    """
    src, tgt = write(tmp_path, "a.en", b"a\r\nb\rc\r\nd\re\n"), write(tmp_path, "a.de", b"x\ny\nz\n")
    report = read_parallel(src, tgt).report
    assert (report.kept, report.cleaned, report.lone_cr) == (3, 2, 2)


@pytest.mark.parametrize("control", ["\x00", "\x07", "\x1b", "\x0b", "\x0c", "\x7f", "\u0085", "\u2028", "\u2029"])
def test_control_characters_are_kept_and_counted(tmp_path: Path, control: str) -> None:
    """Fault: NUL and other control characters. Effect: kept and counted."""
    line = f"a{control}b"
    src, tgt = write(tmp_path, "a.en", f"{line}\nb\tc\n".encode()), write(tmp_path, "a.de", b"x\ny\n")
    corpus = read_parallel(src, tgt)
    assert corpus.src == [line, "b\tc"]
    assert corpus.report.control == 1


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_packed_sides_align_with_plain_ones(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    src, tgt = write(tmp_path, "a.en", pack(b"one\n\nthree\n")), write(tmp_path, "a.de", b"eins\nzwei\ndrei\n")
    corpus = read_parallel(src, tgt)
    assert (corpus.src, corpus.tgt, corpus.numbers) == (["one", "three"], ["eins", "drei"], [1, 3])
    short = write(tmp_path, "b.de", pack(b"eins\nzwei\n"))
    with pytest.raises(CorpusError, match=r"a\.en has 3 lines, .*b\.de has 2;"):
        read_parallel(src, short)


def test_more_pairs_than_are_read_at_once(tmp_path: Path) -> None:
    count = 10_000
    rows = [(f"s{i}", "" if i % 1000 == 7 else f"t{i}") for i in range(count)]
    src = write(tmp_path, "a.en", "".join(f"{s}\n" for s, _ in rows).encode())
    tgt = write(tmp_path, "a.de", "".join(f"{t}\n" for _, t in rows).encode())
    corpus = read_parallel(src, tgt)
    kept = [i for i, (_, t) in enumerate(rows) if t]
    assert corpus.numbers == [i + 1 for i in kept]
    assert list(zip(corpus.src, corpus.tgt, strict=True)) == [rows[i] for i in kept]
    with pytest.raises(CorpusError, match=rf"a\.en has {count} lines, .*b\.de has {count + 1};"):
        read_parallel(src, write(tmp_path, "b.de", tgt.read_bytes() + b"more\n"))


def test_long_lines_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    src = write(tmp_path, "a.en", (b"x" * (1 << 20) + b"\n") * 12)
    tgt = write(tmp_path, "a.de", b"y\n" * 12)
    assert [(chunk.number, len(chunk.src)) for chunk in read_raw(src, tgt)] == [(1, 4), (5, 4), (9, 4)]


def test_a_filter_drops_and_counts(tmp_path: Path) -> None:
    src, tgt = write(tmp_path, "a.en", b"ok\nsame\nlong one\n\n\xff\n"), write(tmp_path, "a.de", b"gut\nsame\nl\n\nx\n")
    filters = Filters(identical=True, max_ratio=7, on_error="skip")
    clean = Cleaner(src=src, tgt=tgt, filters=filters)
    (raw,) = read_raw(src, tgt)
    kept = clean(raw)
    assert (kept.src, kept.tgt, kept.numbers) == (["ok"], ["gut"], [1])
    assert kept.counts == {"lines": 5, "untranslated": 1, "unequal": 1, "empty": 1, "invalid": 1}
    report = CorpusReport(src=src, tgt=tgt, kept=1, repeated=0, **kept.counts)
    assert report.findings() == {
        "with an empty side": 1,
        "not UTF-8": 1,
        "dropped for the same text on both sides": 1,
        "dropped for unequal lengths": 1,
    }


def test_a_test_set_is_not_filtered(tmp_path: Path) -> None:
    src, tgt = write(tmp_path, "a.en", b"same\nlong one\n"), write(tmp_path, "a.de", b"same\nl\n")
    clean = Cleaner(src=src, tgt=tgt, keep_empty=True, filters=Filters(identical=True, max_ratio=2))
    assert clean(next(read_raw(src, tgt))).src == ["same", "long one"]


def test_clean_corpus_has_a_short_summary(tmp_path: Path) -> None:
    src, tgt = write(tmp_path, "a.en", b"one\n"), write(tmp_path, "a.de", b"eins\n")
    assert read_parallel(src, tgt).report.summary() == f"{src} | {tgt}: 1 of 1 pairs kept"


def test_invalid_line_raises_or_drops_its_pair(tmp_path: Path) -> None:
    """Fault: bytes that are not UTF-8.

    Effect: an error with file, line and byte; with `on_error=skip` the pair is dropped and counted.
    """
    src, tgt = write(tmp_path, "a.en", b"one\ntwo\nthree\n"), write(tmp_path, "a.de", b"eins\n\xff\ndrei\n")
    with pytest.raises(CorpusError, match=r"a\.de:2:1 is not UTF-8"):
        read_parallel(src, tgt)
    corpus = read_parallel(src, tgt, on_error="skip")
    assert (corpus.src, corpus.tgt, corpus.report.invalid) == (["one", "three"], ["eins", "drei"], 1)


def test_keep_empty_keeps_every_line(tmp_path: Path) -> None:
    src, tgt = write(tmp_path, "a.en", b"one\n\n" + b"x" * 10_001), write(tmp_path, "a.de", b"\nzwei\nlang")
    corpus = read_parallel(src, tgt, keep_empty=True)
    assert (corpus.src, corpus.tgt) == (["one", "", "x" * 10_001], ["", "zwei", "lang"])
    assert (corpus.report.kept, corpus.report.empty, corpus.report.over_long) == (3, 2, 0)


@pytest.mark.parametrize("line", [b"\xff", b"x" * (MAX_LINE_BYTES + 1)], ids=["invalid", "over-long"])
def test_keep_empty_cannot_skip(tmp_path: Path, line: bytes) -> None:
    src, tgt = write(tmp_path, "a.en", b"a\n" + line), write(tmp_path, "a.de", b"a\nb\n")
    with pytest.raises(CorpusError, match=r"a\.en:2"):
        read_parallel(src, tgt, keep_empty=True, on_error="skip")


def test_nothing_left(tmp_path: Path) -> None:
    """Fault: an empty file, or one without a usable pair. Effect: an error."""
    src, tgt = write(tmp_path, "a.en", b"\n \n"), write(tmp_path, "a.de", b"eins\nzwei\n")
    with pytest.raises(CorpusError, match=r"no usable pair in .* 0 of 2 pairs kept; 2 with an empty side"):
        read_parallel(src, tgt)


def test_same_file_and_same_text_warn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Fault: the same file, or the same text, on both sides. Effect: a warning."""
    src, tgt = write(tmp_path, "a.en", b"one\n"), write(tmp_path, "a.de", b"one\n")
    read_parallel(src, tgt)
    assert "mostly the same text" in caplog.text
    caplog.clear()
    read_parallel(src, tmp_path / "." / "a.en")
    assert "are the same file" in caplog.text


@pytest.mark.parametrize("pack", ["lambda b: b", "gzip.compress"], ids=["plain", "gz-bomb"])
def test_memory_is_bounded_on_a_huge_line(tmp_path: Path, pack: str) -> None:
    """Fault: a line of 100 MB. Effect: the pair is dropped and counted, in bounded memory."""
    resource = pytest.importorskip("resource")
    limit = 160 << 20
    program = f"""
        import gzip, resource
        from pathlib import Path
        from softsearch.text.filters import read_parallel
        src, tgt = Path({str(tmp_path)!r}, "a.en"), Path({str(tmp_path)!r}, "a.de")
        pack = {pack}
        with src.open("wb") as file:
            for _ in range(100):
                file.write(pack(b"x" * (2 << 20)))
            file.write(pack(b"\\none\\n"))
        tgt.write_bytes(b"lang\\neins\\n")
        resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
        corpus = read_parallel(src, tgt)
        print(corpus.src, corpus.report.over_long)
    """
    assert resource.getrlimit(resource.RLIMIT_AS)[1] == resource.RLIM_INFINITY
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['one'] 1\n", "")


@pytest.mark.parametrize("text", ["", "  ", "\t\u00a0\u3000", "\x00\x07", "\u200b\ufeff\u2028"])
def test_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "\x00.", "\u0301", "\U0001f600", "\ue000"])
def test_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_real_corpus(multi30k_dir: Path) -> None:
    corpus = read_parallel(multi30k_dir / "val.en.gz", multi30k_dir / "val.de.gz")
    assert corpus.report.kept == corpus.report.lines == 1014
    assert corpus.src[0] == "A group of men are loading cotton onto a truck"


@pytest.mark.parametrize("line", [b"\xff\n", b"a" * (MAX_LINE_BYTES + 1)])
def test_errors_cross_processes(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(line)
    with pytest.raises(CorpusError) as error:
        list(read_lines(path))
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.problem) == (str(error.value), "over_long" if len(line) > 9 else "invalid")
