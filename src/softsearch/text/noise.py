"""Noise on training text, so that a model copes with text typed differently from its corpus.

The modifications are those of OpusTrainer (Bogoychev et al. 2023, arXiv:2311.14838); the draws are pure functions here.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

from softsearch.errors import ConfigError
from softsearch.ranges import Share
from softsearch.text.sentence_end import without_end
from softsearch.text.vocabulary import LANGUAGE_TAG, is_tag

Pair = tuple[str, str]
_Change = Callable[[str], str]
_TAG = re.compile(rf"{LANGUAGE_TAG.pattern} ")
_LETTER, _LETTERS = re.compile(r"[^\W\d_]"), re.compile(r"[^\W\d_]{3,}")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")  # rows of a keyboard


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The shares of pairs, words or batches that get each kind of noise.

    Changes that make text longer apply to a whole batch: one longer line would pad all the others.

    Args:
        upper: batches whose text is in upper case, on both sides, so that the model copies the case.
        title: batches in which every word begins with a capital, on both sides.
        lower: batches whose text is in lower case, on both sides.
        merge: batches in which each pair is joined with the next one of the batch into one line; in addition to the
            case.
        end_punctuation: pairs that lose the full stops, exclamation and question marks at their ends.
        typos: source words of at least three letters with one change: two letters swapped, or one letter dropped,
            doubled or replaced by that of a neighbouring key.

    Raises:
        ConfigError: the shares of the three cases add up to more than 1.
    """

    upper: Share = 0.0
    title: Share = 0.0
    lower: Share = 0.0
    merge: Share = 0.0
    end_punctuation: Share = 0.0
    typos: Share = 0.0

    def __post_init__(self) -> None:
        """Checks the shares."""
        if (total := sum(self.cases)) > 1:
            raise ConfigError(
                f"noise.upper, noise.title and noise.lower add up to {total:g}, expected at most 1, because a text "
                "has only one case; lower them"
            )

    @property
    def is_on(self) -> bool:
        """Tells whether there is any noise."""
        return any(astuple(self))

    @property
    def cases(self) -> tuple[float, float, float]:
        """The shares of the cases; a vocabulary should have pieces for them."""
        return self.upper, self.title, self.lower

    def __call__(self, pairs: Sequence[Pair], draws: Sequence[int], seed: int) -> list[Pair]:
        """Returns the pairs of a batch with noise, a pure function of the arguments.

        Args:
            pairs: source and target pairs, at least one.
            draws: numbers of the draws, one per pair and epoch.
            seed: the run's seed.
        """
        rng = random.Random(f"noise {seed} batch {draws[0]}")
        change, merges = self._case(rng), rng.random() < self.merge
        if merges and len(pairs) > 1:
            pairs = [_merged(*both) for both in zip(pairs, [*pairs[1:], pairs[0]], strict=True)]
        return [
            self._pair(pair, change, random.Random(f"noise {seed} {draw}"))
            for pair, draw in zip(pairs, draws, strict=True)
        ]

    def cased(self, lines: Iterable[str]) -> Iterator[str]:
        """Yields a side's lines, and shares of them again in each case, to train tokenizers."""
        for number, line in enumerate(lines):
            yield line
            if any(self.cases) and (change := self._case(random.Random(number))):
                yield _by_word(line, change)

    def _case(self, rng: random.Random) -> _Change | None:
        drawn = rng.random()
        for share, change in zip(self.cases, (str.upper, _capitalised, str.lower), strict=True):
            if drawn < share:
                return change
            drawn -= share
        return None

    def _pair(self, pair: Pair, change: _Change | None, rng: random.Random) -> Pair:
        src, tgt = pair
        if rng.random() < self.end_punctuation:
            src, tgt = (without_end(side) or side for side in (src, tgt))
        if self.typos:
            src = _by_word(src, lambda word: _LETTERS.sub(lambda run: self._maybe_typo(run[0], rng), word))
        return (src, tgt) if change is None else (_by_word(src, change), _by_word(tgt, change))

    def _maybe_typo(self, letters: str, rng: random.Random) -> str:
        return _with_typo(letters, rng) if rng.random() < self.typos else letters


NO_NOISE = Noise()


def _merged(pair: Pair, other: Pair) -> Pair:
    """Joins two pairs into one line each, unless their target languages differ."""
    tag, other_tag = ((_TAG.match(src) or [""])[0] for src, _ in (pair, other))
    if tag != other_tag:
        return pair
    return f"{pair[0]} {other[0].removeprefix(tag)}", f"{pair[1]} {other[1]}"


def _by_word(text: str, change: _Change) -> str:
    """Changes every word of a text that is not a tag."""
    return " ".join(word if is_tag(word) else change(word) for word in text.split(" "))


def _capitalised(word: str) -> str:
    return _LETTER.sub(lambda letter: letter[0].title(), word, count=1)


def _with_typo(letters: str, rng: random.Random) -> str:
    at, kind = rng.randrange(len(letters) - 1), rng.randrange(4)
    before, letter, after = letters[:at], letters[at], letters[at + 1 :]
    if kind == 0:
        return before + after[0] + letter + after[1:]
    if kind == 1:
        return before + after
    return before + (2 * letter if kind == 2 else _neighbour_key(letter, rng)) + after


def _neighbour_key(letter: str, rng: random.Random) -> str:
    """The letter of the key to the left or right; for a letter not in the rows, the letter twice."""
    for row in _ROWS:
        if (place := row.find(letter.lower())) >= 0:
            found = rng.choice(row[max(0, place - 1) : place] + row[place + 1 : place + 2])
            return found.upper() if letter.isupper() else found
    return 2 * letter
