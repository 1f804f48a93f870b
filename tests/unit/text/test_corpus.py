"""The reader against the bad corpora that other toolkits mishandle silently."""

import gzip
import lzma
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from softsearch.errors import CorpusError
from softsearch.text.corpus import MAX_LINE_BYTES, is_blank, read_lines, read_raw
from softsearch.text.filters import Cleaner, CorpusReport, Filters, read_parallel

COUNTS = [
    pytest.param(b"a\n", b"a\nb\n", 1, 2, id="target-plus-1"),
    pytest.param(b"a\nb\n", b"a\n", 2, 1, id="source-plus-1"),
    pytest.param(b"a\n" * 7, b"a\n" * 3, 7, 3, id="source-plus-n"),
    pytest.param(b"a\n" * 3, b"a\n" * 7, 3, 7, id="target-plus-n"),
    pytest.param(b"a\nb\n", b"a\nb\n\n", 2, 3, id="empty-tail"),
]


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


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
