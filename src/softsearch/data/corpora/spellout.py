"""A generated corpus, without a download: dates, times, amounts and numbers written out in two languages."""

import datetime as dt
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeVar, get_args

from softsearch.data.corpora.base import FilePair, ParallelSource, Split
from softsearch.data.corpora.speller import CURRENCIES_WITH_CENTS, UNITS, Language, RelativeUnit, Speller
from softsearch.data.preparation.cache_folder import make_folder
from softsearch.errors import ConfigError
from softsearch.ranges import Count, Range

_FORMAT = 1  # other lines need another number
_FIRST_DAY, _LAST_DAY = dt.date(1900, 1, 1).toordinal(), dt.date(2049, 12, 31).toordinal()
_NUMBER_LIMITS = (100, 100, 1_000, 1_000, 10_000, 10_000, 10_000, 1_000_000)
_MAX_ORDINAL = 999
_NAMED = ("JPY", "CHF", "SEK", "CAD", *UNITS)  # of quantities without cents
_HOURS = [hour for hour in range(24) if hour % 12 != 1]
_MINUTES = (0, *range(10, 60))

Option = TypeVar("Option")
_Pairs = Annotated[int, Range(1, 10_000_000)]


@dataclass(frozen=True, kw_only=True)
class Spellout(ParallelSource):
    """Sentence pairs such as "monday march the twenty-first nineteen eighty-four" and its German reading.

    No source and no target sentence occurs twice, so the splits share none. The same options (and versions of Babel and
    num2words) give the same bytes. Word order differs as it does between the languages.

    Args:
        val_size: pairs in ``val``; with the same seed they stay the same when ``train_size`` changes, as ``test`` does.

    Raises:
        ConfigError: the languages are the same.
    """

    src_lang: Language = "en"
    tgt_lang: Language = "de"
    train_size: _Pairs = 20_000
    val_size: _Pairs = 1_000
    test_size: _Pairs = 1_000
    seed: Count = 1

    def __post_init__(self) -> None:
        """Checks the languages."""
        if self.src_lang == self.tgt_lang:
            raise ConfigError(f"data.src_lang and data.tgt_lang are both {self.src_lang!r}; choose two languages")

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns the files in ``cache_dir``, written there if need be.

        Raises:
            CorpusError: ``cache_dir`` cannot be written.
        """
        libraries = {name: version(name) for name in ("babel", "num2words")}
        options = {k: v for k, v in asdict(self).items() if k not in ("reverse_source", "target_direction")}
        identity = json.dumps({**options, **libraries, "format": _FORMAT}, sort_keys=True)
        folder = cache_dir / f"spellout-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
        make_folder(folder, self._write)
        return {
            split: (folder / f"{split}.{self.src_lang}", folder / f"{split}.{self.tgt_lang}")
            for split in get_args(Split)
        }

    def _write(self, folder: Path) -> None:
        pairs = _pairs(self.src_lang, self.tgt_lang, self.seed)
        for split, size in (("test", self.test_size), ("val", self.val_size), ("train", self.train_size)):
            sides = zip(*islice(pairs, size), strict=True)
            for lang, side in zip((self.src_lang, self.tgt_lang), sides, strict=True):
                (folder / f"{split}.{lang}").write_bytes("".join(f"{line}\n" for line in side).encode())


def _pairs(src_lang: Language, tgt_lang: Language, seed: int) -> Iterator[tuple[str, str]]:
    """Yields endless pairs, no side of which has been yielded before."""
    src, tgt = _Generator(src_lang, seed), _Generator(tgt_lang, seed)
    seen_src: set[str] = set()
    seen_tgt: set[str] = set()
    while True:
        pair = src.sentence(), tgt.sentence()
        if pair[0] not in seen_src and pair[1] not in seen_tgt:
            seen_src.add(pair[0])
            seen_tgt.add(pair[1])
            yield pair


class _Generator:
    """Draws sentences; generators with the same seed say the same in their languages.

    Nothing is counted in ones: a one agrees with its noun, which num2words does not know.
    """

    def __init__(self, lang: Language, seed: int) -> None:
        self._random, self._speller = random.Random(seed), Speller(lang)
        self._kinds = [self._date, self._date, self._date_at_time, self._weekday_at_time, self._relative_at_time]
        self._kinds += [self._numbers, self._quantities, self._quantities, self._amount, self._amount, self._ordinals]

    def sentence(self) -> str:
        return self._choice(self._kinds)()

    def _date(self) -> str:
        return self._speller.date(self._day())

    def _date_at_time(self) -> str:
        return self._speller.at_time(self._speller.date(self._day()), self._time())

    def _weekday_at_time(self) -> str:
        return self._speller.at_time(self._speller.weekday(self._day()), self._time())

    def _relative_at_time(self) -> str:
        number, unit, time = 2 + self._below(98), self._choice(get_args(RelativeUnit)), self._time()
        return self._speller.at_time(self._speller.relative(number if self._below(2) else -number, unit), time)

    def _numbers(self) -> str:
        return self._speller.joined([self._speller.cardinal(self._number()) for _ in range(2)])

    def _ordinals(self) -> str:
        numbers = [1 + self._below(self._choice((99, _MAX_ORDINAL))) for _ in range(2)]
        return self._speller.joined([self._speller.ordinal(number) for number in numbers], "or")

    def _amount(self) -> str:
        return self._speller.amount(self._number(), 2 + self._below(98), self._choice(CURRENCIES_WITH_CENTS))

    def _quantities(self) -> str:
        return self._speller.joined([self._speller.quantity(self._number(), self._choice(_NAMED)) for _ in range(2)])

    def _number(self) -> int:
        return 2 + self._below(self._choice(_NUMBER_LIMITS) - 2)

    def _day(self) -> dt.date:
        return dt.date.fromordinal(_FIRST_DAY + self._below(_LAST_DAY - _FIRST_DAY + 1))

    def _time(self) -> dt.time:
        return dt.time(self._choice(_HOURS), self._choice(_MINUTES))

    def _below(self, limit: int) -> int:
        # random() alone is promised to stay the same in every version of Python.
        return int(self._random.random() * limit)

    def _choice(self, options: Sequence[Option]) -> Option:
        return options[self._below(len(options))]
