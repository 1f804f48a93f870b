"""``data=catalogs``: the messages of a program as parallel text."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from softsearch.data import FilePair, ParallelSource, refuse_unread
from softsearch.data.parts import HeldOut, UnreadPath, Whole, digest_of, divide, is_size, made_folder
from softsearch.errors import ConfigError, CorpusError
from softsearch.extras.localise.catalog import open_catalog
from softsearch.extras.localise.messages import found_files, read_messages
from softsearch.extras.localise.spans import SYMBOLS
from softsearch.text import write_lines
from softsearch.text.parts import hash_of

_FORMAT = 1
_SPLITS, _NOWHERE = ("val", "test"), -1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Catalogs(ParallelSource):
    """Translated messages of PO, XLIFF, TS and TMX files, with numbered symbols for what is not language.

    Fuzzy, obsolete, empty, equal and repeated messages are left out and counted, and those whose translation has other
    placeholders or tags. Accelerators are taken off.

    Args:
        train: the catalogs: names, folders, or patterns such as ``de/**/*.po``.
        val: messages to hold out for validation, or their share; or other catalogs.
        test: like ``val``.
        split_by: ``message``; or ``file``: whole catalogs are held out, like a new part of the program, without the
            messages that are also in training.
        src_lang: the source's language; by default that of the first catalog, or English.
        tgt_lang: the target's language; by default that of the first catalog.

    Raises:
        ConfigError: the catalogs do not name their language.
        CorpusError: there is no such catalog, or one cannot be read.
    """

    train: str | Sequence[str]
    val: HeldOut | str | Sequence[str] = 1000
    test: HeldOut | str | Sequence[str] | None = 1000
    split_by: Literal["message", "file"] = "message"

    def __post_init__(self) -> None:
        """Fills in the languages."""
        patterns = [self.train] if isinstance(self.train, str) else self.train
        if any(isinstance(each, UnreadPath) for each in patterns):
            return
        if not (self.tgt_lang and self.src_lang):
            first = open_catalog(found_files(self.train)[0])
            self._fill_in_languages([first.src_lang.replace("_", "-") or "en"], [first.tgt_lang.replace("_", "-")])
        if not self.tgt_lang:
            raise ConfigError("the first catalog does not name its language; set data.tgt_lang=CODE, such as de")

    @property
    def tags(self) -> tuple[str, ...]:
        return SYMBOLS

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns files of lines in ``cache_dir``, written there if necessary.

        Raises:
            CorpusError: a catalog cannot be read, or there are too few messages.
            ConfigError: a catalog is of another language.
        """
        undivided = self.undivided(cache_dir)
        if self.split_by == "file":
            return undivided
        [divided] = divide([Whole(self, [undivided["train"]])], cache_dir)
        return {**undivided, "train": divided.train[0], **divided.held_out}

    def undivided(self, cache_dir: Path) -> dict[str, FilePair]:
        return {
            name: files
            for split, patterns in self._given_splits().items()
            for name, files in self._written(split, patterns, cache_dir).items()
        }

    def _written(self, split: str, patterns: str | Sequence[str], cache_dir: Path) -> dict[str, FilePair]:
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            refuse_unread(split, pattern)
        paths = found_files(patterns)
        sizes = {
            other: size
            for other in _SPLITS
            if split == "train" and self.split_by == "file" and is_size(size := getattr(self, other))
        }
        names = [split, *sizes]

        def write(folder: Path) -> None:
            messages = read_messages(paths, self.src_lang, self.tgt_lang)
            places = (
                _by_file(messages.pairs, [str(path) for path in paths], sizes) if sizes else [0] * len(messages.pairs)
            )
            for place, name in enumerate(names):
                chosen = [pair for pair, at in zip(messages.pairs, places, strict=True) if at == place]
                for side, file in enumerate(_files(folder, name)):
                    write_lines(file, (str(pair[side]) for pair in chosen))
            left_out = messages.left_out + Counter({"in training, too": places.count(_NOWHERE)})
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in left_out.most_common() if count)
            _log.info(
                "%s: %d messages of %d catalogs; left out: %s",
                split,
                len(messages.pairs),
                len(paths),
                reasons or "none",
            )

        identity = repr((_FORMAT, self.src_lang, self.tgt_lang, sizes, [digest_of(path) for path in paths]))
        folder = made_folder(cache_dir, "catalogs", identity, write)
        return {name: _files(folder, name) for name in names}


def _by_file(
    pairs: Sequence[tuple[str, str, int]], names: Sequence[str], sizes: Mapping[str, int | float]
) -> list[int]:
    """Returns where each pair belongs, by its catalog: 0 in training, then a number for each of ``sizes``.

    Catalogs are drawn by a hash of their names until there are enough pairs. Held-out pairs whose source or target is
    in training, or in the split before, belong nowhere.

    Raises:
        CorpusError: nothing is left to train on.
    """
    counts, of_catalog = Counter(number for *_, number in pairs), {}
    order = sorted(counts, key=lambda number: sha256(names[number].encode()).digest())
    for place, (split, size) in enumerate(sizes.items(), start=1):
        wanted = size if isinstance(size, int) else max(1, round(size * len(pairs)))
        while wanted > 0 and order:
            of_catalog[number := order.pop(0)] = place
            wanted -= counts[number]
        if not order:
            raise CorpusError(
                f"data.{split}={size} with data.split_by=file leaves no catalog of {len(names)} to train on; set a "
                "lower number, or data.split_by=message"
            )
    places, seen = [of_catalog.get(number, 0) for *_, number in pairs], dict[bytes, int]()
    hashes = [(hash_of(source), hash_of(target)) for source, target, _ in pairs]
    for place in range(len(sizes) + 1):
        for index, own in enumerate(hashes):
            if places[index] == place and any(seen.setdefault(each, place) != place for each in own):
                places[index] = _NOWHERE
    return places


def _files(folder: Path, name: str) -> FilePair:
    return folder / f"{name}.src", folder / f"{name}.tgt"
