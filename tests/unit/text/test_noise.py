"""Noise: what each kind does to text, how often, and that it depends on the seed and the draws alone."""

import math
import random

import pytest

from softsearch.errors import ConfigError
from softsearch.text.noise import NO_NOISE, Noise, _neighbour_key, _with_typo

PAIRS = [
    ("A man's dog (the big one) sleeps.", "Der Hund eines Mannes schläft."),
    ("<2de> Really?! Yes", "Wirklich?! Ja"),
    ("<2de> two cats", "zwei Katzen ..."),
    ("\u732b\u3002", "Die Stra\u00dfe!"),
]
CHANGES: dict[str, list[tuple[str, str]]] = {
    "upper": [
        ("A MAN'S DOG (THE BIG ONE) SLEEPS.", "DER HUND EINES MANNES SCHLÄFT."),
        ("<2de> REALLY?! YES", "WIRKLICH?! JA"),
        ("<2de> TWO CATS", "ZWEI KATZEN ..."),
        ("\u732b\u3002", "DIE STRASSE!"),
    ],
    "title": [
        ("A Man's Dog (The Big One) Sleeps.", "Der Hund Eines Mannes Schläft."),
        PAIRS[1],
        ("<2de> Two Cats", "Zwei Katzen ..."),
        PAIRS[3],
    ],
    "lower": [
        ("a man's dog (the big one) sleeps.", "der hund eines mannes schläft."),
        ("<2de> really?! yes", "wirklich?! ja"),
        ("<2de> two cats", "zwei katzen ..."),
        ("\u732b\u3002", "die stra\u00dfe!"),
    ],
    "end_punctuation": [
        ("A man's dog (the big one) sleeps", "Der Hund eines Mannes schläft"),
        PAIRS[1],
        ("<2de> two cats", "zwei Katzen"),
        ("\u732b", "Die Stra\u00dfe"),
    ],
    "merge": [  # another language, the same one, another, and the first of the batch behind the last
        PAIRS[0],
        ("<2de> Really?! Yes two cats", "Wirklich?! Ja zwei Katzen ..."),
        PAIRS[2],
        (f"\u732b\u3002 {PAIRS[0][0]}", f"Die Stra\u00dfe! {PAIRS[0][1]}"),
    ],
}
FULL = Noise(upper=0.2, title=0.2, lower=0.1, merge=0.3, end_punctuation=0.4, typos=0.2)


@pytest.mark.parametrize("kind", CHANGES)
def test_a_kind_changes_what_it_says(kind: str) -> None:
    assert Noise(**{kind: 1.0})(PAIRS, range(4), 1) == CHANGES[kind]
    assert Noise()(PAIRS, range(4), 1) == PAIRS
    assert Noise(merge=1)(PAIRS[:1], [0], 1) == PAIRS[:1]  # none is behind it


def test_text_of_marks_alone_keeps_them() -> None:
    assert Noise(end_punctuation=1)([("...", "Ja.")], [0], 1) == [("...", "Ja")]


@pytest.mark.parametrize("letters", ["cat", "Straße", "ababa"])
def test_a_typo_is_one_of_four(letters: str) -> None:
    places = range(len(letters) - 1)
    possible: set[str] = {letters[:i] + letters[i + 1] + letters[i] + letters[i + 2 :] for i in places}
    possible |= {letters[:i] + letters[i + 1 :] for i in places}
    possible |= {letters[: i + 1] + letters[i:] for i in places}
    near = {"c": "xv", "a": "s", "s": "ad", "t": "ry", "r": "et", "b": "vn"}
    for i in places:
        for other in near.get(letters[i].lower(), ""):
            other = other.upper() if letters[i].isupper() else other
            possible.add(letters[:i] + other + letters[i + 1 :])
    rng = random.Random(1)
    assert {_with_typo(letters, rng) for _ in range(2000)} == possible
    assert _neighbour_key("ж", rng) == "жж"


