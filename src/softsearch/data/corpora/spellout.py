"""The corpus that needs no download: dates, times, amounts and numbers written out as words in two languages."""

import datetime as dt
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeVar, get_args

from softsearch.data.corpora.base import FilePair, ParallelSource, Split
from softsearch.data.corpora.speller import CURRENCIES, MAX_ORDINAL, UNITS, WITH_CENTS, RelativeUnit, Speller
from softsearch.data.preparation.cache_folder import make_folder
from softsearch.errors import ConfigError
from softsearch.ranges import Count, Range
from softsearch.text.option_checks import require_int

_FORMAT = 1
_FIRST_DAY = dt.date(1900, 1, 1).toordinal()
_LAST_DAY = dt.date(2049, 12, 31).toordinal()
_NUMBER_LIMITS = (100, 100, 1_000, 1_000, 10_000, 10_000, 10_000, 1_000_000)

Option = TypeVar("Option")
_Pairs = Annotated[int, Range(1, 10_000_000)]
Render = Callable[[Speller], str]


@dataclass(frozen=True, kw_only=True)
class Spellout(ParallelSource):
    """Sentence pairs such as "monday march the twenty-first nineteen eighty-four" and its German reading.

    No source and no target sentence occurs twice, so the splits share none. The same options (and versions of Babel and
    num2words) give the same bytes. Word order differs as it does between the languages.

    Args:
        src_lang: any language that Babel and num2words both have.
        tgt_lang: another one.
        train_size: pairs in ``train``.
        val_size: pairs in ``val``; with the same seed they stay the same when ``train_size`` changes, as ``test`` does.
        test_size: pairs in ``test``.
        seed: what the sentences are drawn by.

    Raises:
        ConfigError: a value is of the wrong type or out of range, or a language is not supported.
    """

    src_lang: str = "en"
    tgt_lang: str = "de"
    train_size: _Pairs = 20_000
    val_size: _Pairs = 1_000
    test_size: _Pairs = 1_000
    seed: Count = 1

    def __post_init__(self) -> None:
        """Checks the options."""
        super().__post_init__()
        for key in ("train_size", "val_size", "test_size"):
            require_int(f"data.{key}", getattr(self, key), at_least=1)
        require_int("data.seed", self.seed, at_least=0)
        self._spellers()
        if self.src_lang == self.tgt_lang:
            raise ConfigError(f"data.src_lang and data.tgt_lang are both {self.src_lang!r}; choose two languages")

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files in ``cache_dir``, written there if need be.

        Raises:
            CorpusError: ``cache_dir`` cannot be written.
        """
        folder = cache_dir / f"spellout-{self._key()}"
        langs = self.src_lang, self.tgt_lang
        make_folder(folder, self._write)
        return {split: (folder / f"{split}.{langs[0]}", folder / f"{split}.{langs[1]}") for split in get_args(Split)}

    def _key(self) -> str:
        libraries = {name: version(name) for name in ("babel", "num2words")}
        options = {k: v for k, v in asdict(self).items() if k not in ("reverse_source", "target_direction")}
        identity = json.dumps({**options, **libraries, "format": _FORMAT}, sort_keys=True)
        return hashlib.sha256(identity.encode()).hexdigest()[:16]

    def _spellers(self) -> tuple[Speller, Speller]:
        return Speller(self.src_lang, "data.src_lang"), Speller(self.tgt_lang, "data.tgt_lang")

    def _write(self, folder: Path) -> None:
        sizes: dict[str, int] = {"test": self.test_size, "val": self.val_size, "train": self.train_size}
        pairs = _pairs(*self._spellers(), self.seed)
        for split, size in sizes.items():
            sides = zip(*islice(pairs, size), strict=True)
            for lang, side in zip((self.src_lang, self.tgt_lang), sides, strict=True):
                (folder / f"{split}.{lang}").write_bytes("".join(f"{line}\n" for line in side).encode())


def _pairs(src: Speller, tgt: Speller, seed: int) -> Iterator[tuple[str, str]]:
    """Yields pairs whose source and target were not yielded before, without end."""
    draw = _Draw(src, tgt, seed)
    seen_src: set[str] = set()
    seen_tgt: set[str] = set()
    while True:
        render = draw.sentence()
        pair = render(src), render(tgt)
        if pair[0] not in seen_src and pair[1] not in seen_tgt:
            seen_src.add(pair[0])
            seen_tgt.add(pair[1])
            yield pair


class _Draw:
    """Draws what a sentence says, as a function that says it in a language; only what both languages can say.

    Nothing is counted in ones: a one agrees with its noun, which num2words does not know.
    """

    def __init__(self, src: Speller, tgt: Speller, seed: int) -> None:
        self._random = random.Random(seed)
        self._with_cents = [name for name in WITH_CENTS if name in src.with_cents & tgt.with_cents]
        whole = [currency for currency in CURRENCIES if currency not in self._with_cents]
        self._named = [*whole, *(unit for unit in UNITS if unit in src.units & tgt.units)]
        self._kinds = [self._date, self._date, self._date_at_time, self._weekday_at_time, self._relative_at_time]
        self._kinds += [self._numbers, self._quantities, self._quantities]
        if self._with_cents:
            self._kinds += [self._amount, self._amount]
        if src.has_ordinals and tgt.has_ordinals:
            self._kinds += [self._ordinals]

    def sentence(self) -> Render:
        return self._choice(self._kinds)()

    def _date(self) -> Render:
        day = self._day()
        return lambda speller: speller.date(day)

    def _date_at_time(self) -> Render:
        day, time = self._day(), self._time()
        return lambda speller: speller.at_time(speller.date(day), time)

    def _weekday_at_time(self) -> Render:
        day, time = self._day(), self._time()
        return lambda speller: speller.at_time(speller.weekday(day), time)

    def _relative_at_time(self) -> Render:
        number, unit, time = 2 + self._below(98), self._choice(get_args(RelativeUnit)), self._time()
        signed = number if self._below(2) else -number
        return lambda speller: speller.at_time(speller.relative(signed, unit), time)

    def _numbers(self) -> Render:
        numbers = self._number(), self._number()
        return lambda speller: speller.both([speller.cardinal(number) for number in numbers])

    def _ordinals(self) -> Render:
        numbers = [1 + self._below(self._choice((99, MAX_ORDINAL))) for _ in range(2)]
        return lambda speller: speller.either([speller.ordinal(number) for number in numbers])

    def _amount(self) -> Render:
        units, cents, currency = self._number(), 2 + self._below(98), self._choice(self._with_cents)
        return lambda speller: speller.amount(units, cents, currency)

    def _quantities(self) -> Render:
        quantities = [(self._number(), self._choice(self._named)) for _ in range(2)]
        return lambda speller: speller.both([speller.quantity(*quantity) for quantity in quantities])

    def _number(self) -> int:
        limit = self._choice(_NUMBER_LIMITS)
        return 2 + self._below(limit - 2)

    def _day(self) -> dt.date:
        return dt.date.fromordinal(_FIRST_DAY + self._below(_LAST_DAY - _FIRST_DAY + 1))

    def _time(self) -> dt.time:
        """A time of the twelve-hour clock but for its first hour; minutes are none or at least ten."""
        hour = self._choice([hour for hour in range(24) if hour % 12 != 1])
        return dt.time(hour, self._choice((0, *range(10, 60))))

    def _below(self, limit: int) -> int:
        # random() alone is promised to stay the same in every version of Python.
        return int(self._random.random() * limit)

    def _choice(self, options: Sequence[Option]) -> Option:
        return options[self._below(len(options))]
