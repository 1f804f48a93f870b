"""IBM Model 1 against an example worked out by hand and a plain loop, and the shortlist made of it."""

from collections import defaultdict

import numpy as np
import pytest

from softsearch.data import lexicon as lexicon_module
from softsearch.data.lexicon import shortlist_tables, train_lexicon
from softsearch.search.shortlist import Shortlist
from softsearch.text.vocabulary import EOS

DAS, HAUS, BUCH, EIN = range(4, 8)
THE, HOUSE, BOOK, A = range(4, 8)
SRC = [np.array(ids) for ids in ([DAS, HAUS], [DAS, BUCH], [EIN, BUCH])]
TGT = [np.array(ids) for ids in ([THE, HOUSE], [THE, BOOK], [A, BOOK])]


def table(lexicon: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[tuple[int, int], float]:
    return {(x, y): prob for x, y, prob in zip(*(column.tolist() for column in lexicon), strict=True)}


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        # First, each y goes in halves to its two x, so das gets the twice, house and book once each.
        (1, {(DAS, THE): 1 / 2, (DAS, HOUSE): 1 / 4, (DAS, BOOK): 1 / 4, (HAUS, THE): 1 / 2, (EIN, A): 1 / 2}),
        # Then das gets of each the (1/2) / (1/2 + 1/2) from haus and, as buch has t(the) = 1/4, 2/3: 7/6 of the; of
        # house 1/3 and of book 1/3: 7/11, 2/11, 2/11. haus gets 1/2 of the and 2/3 of house: 3/7, 4/7.
        (2, {(DAS, THE): 7 / 11, (DAS, HOUSE): 2 / 11, (DAS, BOOK): 2 / 11, (HAUS, THE): 3 / 7, (HAUS, HOUSE): 4 / 7}),
    ],
)
def test_two_iterations_by_hand(iterations: int, expected: dict[tuple[int, int], float]) -> None:
    found = table(train_lexicon(SRC, TGT, iterations))
    assert {pair: found[pair] for pair in expected} == pytest.approx(expected)
    assert (EIN, THE) not in found


def by_loops(src: list[list[int]], tgt: list[list[int]], iterations: int) -> dict[tuple[int, int], float]:
    t: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for xs, ys in zip(src, tgt, strict=True):
            for y in ys:
                normaliser = sum(t[x, y] for x in xs)
                for x in xs:
                    counts[x, y] += t[x, y] / normaliser
                    totals[x] += t[x, y] / normaliser
        t = defaultdict(float, {(x, y): count / totals[x] for (x, y), count in counts.items()})
    return dict(t)


def test_equals_the_plain_loop_in_chunks_with_repeated_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon_module, "CHUNK", 7)
    rng = np.random.default_rng(0)
    src, tgt = ([rng.integers(4, 12, rng.integers(0, 6)).tolist() for _ in range(30)] for _ in range(2))
    found = train_lexicon([np.array(x, dtype=np.uint16) for x in src], [np.array(y, dtype=np.uint16) for y in tgt], 4)
    assert table(found) == pytest.approx(by_loops(src, tgt, 4))


def test_the_best_translations_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon = np.array([4, 4, 4, 6]), np.array([5, 6, 9, 8]), np.array([0.2, 0.5, 0.3, 1.0])
    monkeypatch.setattr(lexicon_module, "train_lexicon", lambda *_: lexicon)
    _, best = shortlist_tables(SRC, TGT, src_vocab_size=7, frequent=1, translations=2)
    assert best[4:].tolist() == [[6, 9], [-1, -1], [8, -1]]


def test_a_shortlist_of_a_text() -> None:
    shortlist = Shortlist(*shortlist_tables(SRC, TGT, src_vocab_size=8, frequent=1, translations=1))
    tokens, mask = shortlist([[HAUS, EOS], [EIN, BUCH, EOS]])
    assert [tokens[row].tolist() for row in mask] == [[EOS, THE, HOUSE], [EOS, THE, BOOK, A]]
