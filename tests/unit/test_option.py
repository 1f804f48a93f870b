"""Options are described once: flags, requests, docs and configs say what the dataclasses of searches say."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import ValidationError, create_model

from softsearch.app.config.composition import CONFIGS
from softsearch.errors import ConfigError
from softsearch.extras.serve.fields import controls, request_fields
from softsearch.extras.serve.schema import StreamRequest, search_options
from softsearch.option import CheckedOptions, Option, option
from softsearch.ranges import Range
from softsearch.runtime.arguments import add_translate_options, prompt_flags
from softsearch.runtime.flags import flag_of, make_flags
from softsearch.runtime.options import LENGTHS, option_of
from softsearch.runtime.parser import Parser
from tests.option_tables import DOCS, RETURNED, config, docs, files, options


@dataclass(frozen=True, kw_only=True)
class Mine(CheckedOptions):
    """Options of each kind."""

    share: Annotated[float, Range(0, 1), Option("a share, in %", 0.5)] = 0.0
    most: Annotated[Annotated[int, Range(1)] | None, Option("the most", 3)] = None
    form: Annotated[Literal["one", "other"], Option("which form")] = "one"
    on: Annotated[bool, Option("whether it is on", True)] = False
    names: Annotated[tuple[str, ...], Option("names", ["a"], metavar="NAME")] = ()
    file: Annotated[Path | None, Option("what to read")] = None


def test_docs_and_configs_are_made_from_the_options() -> None:
    different = [str(path) for path, text in files().items() if path.read_text(encoding="utf-8") != text]
    assert not different, f"{different}: type python -m tests.option_tables"


def test_every_option_of_a_search_is_described_at_every_surface() -> None:
    parser = Parser()
    add_translate_options(parser)
    flags = {each.option_strings[-1]: str(each.help) for each in parser._actions if each.option_strings}
    requests = StreamRequest.model_fields
    for name, (hint, _, _) in options().items():
        told, typed = option(hint), option_of(name)
        assert re.fullmatch(r"[a-zA-Z].*[^.]", told.help), name
        if name not in RETURNED:
            assert flags[flag_of(typed)].startswith(LENGTHS[typed].help if typed in LENGTHS else told.help), name
            assert flag_of(typed) in prompt_flags() or typed in ("banned",), name
        if name in requests:
            assert requests[name].description == told.sentence
            assert requests[name].examples == [told.example]
    assert search_options().keys() < requests.keys()


def test_flags_are_made_from_a_dataclass(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser(prog="x")
    for flag, (settings, text) in make_flags(Mine.hints, "none").items():
        parser.add_argument(flag, **settings, help=text)
    typed = "--share .5 --most 2 --form other --on --names a --names b --file f"
    given = vars(parser.parse_args(typed.split()))
    assert given == {"share": 0.5, "most": 2, "form": "other", "on": True, "names": ["a", "b"], "file": Path("f")}
    assert vars(parser.parse_args([])) == dict.fromkeys(given) | {"names": []}
    for wrong, message in (("--share 2", "'2' is not a number of at least 0 and at most 1"), ("--form x", "'x'")):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong.split())
        assert message in capsys.readouterr().err
    shown = parser.format_help()
    assert "--names NAME" in shown
    assert "a share, in % (default: none)" in shown


def test_fields_of_a_request_are_made_from_a_dataclass() -> None:
    request = create_model(
        "Request", **request_fields({name: hint for name, hint in Mine.hints.items() if name != "file"})
    )
    assert request.model_validate({}).model_dump() == dict.fromkeys(request.model_fields)
    assert request.model_validate({"names": ["a"], "most": 3}).model_dump(exclude_none=True) == {
        "names": ["a"],
        "most": 3,
    }
    properties = request.model_json_schema()["properties"]
    assert (properties["share"]["description"], properties["share"]["examples"]) == ("A share, in %.", [0.5])
    for wrong in ({"share": 2}, {"most": 0}, {"form": "x"}, {"names": "a"}):
        with pytest.raises(ValidationError):
            request.model_validate(wrong, strict=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"share": 2}, r"share is 2, expected a number of at least 0 and at most 1; change share"),
        ({"form": "x"}, r"form is 'x', expected one of 'one', 'other'; change form"),
        ({"names": ["a", 1]}, r"names is \['a', 1\], expected a list, each text"),
    ],
)
def test_values_are_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Mine(**given)
    numbers: dict[str, Any] = {"share": np.float64(0.25), "most": np.int64(2)}
    assert Mine(**numbers) == Mine(share=0.25, most=2)


def test_the_form_of_the_page_is_made_from_a_dataclass() -> None:
    hints = {name: hint for name, hint in Mine.hints.items() if name in ("share", "most", "form", "on")}
    made = controls(hints | {"name": Annotated[str, Option("a name")]})
    assert {name: each.pop("help") for name, each in made.items()}["most"] == "The most."
    assert made == {
        "share": {"min": 0, "max": 1, "step": "any"},
        "most": {"min": 1, "step": 1},
        "form": {"choices": ["one", "other"]},
        "on": {"switch": True},
        "name": {"text": True},
    }


def test_the_command_adds_an_option_to_docs_and_configs() -> None:
    beam = (CONFIGS / "search" / "beam.yaml").read_text(encoding="utf-8")
    line = next(line for line in beam.splitlines(keepends=True) if line.startswith("groups:"))
    assert config(beam.replace(line, "")) == beam.replace(line, "") + line
    assert config(beam.replace(line, "groups: 1 # another text\n")) == beam
    page = DOCS.read_text(encoding="utf-8")
    row = next(row for row in page.splitlines(keepends=True) if row.startswith("| `groups` |"))
    assert docs(page.replace(row, "")) == page
