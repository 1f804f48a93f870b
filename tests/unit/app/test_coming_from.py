"""The right columns of docs/coming-from.md: every option composes and fits its constructor, every command is read."""

import re
import shlex
from pathlib import Path

import pytest

from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import CONFIGS, composed
from softsearch.app.config.validation import check, plain
from softsearch.app.train.parts import RUNTIME_ARGUMENTS
from softsearch.commands import find
from softsearch.runtime.cli import parser_of
from softsearch.suggestions import CHOICES
from softsearch.suggestions import OPTIONS as OTHERS

PAGE = Path(__file__).parents[3] / "docs" / "coming-from.md"
RIGHT = re.findall(r"^\| .*? \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
ROWS = re.findall(r"^\| (`.*?) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
CODE = [code for cell in RIGHT for code in re.findall(r"`([^`]+)`", cell)]
TYPED = {code: shlex.split(code.removeprefix("softsearch ")) for code in CODE if code.startswith("softsearch ")}
OPTIONS = [shlex.split(code) for code in CODE if "=" in code and code not in TYPED]
ALWAYS = {"data": "parallel", "data.train": "[a.en,a.de]", "data.val": "[b.en,b.de]"}


def fits_beside(cell: dict[str, str], other: dict[str, str]) -> bool:
    """Whether no key has two values, and no option stands beside the choice of a group that was made for others."""
    different = {key for key in {*cell, *other} if cell.get(key) != other.get(key)}
    tops = [{re.split("[./]", key)[0] for key in keys} for keys in (cell, other)]
    chosen = {key.partition("/")[0] for key in different if (CONFIGS / key).is_dir()}
    return not different & {*cell} & {*other} and not chosen & tops[0] & tops[1]


def batches() -> list[dict[str, str]]:
    """Cells that can stand beside each other, so that few configs are composed."""
    found: list[dict[str, str]] = []
    assert len(OPTIONS) > 80
    for words in OPTIONS:
        cell = dict(word.split("=", 1) for word in words if word != "init=RUN")  # which reads the checkpoint
        batch = next((batch for batch in found if fits_beside(cell, batch)), {})
        found += [] if batch else [batch]
        batch |= cell
    return found


def test_another_toolkits_names_are_answered_with_what_the_page_has() -> None:
    ours = {part for key in CommandLine("train")._keys() for part in key.split(".")} | {"type"}  # of any section
    ours |= {name.strip("-").replace("-", "_") for name in parser_of(find(["translate"])).option_names()}
    missing, checked = [], 0
    for left, right in ROWS:
        for name in re.findall(r"`-*([a-z]+[_.-][\w.-]+)(?=[`:])", left):  # of options, not of choices
            word = name.rpartition(".")[2].replace("-", "_")
            meanings = [meaning for table in (OTHERS, CHOICES) for meaning in table.get(word, ())]
            keys = re.findall(r"[\w./]{4,}", " ".join(meanings))
            is_option = re.search(r"`[\w.]+=| --", right)  # not a command
            if word not in ours and is_option and f"={word}" not in right:
                checked += 1
                missing += [] if any(key in right.replace("-", "_") for key in keys) else [(name, meanings, right)]
    assert not missing, "\n".join(map(str, missing))
    assert checked > 15


def test_every_shell_reads_the_options() -> None:
    assert not [code for code in CODE if "=[" in code]  # zsh would look for files


@pytest.mark.day
@pytest.mark.parametrize("batch", batches(), ids=lambda batch: " ".join(batch)[:40])
def test_every_option_fits(batch: dict[str, str], tmp_path: Path) -> None:
    data = {} if any(key.partition(".")[0] == "data" for key in batch) else ALWAYS
    words = [f"{key}={value}" for key, value in (data | batch).items() if not key.startswith("hydra.")]
    config = composed("train", *words, f"run_dir={tmp_path}", "name=test")
    for name, node in plain(config).items():
        check(node, name, given=RUNTIME_ARGUMENTS.get(name, ()))


@pytest.mark.parametrize("typed", TYPED, ids=str)
def test_every_command_reads_its_words(typed: str) -> None:
    command = find(TYPED[typed])
    assert command is not None
    if command.takes == "key=value":
        composed(*TYPED[typed])
    elif command.name != "import":
        parser_of(command).parse_args(TYPED[typed][1:])
