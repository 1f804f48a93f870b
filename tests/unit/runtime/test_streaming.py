"""Streaming: bytes in blocks, one line of output for each line of input, files written atomically."""

import gzip
import io
import json
import os
import select
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softsearch.errors import InputError
from softsearch.runtime.streaming import Files, translate_stream
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator
from softsearch.search.confidence import FIGURES
from softsearch.text.corpus import MAX_LINE_BYTES
from tests.support.bundles import SRC_LINES


class Recorder(Translator):
    """A translator that records how many lines it gets at once."""

    def __init__(self, bundle: Path) -> None:
        super().__init__(bundle, threads=1)
        self.blocks: list[int] = []

    def translate(self, lines: Iterable[str], **options: Any) -> list[Translation]:
        block = list(lines)
        self.blocks += [len(block)] if block else []
        return super().translate(block, **options)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    def run(translator: Translator, given: bytes, **options: Any) -> bytes:
        output = io.BytesIO()
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given)))
        monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=output))
        files = {
            name: options.pop(name)
            for name in ("input", "output", "alignments", "prefixes", "trace", "confidence")
            if name in options
        }
        translate_stream(translator, Files(**files), options)
        return output.getvalue()

    return run


def test_each_line_in_gives_one_line_out_in_order(translator: Translator, run) -> None:
    lines = ["one two", "", "ten", "   ", "a cat sat", "\U0001f600", "\0", "one\u2028two\x85three\x0b", "ten"]
    out = run(translator, "\n".join(lines).encode()).decode().split("\n")
    assert out == [translator.translate([line])[0].text for line in lines] + [""]
    assert out[1] == out[3] == out[6] == ""
    assert out[2] == out[8] != ""


@pytest.mark.parametrize("given", [b"one\nten\n", b"one\r\nten\r\n", b"\xef\xbb\xbfone\nten", b"one\r\nten"])
def test_line_ends_and_a_byte_order_mark_make_no_difference(translator: Translator, run, given: bytes) -> None:
    assert run(translator, given) == run(translator, b"one\nten\n")


def test_a_first_line_may_be_as_long_as_the_others(translator: Translator, run) -> None:
    assert run(translator, b"\xef\xbb\xbf" + b" " * MAX_LINE_BYTES + b"\r\n") == b"\n"


def test_no_input_gives_no_output(translator: Translator, run) -> None:
    assert run(translator, b"") == b""
    assert run(translator, b"\n") == b"\n"


def test_blocks_are_bounded_and_make_no_difference(
    bundle_dir: Path, translator: Translator, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = "".join(f"{line}\n" for line in SRC_LINES[:10]).encode()
    whole = run(translator, given)
    recorder = Recorder(bundle_dir)
    monkeypatch.setattr("softsearch.runtime.input_blocks.BLOCK_LINES", 4)
    assert run(recorder, given) == whole
    assert recorder.blocks == [4, 4, 2]
    monkeypatch.setattr("softsearch.runtime.input_blocks.BLOCK_BYTES", 30)
    recorder.blocks.clear()
    assert run(recorder, given) == whole
    assert sum(recorder.blocks) == 10
    assert max(recorder.blocks) < 4


@pytest.mark.parametrize(
    ("given", "where"),
    [
        (b"one\nt\xffn\n", r"standard input:2:2 is not UTF-8: byte 0xff"),
        (b"\xef\xbb\xbf\xff\n", "standard input:1:4 is not UTF-8"),
        (b"one\ntwo\nten\xc3", "standard input:3:4 is not UTF-8"),
        ("one\n\ud800".encode("utf-8", "surrogatepass"), "standard input:2:1 is not UTF-8"),
        (b"one\n\xc0\xaf\n", "standard input:2:1 is not UTF-8"),
        ("one\nten\n".encode("utf-16"), "standard input is UTF-16, expected UTF-8; convert it"),
        ("one\nten\n".encode("utf-16-le"), "standard input is UTF-16"),
        (b"one\rten\r", "standard input has lines that end with CR alone"),
        (b"one\rten\rtwo\n", "standard input has lines that end with CR alone"),
        (b"PK\x03\x04\n", r"standard input is a zip archive; unpack it \(unzip FILE\)"),
    ],
)
def test_invalid_utf8_names_line_and_byte_and_is_never_translated(
    bundle_dir: Path, run, given: bytes, where: str
) -> None:
    recorder = Recorder(bundle_dir)
    with pytest.raises(InputError, match=where):
        run(recorder, given)
    assert recorder.blocks == []


def test_errors_in_later_blocks_number_lines_from_the_start(
    translator: Translator, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softsearch.runtime.input_blocks.BLOCK_LINES", 2)
    with pytest.raises(InputError, match="line 5 has"):
        run(translator, b"one\ntwo\nten\none\n" + b"ten " * 10_000 + b"\n")


def test_an_endless_line_is_refused_before_it_fills_the_memory(translator: Translator, run) -> None:
    with pytest.raises(InputError, match="standard input:2 is longer than 1048576 bytes"):
        run(translator, b"one\n" + b"a" * (3 << 20))


def test_n_best_lists_are_in_moses_format(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"one\n\nten\n")))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=output))
    translate_stream(translator, Files(), {"beam": 3, "n_best": 2})
    rows = output.getvalue().decode().splitlines()
    assert [row.split(" ||| ")[0] for row in rows] == ["0", "0", "1", "2", "2"]
    assert rows[2] == "1 |||  ||| 0.000000"
    for row, expected in zip(rows[:2], translator.translate(["one"], beam=3, n_best=2)[0].n_best, strict=True):
        assert row == f"0 ||| {expected.text} ||| {expected.score:.6f}"


