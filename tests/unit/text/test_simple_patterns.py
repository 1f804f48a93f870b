"""Patterns of strangers: what they mean, and which are refused before anything is compiled."""

import time

import pytest
import regex

from softsearch.errors import ConfigError
from softsearch.text.keep import Keep
from softsearch.text.simple_patterns import read_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bACME \w+",
        r"\{\w+\}",
        r"a{2,3}b{2}c{2,}",
        r"a{,2}b",
        r"(a|b)*c",
        r"(?:ab?)+?",
        r"[a-z]+",
        r"[]a]",
        r"[^]a]",
        r"[a-]",
        r"[-a]",
        r"[a-z\d]",
        r"[\]-]",
        r"a.c",
        r"é{1,3}",
        r"^a|c$",
        r"[A-F0-9]{4}",
        r"\$\d+",
        r"x??",
        r"[\s\S]",
    ],
)
def test_it_means_what_the_regular_expression_does(pattern: str) -> None:
    text = "ACME Corp {name} aabbcc abab é]] - 12 AF09 $5 abc"
    found = [match.span() for match in regex.finditer(read_pattern(pattern), text)]
    assert found == [match.span() for match in regex.finditer(pattern, text)]
    assert found


@pytest.mark.parametrize("pattern", ["{name}", "a{e<=1}", "[a&&b]", "~ #|x"])
def test_everything_else_is_literal(pattern: str) -> None:
    assert regex.fullmatch(read_pattern(pattern), {"[a&&b]": "&", "~ #|x": "~ #"}.get(pattern, pattern))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(?:a{9999}){999}", "more than 1000 characters, with repetitions written out, at character 11"),
        ("((a{10}){10}){11}", "more than 1000 characters"),
        ("(){999999999}", "more than 1000 characters"),
        ("(" * 30 + ")" * 30, "a group that is not allowed"),
        ("(?i)x", "a group that is not allowed at character 2"),
        ("(?=x)", "a group that is not allowed"),
        ("[[:alpha:]]", "in a class, as in"),
        ("a**", "a repetition of a repetition at character 3"),
        ("*", r"a \* that repeats nothing"),
        ("a{5,2}", "a repetition that ends before it begins"),
        ("[z-a]", "z-a, no range"),
        (r"[\w-z]", "no range"),
        ("(x", r"no \) for a \("),
        ("x)", r"a \) without \("),
        ("[x", r"no \] for a \["),
        ("\\", "backslash before others"),
        (r"\1", "at character 2"),
        (r"\p{L}", "at character 2"),
    ],
)
def test_others_are_refused_at_once(pattern: str, message: str) -> None:
    began = time.process_time()
    with pytest.raises(ConfigError, match=message):
        Keep([pattern], served={})
    assert time.process_time() - began < 0.1
