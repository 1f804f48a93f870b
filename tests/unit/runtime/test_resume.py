"""``softsearch translate --resume`` continues an output that was cut off, and ends with the same bytes."""

from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import InputError
from softsearch.runtime import streaming
from softsearch.runtime.cli import main
from softsearch.runtime.streaming import Files, translate_stream
from softsearch.runtime.translator import Translator

LINES = ["one two", "", "ten", "a cat sat", "ten one"] * 6


@pytest.fixture(scope="module")
def translator(bundle_dir: Path) -> Translator:
    return Translator(bundle_dir, threads=1)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.setattr(streaming, "BLOCK_LINES", 4)
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    return Files(tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "alignments.jsonl")


class Killed(BaseException):
    """As a signal ends a process: no code of ours catches it."""


def cut_off(translator: Translator, files: Files, options: dict[str, Any], blocks: int) -> None:
    """Translates some blocks, as a process does that is killed then."""
    calls = 0

    def translate(lines: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += bool(lines)
        if calls > blocks:
            raise Killed
        return translator.translate(lines, **keywords)

    dying: Any = type("Dying", (), {"translate": staticmethod(translate)})
    with pytest.raises(Killed):
        translate_stream(dying, files, options, resume=True)


@pytest.mark.parametrize("options", [{}, {"n_best": 3, "beam": 4}])
@pytest.mark.parametrize("tail", [b"", b"half a li", b"0 ||| x\n"])
def test_the_bytes_are_those_of_a_whole_run(
    translator: Translator, files: Files, options: dict[str, Any], tail: bytes, tmp_path: Path
) -> None:
    whole = Files(files.input, tmp_path / "whole.txt", tmp_path / "whole.jsonl")
    translate_stream(translator, whole, options)
    cut_off(translator, files, options, blocks=3)
    cut_off(translator, files, options, blocks=1)
    assert files.output is not None
    assert files.alignments is not None
    partial = files.output.with_name("out.txt.partial")
    if not (options and tail.endswith(b"\n")):  # a line of another sentence is no cut-off output
        with partial.open("ab") as stream:
            stream.write(tail)
    translate_stream(translator, files, options, resume=True)
    assert files.output.read_bytes() == (tmp_path / "whole.txt").read_bytes()
    assert files.alignments.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not partial.exists()


def test_what_is_translated_already_is_not_translated_again(translator: Translator, files: Files) -> None:
    files = Files(files.input, files.output)
    cut_off(translator, files, {}, blocks=5)
    seen: list[int] = []

    def translate(lines: Any, **keywords: Any) -> Any:
        seen.append(len(lines))
        return translator.translate(lines, **keywords)

    counting: Any = type("Counting", (), {"translate": staticmethod(translate)})
    translate_stream(counting, files, {}, resume=True)
    assert sum(seen) == len(LINES) - 5 * 4


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        (lambda files: files.output.write_text("x\n"), "is complete; remove it"),
        (lambda files: files.output.with_name("out.txt.partial").write_text("x\n" * 100), "is it another file"),
        (
            lambda files: files.alignments.with_name("alignments.jsonl.partial").write_text("x\n"),
            "not what this command",
        ),
    ],
)
def test_what_cannot_be_continued_is_refused(translator: Translator, files: Files, setup: Any, message: str) -> None:
    if "another file" in message:
        files = Files(files.input, files.output)
    setup(files)
    with pytest.raises(InputError, match=message):
        translate_stream(translator, files, {}, resume=True)


def test_an_output_file_is_needed(bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    assert main(["translate", str(bundle_dir), "--input", str(tmp_path / "in.txt"), "--resume"]) == 1
    assert "expected --output FILE as well" in capsys.readouterr().err