def test_typos_are_in_words_of_the_source_alone() -> None:
    for draw in range(50):
        ((src, tgt),) = Noise(typos=1)([("<2de> at 1234 a reads-it <feature> of", "Hallo")], [draw], 1)
        assert (tgt, src.split(" ")[:4], src.split(" ")[5:]) == (
            "Hallo",
            ["<2de>", "at", "1234", "a"],
            ["<feature>", "of"],
        )
        assert len(src.split(" ")[4]) in (7, 8, 9)


def within(found: int, trials: int, share: float) -> bool:
    """Whether a count is within five standard deviations of a binomial distribution."""
    return abs(found - trials * share) <= 5 * math.sqrt(trials * share * (1 - share))


@pytest.mark.parametrize("kind", ["upper", "title", "lower", "merge", "end_punctuation"])
def test_shares_are_met(kind: str) -> None:
    batches = 3000
    noise = Noise(upper=0.1, title=0.2, lower=0.3, merge=0.25, end_punctuation=0.15)
    found = [noise([("Two catS", "Zwei Katze.")] * 2, [draw, -1], 7)[0] for draw in range(batches)]
    if kind == "merge":
        assert within(sum(len(tgt.split()) == 4 for _, tgt in found), batches, noise.merge)
        return
    cased = [(src, tgt) for src, tgt in found if len(tgt.split()) == 2]
    count = {
        "upper": sum(src == "TWO CATS" for src, _ in cased),
        "title": sum(src == "Two CatS" for src, _ in cased),
        "lower": sum(src == "two cats" for src, _ in cased),
        "end_punctuation": sum(not tgt.endswith(".") for _, tgt in cased),
    }[kind]
    assert within(count, len(cased), getattr(noise, kind))


def test_the_share_of_typos_is_met() -> None:
    words = ["abcdefgh"] * 4000  # of letters that are all different, so that each typo shows
    ((src, _),) = Noise(typos=0.1)([(" ".join(words), "")], [3], 1)
    assert within(sum(one != other for one, other in zip(words, src.split(), strict=True)), 4000, 0.1)


@pytest.mark.parametrize("noise", [Noise(typos=0.5), Noise(end_punctuation=0.5), Noise(lower=0.5), Noise(merge=0.5)])
def test_another_seed_gives_other_noise(noise: Noise) -> None:
    pairs = [("Some words of the source.", "Ein Wort.")] * 2
    of_seeds = [[noise(pairs, [draw, -draw], seed) for draw in range(1, 30)] for seed in (1, 2, 1)]
    assert of_seeds[0] == of_seeds[2] != of_seeds[1]


def test_draws_are_a_pure_function_of_the_seed_and_the_draws() -> None:
    random.seed(5)
    first = [FULL(PAIRS, range(start, start + 4), 1) for start in range(0, 40, 4)]
    random.seed(6)
    assert [FULL(PAIRS, range(start, start + 4), 1) for start in range(0, 40, 4)] == first
    assert [FULL(PAIRS, range(start, start + 4), 2) for start in range(0, 40, 4)] != first
    assert len({str(batch) for batch in first}) > 5  # epochs differ


def test_tokenizers_learn_from_the_text_and_some_of_it_in_other_cases() -> None:
    lines = [f"Word {i}" for i in range(300)]
    noise = Noise(upper=0.2, title=0.1, lower=0.3, typos=1, end_punctuation=1, merge=1)
    found = [*noise.cased(lines)]
    assert set(lines) <= set(found)
    assert {line.lower() for line in found} == {line.lower() for line in lines}
    assert within(sum(line.isupper() for line in found), 300, 0.2)
    assert within(sum(line.islower() for line in found), 300, 0.3)
    assert [*NO_NOISE.cased(lines)] == lines


def test_cases_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match=r"add up to 1.1, expected at most 1"):
        Noise(upper=0.5, title=0.4, lower=0.2)
