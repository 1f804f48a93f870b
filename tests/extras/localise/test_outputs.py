"""Where catalogs are written: nothing is replaced, and a call that was stopped goes on."""

import json
from pathlib import Path

import pytest

from softsearch.errors import ConfigError
from softsearch.extras.localise.outputs import JOURNAL, REVIEW, Outputs, digest_of_files, output_files
from softsearch.runtime.cli import main

BUNDLE = "tests/golden/bundle"
FILES = ("a/x.po", "a/b/x.po", "a/b/y.po")


def test_names_are_those_in_the_common_folder(tmp_path: Path) -> None:
    files = [tmp_path / name for name in FILES]
    out = tmp_path / "out"
    assert output_files(files, out) == [out / "x.po", out / "b" / "x.po", out / "b" / "y.po"]
    assert output_files(files[:1], out) == [out / "x.po"]
    assert output_files(files[:1], tmp_path / "new.po") == [tmp_path / "new.po"]
    out.mkdir()
    assert output_files(files[:1], out) == [out / "x.po"]


def test_a_call_that_was_stopped_goes_on(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.po" for number in range(3)]
    made_from = dict.fromkeys(paths, "content")
    first = Outputs(tmp_path, made_from, "call")
    first.write(paths[0], b"0")
    first.write(paths[1], b"1")
    paths[1].unlink()  # as if it was stopped after the line in the journal
    with (tmp_path / JOURNAL).open("a") as journal:
        journal.write('["call", "2.p')  # as if in the middle of a line
    second = Outputs(tmp_path, made_from, "call")
    assert second.complete == {paths[0]}
    assert Outputs(tmp_path, dict.fromkeys(paths, "mended"), "call").complete == set()
    with pytest.raises(ConfigError, match=r"a call that was stopped, with another model, memory or options"):
        Outputs(tmp_path, made_from, "other")
    for path in paths[1:]:
        second.write(path, b"new")
    second.finish()
    assert {path.name for path in tmp_path.iterdir()} == {"0.po", "1.po", "2.po"}
    with pytest.raises(ConfigError, match=r"0\.po exists already"):
        Outputs(tmp_path, made_from, "call")


def test_what_a_call_did_not_write_is_not_replaced(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(2)]
    made_from = dict.fromkeys(paths, "content")
    Outputs(tmp_path, made_from, "call").write(paths[0], b"0")
    paths[0].write_bytes(b"changed by a person")
    with pytest.raises(ConfigError, match=r"0\.json exists already"):
        Outputs(tmp_path, made_from, "call")
    (tmp_path / f"1.json{REVIEW}").mkdir()
    with pytest.raises(ConfigError, match=rf"1\.json{REVIEW} exists already"):
        Outputs(tmp_path, {paths[1]: ""}, "call")


def test_digests_follow_names_contents_and_values(tmp_path: Path) -> None:
    (path := tmp_path / "x.po").write_text("a")
    digests = {digest_of_files([path]), digest_of_files([path], 4), digest_of_files([])}
    path.write_text("b")
    assert len(digests | {digest_of_files([path])}) == 4


def test_the_command_goes_on(repo_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "de").mkdir(parents=True)
        (tmp_path / name / "en").mkdir()
        (tmp_path / name / "en" / "x.json").write_text(json.dumps({"k": "two", "l": "three"}))
        (tmp_path / name / "de" / "x.json").write_text('{"l": "drei"}')
    out, broken = tmp_path / "out", tmp_path / "b" / "de" / "x.json"
    command = ["localise", str(repo_root / BUNDLE), str(tmp_path / "?" / "de" / "x.json"), "--out", str(out)]
    broken.write_text("{")
    assert main(command) == 1
    assert "b/de/x.json cannot be read" in capsys.readouterr().err
    written = [path.relative_to(out).as_posix() for path in sorted(out.rglob("*")) if path.is_file()]
    assert written == [JOURNAL, "a/de/x.json", f"a/de/x.json{REVIEW}"]
    assert (out / written[1]).read_text() == '{"l": "drei", "k": "zwei"}'
    assert (out / written[2]).read_text().startswith("k\ttwo\tzwei\tsoftsearch: translated, confidence 0.")
    assert main([*command, "--beam", "2"]) == 2
    assert "another model, memory or options" in capsys.readouterr().err
    broken.write_text('{"l": "drei"}')
    assert main(command) == 0
    assert f"{out / 'a/de/x.json'} was written before\n{broken} -> {out / 'b/de/x.json'}" in capsys.readouterr().out
    assert len([path for path in out.rglob("*") if path.is_file()]) == 4