def test_files_hold_what_streams_would(translator: Translator, run, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one two\n\nten\n")
    options = {name: tmp_path / f"{name}.txt" for name in ("output", "alignments")}
    assert run(translator, b"", input=[tmp_path / "in.txt"], **options) == b""
    assert (tmp_path / "output.txt").read_bytes() == run(translator, b"one two\n\nten\n")
    records = [json.loads(line) for line in (tmp_path / "alignments.txt").read_text().splitlines()]
    assert [(record["line"], record["rank"]) for record in records] == [(1, 1), (2, 1), (3, 1)]
    for record in records:
        assert len(record["matrix"]) == len(record["tgt_pieces"])
        assert all(len(row) == len(record["src_pieces"]) for row in record["matrix"])
    assert records[1]["matrix"] == []
    assert records[0]["src_pieces"][-1] == "</s>"
    assert oct((tmp_path / "output.txt").stat().st_mode) == oct((tmp_path / "in.txt").stat().st_mode)


def test_a_failed_run_leaves_the_older_files_and_nothing_else(translator: Translator, run, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("older\n")
    with pytest.raises(InputError):
        run(translator, b"one\n\xff\n", output=tmp_path / "out.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]
    assert (tmp_path / "out.txt").read_text() == "older\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input": [Path("nowhere.txt")]}, r"nowhere\.txt does not exist"),
        ({"output": Path("nowhere/out.txt")}, r"nowhere/out\.txt cannot be written \(No such file"),
    ],
)
def test_missing_paths_are_named(translator: Translator, run, options: dict[str, Path], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(translator, b"one\n", **options)


def test_a_device_is_written_in_place(translator: Translator, run) -> None:
    assert run(translator, b"one\n", output=Path("/dev/null")) == b""
    assert Path("/dev/null").is_char_device()


class Terminal(io.BytesIO):
    """Input typed at a terminal."""

    def isatty(self) -> bool:
        return True


def test_someone_who_types_gets_an_answer_to_each_line(bundle_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(bundle_dir)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Terminal(b"one\nten\n")))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=io.BytesIO()))
    translate_stream(recorder, Files())
    assert recorder.blocks == [1, 1]


