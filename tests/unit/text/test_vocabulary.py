"""EOS is added in one place; tags of languages are told from text."""

import re
from pathlib import Path

import pytest

import softsearch
from softsearch.text.vocabulary import EOS, with_eos, without_tags


def test_only_one_function_appends_eos_to_ids() -> None:
    assert with_eos((7, 8)) == [7, 8, EOS]
    assert with_eos([]) == [EOS]
    package = Path(softsearch.__file__).parent
    appends = re.compile(r"\[\*[^\]\n]*\bEOS\]|\(\*[^)\n]*\bEOS\)|\+ [\[(]EOS\b|append\(EOS\)")
    files = [path.relative_to(package).as_posix() for path in package.rglob("*.py") if appends.search(path.read_text())]
    assert files == ["text/vocabulary.py"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("<2de> two <b>", ("two <b>", "de")),
        ("<2deu_Latn> <from:eng_Latn> two", ("two", "deu_Latn")),
        ("<from:en> two", ("two", None)),
        ("two <2de>", ("two <2de>", None)),
        ("", ("", None)),
        ("<2a>" * 100_000, ("", "a")),
    ],
)
def test_tags_at_the_start_of_a_line_are_no_text(line: str, expected: tuple[str, str | None]) -> None:
    assert without_tags(line) == expected
