"""Text to keep: what patterns find, and patterns that are refused."""

import pickle
import time
from typing import Any

import pytest

from softsearch.errors import ConfigError, InputError
from softsearch.text.keep import Keep, Kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.b/c?d=1, or (http://x.y/z).", ["https://a.b/c?d=1", "http://x.y/z"]),
        ("write to jo.doe+x@mail.example.org.", ["jo.doe+x@mail.example.org"]),
        ("the 3 of 1,000.50 on 2024-01-31 at 10:30", ["3", "1,000.50", "2024-01-31", "10:30"]),
        ("type `rm -rf 5` now", ["`rm -rf 5`"]),
        ("{name} has %s of %(n)d and %5.2f, 100 % sure", ["{name}", "%s", "%(n)d", "%5.2f", "100"]),
        ("a <0x0A> b", ["<0x0A>"]),
        ("mp3 and H2O", []),
        ("nothing to keep", []),
    ],
)
def test_the_usual_is_found(text: str, expected: list[str]) -> None:
    found = Keep(usual=True).find(text)
    assert [each.text for each in found] == expected
    assert all(text[each.begin : each.end] == each.text for each in found)


def test_patterns_are_regular_expressions_and_the_longest_counts() -> None:
    assert Keep([r"\bACME\b", r"ACME \w+"]).find("ACME Corp of ACME") == [Kept(0, 9, "ACME Corp"), Kept(13, 17, "ACME")]
    assert Keep([r"x*"]).find("abc") == []
    assert Keep(["ACME [0-9]"], usual=True).find("ACME 55 x") == [Kept(0, 7, "ACME 55")]


def test_strangers_may_name_the_patterns_of_a_server() -> None:
    served = {"code": r"(?i)\bx\p{N}"}
    assert Keep(["code", "c."], served=served).find("ce X5 xa") == [Kept(0, 2, "ce"), Kept(3, 5, "X5")]
    with pytest.raises(ConfigError, match="serve --keep NAME=PATTERN"):
        Keep([served["code"]], served=served)


def test_another_process_compiles_its_own_patterns() -> None:
    keep = Keep(["a+"], usual=True, served={})
    assert "_compiled" not in vars(keep)
    assert keep.find("aa 5") == pickle.loads(pickle.dumps(keep)).find("aa 5") == [Kept(0, 2, "aa"), Kept(3, 4, "5")]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "is not a regular expression"),
        ("(" * 400 + ")" * 400, "is not a regular"),
        ("a" * 1001, "1001 characters"),
    ],
)
def test_a_wrong_pattern_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Keep([pattern])


@pytest.mark.parametrize("patterns", [r"\d+", [3], None])
def test_patterns_are_a_list_of_text(patterns: Any) -> None:
    with pytest.raises(ConfigError, match="expected a list of regular expressions"):
        Keep(patterns)


def test_a_pattern_that_takes_for_ever_is_refused() -> None:
    began = time.monotonic()
    with pytest.raises(
        InputError, match=r"takes more than 1 s for 302 characters; send shorter lines, or write patterns"
    ):
        Keep([r"(\w*)(\w*)(\w*)(\w*)\1\2\3\4-"]).find("a" * 300 + " -")
    assert time.monotonic() - began < 30