def test_a_program_that_waits_for_each_answer_gets_it(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are not filled while a pipe has nothing more."""
    (read_lines, write_lines), (read_answers, write_answers) = os.pipe(), os.pipe()
    with (
        os.fdopen(read_lines, "rb") as stdin,
        os.fdopen(write_answers, "wb") as stdout,
        os.fdopen(write_lines, "wb", buffering=0) as lines,
        os.fdopen(read_answers, "rb") as answers,
        ThreadPoolExecutor(1) as pool,
    ):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stdin))
        monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=stdout))
        done = pool.submit(translate_stream, translator, Files())
        for asked in (["one two"], ["ten", "a cat sat"], [""]):
            lines.write("".join(f"{line}\n" for line in asked).encode())
            assert select.select([answers], [], [], 60)[0], "no answer after a minute"
            answered = [answers.readline().decode() for _ in asked]
            assert answered == [f"{each.text}\n" for each in translator.translate(asked)]
        lines.write(b"one")  # without an end
        lines.close()
        assert answers.readline().decode() == f"{translator.translate(['one'])[0].text}\n"
        assert done.result(60).lines == 5


def test_a_line_that_cannot_be_translated_is_blank_and_listed(
    translator: Translator, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softsearch.runtime.input_blocks.BLOCK_LINES", 4)
    long = b"a" * (2 << 20)
    given = [b"one", b"\xff two", b"ten", long, b"a cat sat", b"ten " * 20_000, b"", b"one two", b"\xc3"]
    (tmp_path / "in.txt").write_bytes(b"\n".join(given))
    files = Files(input=[tmp_path / "in.txt"], output=tmp_path / "out.txt")
    with pytest.raises(InputError, match=r"in.txt:2:1 is not UTF-8: .* to UTF-8, or leave such lines blank"):
        translate_stream(translator, files)
    assert not (tmp_path / "out.txt").exists()
    warnings = translate_stream(translator, files, blank_errors=True)
    expected = ["" if number in (1, 3, 5, 8) else line.decode() for number, line in enumerate(given)]
    assert (tmp_path / "out.txt").read_text() == "".join(f"{each.text}\n" for each in translator.translate(expected))
    (message,) = (text for text in warnings.messages("word", paragraphs=False) if "could not" in text)
    assert message.startswith(
        "4 of 9 lines could not be translated, and are empty in the output: 2, 4, 6, 9. The first"
    )
    assert "in.txt:2:1 is not UTF-8: byte 0xff" in message
    kept = tmp_path / "paragraphs.txt"
    translate_stream(translator, replace(files, output=kept), {"paragraphs": True}, blank_errors=True)
    assert kept.read_text().count("\n") == 8


@pytest.mark.parametrize("name", ["in.gz", "in.zst"])
def test_compressed_files_are_read(translator: Translator, run, tmp_path: Path, name: str) -> None:
    text = b"one two\n\nten\n"
    if name.endswith("zst"):
        pa = pytest.importorskip("pyarrow")
        with pa.CompressedOutputStream(str(tmp_path / name), "zstd") as file:
            file.write(text)
    else:
        (tmp_path / name).write_bytes(gzip.compress(text))
    assert run(translator, b"", input=[tmp_path / name]) == run(translator, text)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-3])
    with pytest.raises(InputError, match=rf"{name} is truncated or damaged"):
        run(translator, b"", input=[tmp_path / name])


def test_prefixes_go_with_their_lines_across_blocks(
    translator: Translator, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "begins").write_text("vier\n\neine\nvier\n")
    monkeypatch.setattr("softsearch.runtime.input_blocks.BLOCK_LINES", 3)
    out = run(translator, b"one\ntwo\nten\none\n", prefixes=tmp_path / "begins").decode().splitlines()
    expected = translator.translate(["one", "two", "ten", "one"], prefixes=["vier", "", "eine", "vier"])
    assert out == [translation.text for translation in expected]
    assert [line[:4] for line in out[::2]] == ["vier", "eine"]


@pytest.mark.parametrize(
    ("begins", "message"),
    [
        (b"eins\n", r"begins has 1 lines, fewer than the input; expected one prefix"),
        (b"eins\n\n\n", r"begins has more lines than the input's 2"),
        (b"eins\n\xff\n", r"begins:2:1 is not UTF-8"),
    ],
)
def test_there_is_one_prefix_for_each_line(
    translator: Translator, run, tmp_path: Path, begins: bytes, message: str
) -> None:
    (tmp_path / "begins").write_bytes(begins)
    with pytest.raises(InputError, match=message):
        run(translator, b"one\ntwo\n", prefixes=tmp_path / "begins", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_lines_without_a_proof_are_counted(translator: Translator, monkeypatch) -> None:
    exact = {"search": "exact", "max_nodes": 1, "max_length": 3}
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=io.BytesIO()))
    for options, expected in ((exact, 2), ({}, 0)):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"one two\n\nten\n")))
        assert translate_stream(translator, Files(), options).unproven == expected


def test_a_trace_is_json_lines_numbered_as_the_input(translator: Translator, run, tmp_path: Path) -> None:
    assert run(translator, b"one two\n\nten\n", trace=tmp_path / "t.jsonl") == run(translator, b"one two\n\nten\n")
    records = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(each["line"], each["source"], each["version"]) for each in records] == [(1, "one two", 1), (3, "ten", 1)]


def test_confidence_is_a_json_line_of_each_translation(translator: Translator, run, tmp_path: Path) -> None:
    given, path = b"one two\n\nten\n", tmp_path / "c.jsonl"
    assert run(translator, given, confidence=path, n_best=2, agreement=3) == run(translator, given, n_best=2)
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(each["line"], each["rank"]) for each in records] == [(1, 1), (1, 2), (2, 1), (3, 1), (3, 2)]
    assert records[2] == {"line": 2, "rank": 1, "text": "", "tgt_pieces": []} | dict.fromkeys(FIGURES)
    (best, _) = translator.translate(["ten"], n_best=2, agreement=3)[0].n_best
    assert best.confidence is not None
    assert records[3] == {"line": 3, "rank": 1, "text": best.text, "tgt_pieces": [*best.tgt_pieces]} | {
        name: pytest.approx(getattr(best.confidence, name), abs=1e-6) for name in FIGURES
    }
