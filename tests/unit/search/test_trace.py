"""Traces of searches: a beam that is computed by hand, what constraints and penalties did, and the format."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.sampling import Sampling
from softsearch.search.terms import Spelling, Term, Terms
from softsearch.search.trace import Trace, trace_search
from tests.support.tables import NAMES, A, C, SmallTree


def trace(search: BeamSearch | Greedy | Sampling, **options: Any) -> Trace:
    return trace_search(SmallTree(), search, [A, A], NAMES, **options)


def told(found: Trace) -> list[list[tuple[str, str, str]]]:
    """Of each step the candidates: the whole hypothesis, its fate, and by how much it fell out or why it may not be."""
    texts, steps = {0: ""}, []
    for step in found["steps"]:
        for each in step["candidates"]:
            texts[each["id"]] = texts[each["parent"]] + each["piece"].replace("</s>", ".")
        why = [
            each["forbidden_by"] or (each["behind"] and f"{each['behind']:.3f}") or "" for each in step["candidates"]
        ]
        steps.append([(texts[c["id"]], c["fate"], reason) for c, reason in zip(step["candidates"], why, strict=True)])
    return steps


def test_a_small_beam_by_hand() -> None:
    found = trace(BeamSearch(beam=2, n_best=2, length_penalty=1.0, max_length_offset=3, max_length_factor=0))
    # Step 1: a 0.5 and b 0.3 stay; c 0.2 is log(0.3 / 0.2) behind.
    # Step 2: b. 0.27 ends, aa 0.2 and ab 0.15 stay. a. 0.15 is the fourth: not among the best two.
    # Step 3: ab. 0.15 and aa. 0.12 end, so that two have ended before the limit is looked at; aab 0.08 is given up.
    fell = "fell out"
    assert told(found) == [
        [("a", "kept", ""), ("b", "kept", ""), ("c", fell, "0.405")],
        [("aa", "kept", ""), ("ab", "kept", ""), ("b.", "ended", ""), ("a.", fell, "0.288"), ("bc", fell, "1.609")],
        [("ab.", "ended", ""), ("aa.", "ended", ""), ("aab", "stopped", "")],
    ]
    assert [step["expanded"] for step in found["steps"]] == [[0], [1, 2], [4, 5]]
    second = {each["piece"] + str(each["parent"]): each for each in found["steps"][1]["candidates"]}
    ended = second["</s>2"]
    assert ended["log_prob"] == pytest.approx(math.log(0.27), abs=1e-5)
    assert ended["piece_log_prob"] == pytest.approx(math.log(0.9), abs=1e-5)
    assert ended["score"] == pytest.approx(math.log(0.27) / 2, abs=1e-5)  # the length penalty: two pieces
    ranking = [("".join(each["pieces"]), each["id"]) for each in found["ranking"]]
    assert ranking == [("ab</s>", 9), ("b</s>", ended["id"])]  # log(0.15) / 3 is above log(0.27) / 2
    assert found["ranking"][0]["score"] == pytest.approx(math.log(0.15) / 3, abs=1e-5)
    assert found["stopped"] == "length limit"
    # The most probable translation is b., which the beam has found.
    assert ("".join(found["exact"]["pieces"]), found["exact"]["left_at"]) == ("b</s>", None)


def test_where_the_beam_loses_the_best_translation() -> None:
    found = trace(Greedy())
    assert [step[0][:2] for step in told(found)] == [("a", "kept"), ("aa", "kept"), ("aa.", "ended")]
    assert ("".join(found["exact"]["pieces"]), found["exact"]["left_at"]) == ("b</s>", 1)
    (lost,) = (each for each in found["steps"][0]["candidates"] if each["exact"])
    assert (lost["piece"], lost["fate"], lost["behind"]) == ("b", "fell out", pytest.approx(math.log(5 / 3), abs=1e-5))


@pytest.mark.parametrize(
    ("options", "given", "step", "expected"),
    [
        ({"banned": (A,)}, {}, 0, ("a", "forbidden", "banned")),
        ({"min_length_offset": 3}, {}, 1, ("b.", "forbidden", "min_length")),
        ({"no_repeat_ngram": 1}, {}, 1, ("aa", "forbidden", "no_repeat_ngram")),
        ({}, {"prefix": [C]}, 0, ("a", "forbidden", "prefix")),
    ],
)
def test_what_constraints_forbid(
    options: dict[str, Any], given: dict[str, Any], step: int, expected: tuple[str, str, str]
) -> None:
    found = trace(BeamSearch(beam=2, **options), **given)
    assert expected in told(found)[step]
    assert found["exact"] is None or "min_length_offset" in options


def terms(bonus: float | None) -> Terms:
    return Terms(
        [Term(("c",), whole_words=False, source="see", bonus=bonus)], Spelling(["", "", "", "", "a", "b", "c"])
    )


def test_terms_keep_the_end_away_and_a_bonus_adds_to_the_rank() -> None:
    hard = trace(BeamSearch(beam=1), terms=terms(None))
    assert hard["terms"] == [{"source": "see", "targets": ["c"]}]
    assert hard["search"]["beam"] > 1  # that of the search with terms
    assert "".join(hard["ranking"][0]["pieces"]) == "c</s>"
    every = [each for step in told(hard) for each in step]
    assert ("b.", "forbidden", "terms") in every
    soft = trace(BeamSearch(beam=1), terms=terms(2.0))
    first = {each["piece"]: each for each in soft["steps"][0]["candidates"]}
    assert (first["c"]["bonus"], first["a"]["bonus"]) == (2.0, 0.0)
    assert first["c"]["score"] == pytest.approx(math.log(0.2), abs=1e-5)  # a score is without it


def test_a_diverse_beam_ranks_down_what_another_group_took() -> None:
    found = trace(BeamSearch(beam=2, groups=2, diversity=0.1, max_length_offset=3))
    bonuses = {each["bonus"] for step in found["steps"][1:] for each in step["candidates"]}
    assert bonuses == {0.0, -0.1}


def test_only_searches_with_a_beam_have_a_trace() -> None:
    with pytest.raises(ConfigError, match="a trace shows beam or greedy search, found Sampling"):
        trace(Sampling())


def keys(text: str, header: str) -> Sequence[str]:
    """The fields that a table of the documentation names in its first column."""
    rows = text[text.index(header) :].partition("|---|---|\n")[2].partition("\n\n")[0]
    return [name for row in rows.splitlines() for name in re.findall("`(\\w+)`", row.split(" | ")[0])]


def test_the_documentation_names_every_field() -> None:
    text = (Path(__file__).parents[3] / "docs" / "search.md").read_text(encoding="utf-8")
    found = trace(BeamSearch(beam=2))
    documented = keys(text, "## The search step by step")
    assert sorted({*found, "line", "source", "src_pieces"}) == sorted(documented)
    assert sorted(found["steps"][0]["candidates"][0]) == sorted(keys(text, "A candidate is one hypothesis"))
    described = text[text.index("| `search` |") : text.index("A candidate is")]
    for part in (found["search"], found["steps"][0], found["ranking"][0], found["exact"]):
        assert set(part) <= set(re.findall("`(\\w+)`", described))
    assert json.loads(json.dumps(found)) == found  # plain data
