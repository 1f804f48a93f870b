"""``softsearch translate --resume`` continues an output that was cut off, and ends with the same bytes."""

import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import InputError
from softsearch.runtime import input_blocks
from softsearch.runtime.cli import main
from softsearch.runtime.output import Output, append_output
from softsearch.runtime.streaming import Files, translate_stream
from softsearch.runtime.translator import Translator
from tests.support.bundles import make_bundle

SETTINGS = {"--beam": "3"}
LINES = ["one two", "", "ten", "a cat sat", "ten one"] * 6


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.setattr(input_blocks, "BLOCK_LINES", 4)
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    return Files((tmp_path / "in.txt",), tmp_path / "out.txt", tmp_path / "alignments.jsonl")


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
        translate_stream(dying, files, options, resume=SETTINGS)


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
    translate_stream(translator, files, options, resume=SETTINGS)
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
    translate_stream(counting, files, {}, resume=SETTINGS)
    assert sum(seen) == len(LINES) - 5 * 4


@pytest.mark.parametrize("options", [{}, {"n_best": 3, "beam": 4}])
def test_any_moment_of_death_is_survived(translator: Translator, files: Files, options: dict[str, Any]) -> None:
    """Fault: `translate --resume` is killed at any moment.

    Effect: typed again, it ends with the same bytes.

    Killed at each call of the operating system that changes a file, whatever was done before.
    """
    whole = Files(files.input, files.output.with_name("whole.txt"), files.output.with_name("whole.jsonl"))
    translate_stream(translator, whole, options)
    assert files.output is not None
    deaths = 0
    while not files.output.exists():
        with pytest.MonkeyPatch.context() as patch:
            die_after(deaths, patch)
            with suppress(Killed):
                translate_stream(translator, files, options, resume=SETTINGS)
        deaths += 1
        assert deaths < 100
    assert deaths > 10
    assert files.output.read_bytes() == whole.output.read_bytes()
    assert files.alignments.read_bytes() == whole.alignments.read_bytes()
    assert {path.name for path in files.output.parent.iterdir()} <= {
        *("in.txt", "out.txt", "alignments.jsonl", "whole.txt", "whole.jsonl", "out.txt.partial.json")
    }


def die_after(calls: int, patch: pytest.MonkeyPatch) -> None:
    """Ends the process, as it were, instead of one of these calls, or after it if their number is odd."""
    made = 0

    def dying(function: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            nonlocal made
            made += 1
            if made > calls // 2:
                if calls % 2:
                    function(*arguments, **keywords)
                raise Killed
            return function(*arguments, **keywords)

        return call

    for owner, name in (
        (os, "truncate"),
        (os, "fsync"),
        (os, "replace"),
        (Path, "replace"),
        (Path, "unlink"),
        (Output, "write"),
    ):
        patch.setattr(owner, name, dying(getattr(owner, name)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"--beam": "5"}, "--beam was 3 and is now 5"),
        ({}, "--beam was 3 and is now not given"),
        ({"--beam": "3", "--top-k": "2"}, "--top-k was not given and is now 2"),
    ],
)
def test_other_settings_are_refused(
    translator: Translator, files: Files, settings: dict[str, str], message: str
) -> None:
    cut_off(translator, files, {}, blocks=2)
    partials = [path.with_name(f"{path.name}.partial") for path in (files.output, files.alignments) if path]
    before = [path.read_bytes() for path in partials]
    with pytest.raises(InputError, match=rf"out\.txt\.partial was begun with other settings: {message}; give the same"):
        translate_stream(translator, files, {}, resume=settings)
    with pytest.raises(InputError, match=r"--alignments was alignments\.jsonl and is now not given"):
        translate_stream(translator, Files(files.input, files.output), {}, resume=SETTINGS)
    assert [path.read_bytes() for path in partials] == before
    partials[0].unlink()  # as the message says
    translate_stream(translator, files, {}, resume=settings)
    assert files.output is not None
    assert len(files.output.read_text().splitlines()) == len(LINES)


def test_a_complete_file_of_an_earlier_run_stays(translator: Translator, files: Files) -> None:
    cut_off(translator, replace(files, alignments=None), {}, blocks=2)
    assert files.alignments is not None
    files.alignments.write_text("earlier")
    with pytest.raises(InputError, match=r"alignments\.jsonl is complete"):
        translate_stream(translator, files, {}, resume=SETTINGS)
    assert files.alignments.read_text() == "earlier"


def test_settings_may_change_before_anything_is_translated(translator: Translator, files: Files) -> None:
    cut_off(translator, files, {}, blocks=0)
    translate_stream(translator, files, {}, resume={"--beam": "5"})
    assert files.output is not None
    assert files.output.exists()


@pytest.mark.parametrize("line", [0, 7])
def test_another_input_is_refused_if_what_is_translated_differs(
    translator: Translator, files: Files, line: int
) -> None:
    """Fault: `translate --resume` with another input.

    Effect: refused if the part that is already translated differs.
    """
    cut_off(translator, files, {}, blocks=2)
    other = [*LINES, "ten"]  # more lines follow: that may be
    other[line] = "two"
    files.input[0].write_text("".join(f"{line}\n" for line in other))
    with pytest.raises(InputError, match="the first 8 lines of the input, or their prefixes, differ from"):
        translate_stream(translator, files, {}, resume=SETTINGS)
    files.input[0].write_text("".join(f"{line}\n" for line in [*LINES, "ten"]))
    translate_stream(translator, files, {}, resume=SETTINGS)
    assert files.output is not None
    assert len(files.output.read_text().splitlines()) == len(LINES) + 1


