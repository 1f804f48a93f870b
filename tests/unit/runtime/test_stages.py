"""Stages: which take part, in which order, and packages whose stages cannot be used."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from softsearch.commands import CORE
from softsearch.errors import ConfigError
from softsearch.option import Option
from softsearch.runtime.cli import main, parser_of
from softsearch.runtime.parsed_options import stage_keywords
from softsearch.runtime.stages.chosen import Stages, installed_stages
from softsearch.runtime.stages.stage import Stage
from softsearch.runtime.stages.terms import TermStage
from softsearch.runtime.translator import Translator


@dataclass(frozen=True, kw_only=True)
class Other(Stage):
    other: Annotated[bool, Option("do something else", True)] = False


def names(stages: Stages) -> list[str]:
    return [type(stage).__name__ for stage in stages.chosen]


def test_stages_that_are_given_take_part_in_the_order_of_lines() -> None:
    stages, others = Stages().given({"trace": True, "beam": 3, "paragraphs": True, "keep_usual": True, "src": None})
    assert others == {"beam": 3}
    assert names(stages) == ["LanguageStage", "ParagraphStage", "TermStage", "TraceStage"]
    assert names(stages.changed(Other(other=True))) == ["Other", *names(stages)]  # gets lines as given
    assert names(stages.given({"paragraphs": False})[0]) == ["LanguageStage", "TermStage", "TraceStage"]
    assert names(Stages().given({"markup": True, "paragraphs": True})[0]) == ["LanguageStage", "MarkupStage"]


def test_what_is_not_given_is_the_default(translator: Translator, bundle_dir: Path) -> None:
    defaults, _ = Stages().given({"glossary": {"two": "zehn"}, "glossary_bonus": 3.0})
    (_, terms) = defaults.given({"keep": ["x"]})[0].chosen
    assert isinstance(terms, TermStage)
    assert (terms.glossary_bonus, terms.keep) == (3.0, ("x",))
    assert terms.require("two x").terms[0].bonus == 3.0
    own = Translator(bundle_dir, threads=1, glossary={"two": "zehn"})
    assert own.translate(["one two"])[0].text == translator.translate(["one two"], glossary={"two": "zehn"})[0].text
    assert own.translate(["one two"], glossary={})[0].text == translator.translate(["one two"])[0].text


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Installs a package whose stage is made from a line."""

    def install(line: str) -> None:
        about = tmp_path / "wrong_stage-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-stage\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[softsearch.stages]\nwrong = wrong_stage:Wrong\n")
        (tmp_path / "wrong_stage.py").write_text(
            "from dataclasses import dataclass\nfrom typing import Annotated\nfrom softsearch.option import Option\n"
            f"from softsearch.runtime import Stage\n\n{line}\n"
        )

    monkeypatch.syspath_prepend(tmp_path)
    installed_stages.cache_clear()
    yield install
    installed_stages.cache_clear()
    sys.modules.pop("wrong_stage", None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("raise OSError('no disk')", r"which cannot be imported \(OSError: no disk\); install wrong-stage again"),
        ("Wrong = 1", "expected a subclass of Stage with options; correct it, or remove wrong-stage"),
        ("class Wrong(Stage): pass", "expected a subclass of Stage with options"),
        ('class Wrong(Stage): beam: Annotated[bool, Option("x")] = False', "whose option beam exists already"),
        ('class Wrong(Stage): markup: Annotated[bool, Option("x")] = False', "whose option markup exists already"),
    ],
)
def test_a_stage_that_cannot_be_used_is_an_error_that_names_its_package(
    line: str, message: str, installed: Any, translator: Translator, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(line)
    translator.translate(["one"], keep_usual=True)  # which needs none of it
    with pytest.raises(ConfigError, match=message):
        translator.translate(["one"], wrong=True)  # type: ignore[arg-type]
    assert main(["plugins"]) == 0
    assert "wrong-stage 1.0" in capsys.readouterr().out


def test_a_flag_of_a_package_is_found_when_it_is_meant(
    installed: Any, bundle_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = 'Annotated[str | None, Option("say how", metavar="HOW")] = None'
    installed(f"@dataclass(frozen=True, kw_only=True)\nclass Wrong(Stage):\n    manner: {option}")
    parser = parser_of(CORE["translate"])
    typed = parser.parse_args(["--manner=loud", str(bundle_dir), "--beam", "3", "one two"])
    assert (typed.manner, typed.beam, typed.bundles) == ("loud", 3, [bundle_dir, "one two"])
    assert stage_keywords(parser, typed) == {"manner": "loud"}
    with pytest.raises(SystemExit, match="2"):
        main(["translate", str(bundle_dir), "--maner", "loud"])
    assert "there is no option --maner; did you mean --manner?" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["translate", "--help"])
    assert "--manner HOW" in capsys.readouterr().out
    assert main(["completion"]) == 0
    assert "--manner" in capsys.readouterr().out


def test_a_stage_that_cannot_be_used_stops_no_command_without_it(
    installed: Any, bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installed("raise OSError('no disk')")
    (lines := tmp_path / "lines").write_text("one\n")
    assert main(["translate", str(bundle_dir), "--input", str(lines)]) == 0
    assert main(["translate", str(bundle_dir), "--loud"]) == 2
    assert "stage wrong of wrong-stage is wrong_stage:Wrong, which cannot be imported" in capsys.readouterr().err
