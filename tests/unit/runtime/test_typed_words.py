"""What is typed behind the bundle: text, files, and options in any order."""

import shlex
from pathlib import Path

import pytest

from softsearch.errors import ConfigError
from softsearch.runtime.cli import main
from softsearch.runtime.parsed_options import text_among
from softsearch.runtime.translator import Translator


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["in.txt"], "in.txt is a file, expected a bundle; write --input in.txt"),
        (["in.txt", "out.txt"], "write --input in.txt --output out.txt"),
        (["two", "days"], "echo 'two days' | softsearch translate BUNDLE"),
        (["two days", "--input", "in.txt"], "'two days' is text, but --input, --features, --resume or --processes is"),
    ],
)
def test_words_behind_the_bundle_that_are_none(
    bundle_dir: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("one\n")
    assert main(["translate", str(bundle_dir), *words]) == 2
    assert message.replace("BUNDLE", str(bundle_dir)) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "meant"), [("--device", "--provider"), ("--num-beams", "--beam"), ("--file", "--input")]
)
def test_options_of_other_toolkits(
    typed: str, meant: str, bundle_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["translate", str(bundle_dir), typed, "x"])
    assert f"there is no option {typed}; did you mean {meant}?" in capsys.readouterr().err


def test_text_behind_the_bundle_is_translated(bundle_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(bundle_dir), "one two", "two  three"]) == 0
    expected = Translator(bundle_dir).translate(["one two", "two  three"])
    assert capsys.readouterr().out.splitlines() == [translation.text for translation in expected]


@pytest.mark.parametrize(
    "words",
    [["--beam", "2", "BUNDLE", "one two"], ["BUNDLE", "--beam", "2", "one two"], ["BUNDLE", "one two", "--beam=2"]],
)
def test_options_stand_anywhere(words: list[str], bundle_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", *(str(bundle_dir) if word == "BUNDLE" else word for word in words)]) == 0
    assert capsys.readouterr().out == f"{Translator(bundle_dir).translate(['one two'], beam=2)[0].text}\n"


@pytest.mark.parametrize("typed", ["two http://a.b//c/ d/", "-two -three", "<b>one</b> two"])
def test_text_is_translated_as_typed(typed: str, bundle_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(bundle_dir), "--beam", "2", "--", typed]) == 0
    assert capsys.readouterr().out == f"{Translator(bundle_dir).translate([typed], beam=2)[0].text}\n"


@pytest.mark.parametrize("words", [["forty"], ["it's"], ["forty", "two"]])
def test_the_advice_for_words_that_are_no_bundles_can_be_typed(tmp_path: Path, words: list[str]) -> None:
    bundle = tmp_path / "a b"
    with pytest.raises(ConfigError) as caught:
        text_among([bundle, *words])
    assert ("quotes" in str(caught.value)) == (len(words) > 1)
    typed = shlex.split(str(caught.value).partition("type: ")[2])
    assert typed == ["echo", " ".join(words), "|", "softsearch", "translate", str(bundle)]