def test_other_prefixes_are_refused(translator: Translator, files: Files, tmp_path: Path) -> None:
    (tmp_path / "prefixes").write_text("zehn\n" * len(LINES))
    files = replace(files, prefixes=tmp_path / "prefixes")
    cut_off(translator, files, {}, blocks=2)
    (tmp_path / "prefixes").write_text("eins\n" + "zehn\n" * (len(LINES) - 1))
    with pytest.raises(InputError, match="the first 8 lines of the input, or their prefixes"):
        translate_stream(translator, files, {}, resume=SETTINGS)


def edit_record(folder: Path, **changes: Any) -> None:
    path = folder / "out.txt.partial.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "out.txt").write_text("x\n"), "out.txt is complete; remove it"),
        (lambda folder: (folder / "in.txt").write_text("one two\n"), "8 lines .* input has only 1; is it another"),
        (
            lambda folder: (folder / "out.txt.partial").write_text("x\n"),
            "out.txt.partial has 2 bytes, expected at least",
        ),
        (
            lambda folder: (folder / "alignments.jsonl.partial").unlink(),
            "jsonl.partial has 0 bytes, .*remove .*out.txt.p",
        ),
        (lambda folder: (folder / "out.txt.partial.json").unlink(), "No such file.*; remove out.txt.partial to start"),
        (lambda folder: (folder / "out.txt.partial.json").write_text("{"), "out.txt.partial.json cannot be read"),
        (lambda folder: (folder / "out.txt.partial.json").write_text("[]"), "out.txt.partial.json cannot be read"),
        (
            lambda folder: (folder / "out.txt.partial.json").write_text('{"settings": {}, "lines": "x", "sizes": []}'),
            "a value is of the wrong type",
        ),
        (lambda folder: edit_record(folder, sizes=[]), "its lines, sizes and hashes contradict each other"),
        (lambda folder: edit_record(folder, sizes=[], hashes=[]), "its lines, sizes and hashes contradict each other"),
        (lambda folder: edit_record(folder, lines=0), "its lines, sizes and hashes contradict each other"),
        (lambda folder: edit_record(folder, sizes=[3], hashes=[""]), "describes 1 files, expected 2"),
        (lambda folder: edit_record(folder, sizes=[3, 3]), "the first 3 bytes of .*out.txt.partial were changed"),
        (lambda folder: edit_record(folder, sizes=3), "cannot be read"),
        (
            lambda folder: (folder / "out.txt.partial.json").write_text("[" * 10**5),
            "partial.json cannot be read .it is nested deeper than 64 levels",
        ),
        (
            lambda folder: (folder / "out.txt.partial").write_bytes(
                (folder / "out.txt.partial").read_bytes().replace(b"\n", b" ", 1)
            ),
            "out.txt.partial were changed; restore them, or remove",
        ),
    ],
)
def test_what_cannot_be_continued_is_refused(translator: Translator, files: Files, damage: Any, message: str) -> None:
    cut_off(translator, files, {}, blocks=2)
    assert files.output is not None
    damage(files.output.parent)
    with pytest.raises(InputError, match=message):
        translate_stream(translator, files, {}, resume=SETTINGS)


def test_the_command_compares_bundles_and_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: `translate --resume` with another bundle or other options. Effect: refused, with what differs."""
    bundle_dir = make_bundle(tmp_path / "first", words=True).path
    first_lm, other_lm = (make_bundle(tmp_path / f"lm{i}", seed=i, words=True, reads=False).path for i in (0, 1))
    monkeypatch.setattr(input_blocks, "BLOCK_LINES", 4)
    (tmp_path / "in.txt").write_bytes(b"one\n" * 4 + b"\xff\n")
    (tmp_path / "dictionary").write_text("one\teins\t3\n")
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt"), "--resume"]
    options = ["--search", "beam", "--beam", "2", "--lm", str(first_lm), "--lm-weight", "0.1", "--banned", "drei"]
    given = [*options, "--replace-unknown", str(tmp_path / "dictionary")]
    assert main(["translate", str(bundle_dir), *given, *files]) == 1
    assert "in.txt:5:1 is not UTF-8" in capsys.readouterr().err
    same = Path(shutil.copytree(bundle_dir, tmp_path / "moved"))
    assert main(["translate", str(same), *given, *files, "--threads", "1"]) == 1
    assert "in.txt:5:1 is not UTF-8" in capsys.readouterr().err

    (tmp_path / "dictionary").write_text("one\tzwei\t3\n")
    other = make_bundle(tmp_path / "other", seed=1, words=True).path
    given[given.index("--banned") + 1] = "acht"
    given[given.index("--lm") + 1] = str(other_lm)
    assert main(["translate", str(other), *given, "--rescore", str(other), *files, "--search", "rerank"]) == 1
    error = capsys.readouterr().err
    for flag in ("BUNDLE", "--lm", "--banned", "--replace-unknown", "--search", "--rescore"):
        assert f" {flag} was " in error
    for flag in ("--beam", "--lm-weight", "--output", "--threads"):
        assert f" {flag} was " not in error


def test_a_file_that_another_process_continues_is_refused(translator: Translator, files: Files) -> None:
    pytest.importorskip("fcntl")
    cut_off(translator, files, {}, blocks=2)
    partial = Path(f"{files.output}.partial")
    before = partial.read_bytes()
    with append_output(partial), pytest.raises(InputError, match=r"another process is writing .*partial; wait"):
        translate_stream(translator, files, {}, resume=SETTINGS)
    assert partial.read_bytes() == before


def test_an_output_file_is_needed(bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    assert main(["translate", str(bundle_dir), "--input", str(tmp_path / "in.txt"), "--resume"]) == 1
    assert "give --output FILE too" in capsys.readouterr().err
