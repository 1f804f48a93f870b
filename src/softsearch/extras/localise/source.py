"""``data=catalogs``: the messages of a program as parallel text, in one language or in several."""

import logging
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from softsearch.data import FilePair, Multilingual, Parallel, refuse_unread
from softsearch.data.parts import HeldOut, UnreadPath, WeightedSource, digests_of, is_size, letters_of, made_folder
from softsearch.errors import ConfigError, CorpusError
from softsearch.extras.localise.catalog import nearest_code, with_region
from softsearch.extras.localise.messages import Messages, check_script, expanded, found_files, listed, read_messages
from softsearch.extras.localise.opening import files_of, open_catalog
from softsearch.extras.localise.training_matches import messages_by_tag, with_other_matches
from softsearch.text import language_tag, read_lines, write_lines
from softsearch.text.parts import MATCH, SYMBOLS, hash_of

_FORMAT = 3
_SPLITS, _NOWHERE = ("val", "test"), -1
_Patterns = str | Sequence[str]
_ByLanguage = Mapping[str, Sequence[Path]]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Catalogs(WeightedSource):
    """Translated messages of PO, XLIFF, TS and TMX files, with numbered symbols for what is not language.

    Fuzzy, obsolete, empty, equal and repeated messages are left out and counted, and those whose translation has other
    placeholders or tags. Accelerators are taken off. Catalogs of several languages are the text of one model, whose
    source lines begin with the language's tag (``Multilingual``); no message is in two splits, in whatever languages.

    Args:
        train: the catalogs: names, folders, or patterns such as ``de/**/*.po``. ``{de,fr}/**/*.po`` is two of them.
            Each of them has one language.
        val: messages of each language to hold out for validation, or their share; or other catalogs.
        test: like ``val``.
        split_by: ``message``; or ``file``: whole catalogs are held out, like a new part of the program, without the
            messages that are also in training. A catalog is held out in all languages.
        memory: the model also reads the translation of the most similar other message of the training text, if it is
            at least 50 % like the source (``softsearch.extras.localise.similar``). Training text has these messages
            also without it, as Bulté & Tezcan (2019) do.
        src_lang: the source's language; by default that of the first catalog, or English.
        tgt_lang: the target's language; by default those of the first catalog of each pattern, such as ``de+fr``.

    Raises:
        ConfigError: the catalogs do not name their language.
        CorpusError: there is no such catalog, or one cannot be read.
    """

    train: _Patterns
    val: HeldOut | _Patterns = 1000
    test: HeldOut | _Patterns | None = 1000
    split_by: Literal["message", "file"] = "message"
    memory: bool = False

    def __post_init__(self) -> None:
        """Checks the options, and fills in the languages."""
        if self.memory and (self.links == "auto" or (self.links or {}).get("train")):
            raise ConfigError("data.memory=true puts other text before the source, which data.links do not align")
        if any(isinstance(each, UnreadPath) for each in listed(self.train)):
            return
        languages = [self.tgt_lang]
        if not (self.tgt_lang and self.src_lang):
            first = open_catalog(found_files(self.train)[0], self.src_lang)
            languages = [*self._by_language("train", self.train)]
            self._fill_in_languages([first.src_lang.replace("_", "-") or "en"], languages)
        self._check_weights("data.train", len(languages))

    @property
    def tags(self) -> tuple[str, ...]:
        codes = self.tgt_lang.split("+")
        matches = [MATCH] if self.memory else []
        return (*(language_tag(code) for code in codes if len(codes) > 1), *SYMBOLS, *matches)

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns files of lines in ``cache_dir``, written there if necessary.

        Raises:
            CorpusError: a catalog cannot be read, or there are too few messages.
            ConfigError: a catalog is of another language.
        """
        return self._files(cache_dir)[0]

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Returns the training text of each language; raises as ``files``."""
        return self._files(cache_dir)[1]

    def _files(self, cache_dir: Path) -> tuple[dict[str, FilePair], list[FilePair]]:
        """The files by split, and the training text of each language, both with matches if there is a memory."""
        text = self._text(cache_dir)
        files, train = text.files(cache_dir), text.train_files(cache_dir)
        if not self.memory:
            return files, train
        named = {f"train-{number}": pair for number, pair in enumerate(train)}  # one for each language
        named |= {split: pair for split, pair in files.items() if split != "train"}

        def write(folder: Path) -> None:
            memories, counts = messages_by_tag(train), list[str]()
            for name, files in named.items():
                lines, targets = (list(read_lines(file)) for file in files)
                sources = with_other_matches(name, lines, memories)
                counts.append(f"{name} {sum(MATCH in line for line in sources):,} of {len(lines):,}")
                if name.startswith("train"):  # those with a match also without it
                    matched = [place for place, line in enumerate(lines) if sources[place] != line]
                    sources += [lines[place] for place in matched]
                    targets += [targets[place] for place in matched]
                for file, texts in zip(_files(folder, name), (sources, targets), strict=True):
                    write_lines(file, texts)
            _log.info("messages with a match in training: %s", ", ".join(counts))

        identity = repr((_FORMAT, [(name, *digests_of(pair, cache_dir)) for name, pair in named.items()]))
        folder = made_folder(cache_dir, "matches", identity, write)
        found = {name: _files(folder, name) for name in named}
        train = [found[f"train-{number}"] for number in range(len(train))]
        return {"train": train[0], **{split: found[split] for split in _SPLITS if split in found}}, train

    def _text(self, cache_dir: Path) -> Parallel | Multilingual:
        """The catalogs as files of lines, of one language or several."""
        written = [
            self._written(split, self._by_language(split, patterns), cache_dir)
            for split, patterns in self._given_splits().items()
        ]
        sizes = {split: value if is_size(value := getattr(self, split)) else None for split in _SPLITS}
        texts = {}
        for code in written[0]:
            files: dict[str, Any] = {
                split: list(pair) for each in written for split, pair in each.get(code, {}).items()
            }
            texts[code] = Parallel(src_lang=self.src_lang, tgt_lang=code, **{**sizes, **files})
        return Multilingual(pairs=texts) if len(texts) > 1 else next(iter(texts.values()))

    def _by_language(self, split: str, patterns: _Patterns) -> dict[str, list[Path]]:
        """The catalogs of each language, which the first one of a pattern names.

        Raises:
            ConfigError: it names none, or one without training text.
        """
        found, known = dict[str, dict[Path, None]](), [code for code in self.tgt_lang.split("+") if code]
        for pattern in listed(patterns):
            refuse_unread(split, pattern)
            for each in expanded(pattern):
                paths = found_files(each)
                code = known[0] if len(known) == 1 else open_catalog(paths[0], self.src_lang).tgt_lang.replace("_", "-")
                if not code:
                    raise ConfigError(f"{paths[0]} does not name its language; set data.tgt_lang=CODE, such as de")
                if known and not (code := nearest_code(asked := code, known)):
                    raise ConfigError(
                        f"data.{split}: {paths[0]} is a catalog of {asked!r}, expected one of {', '.join(known)}; "
                        "leave it out, or add such catalogs to data.train"
                    )
                code = next((each for each in found if with_region(each) == with_region(code)), code)
                found.setdefault(code, {}).update(dict.fromkeys(paths))
        return {code: list(paths) for code, paths in found.items()}

    def _written(self, split: str, catalogs: _ByLanguage, cache_dir: Path) -> dict[str, dict[str, FilePair]]:
        """The files of each language, by split: the given one, and those that whole catalogs are held out for."""
        sizes = {
            other: size
            for other in _SPLITS
            if split == "train" and self.split_by == "file" and is_size(size := getattr(self, other))
        }
        names = [split, *sizes]
        numbers = range(len(names))

        def write(folder: Path) -> None:
            messages = {code: read_messages(paths, self.src_lang, code) for code, paths in catalogs.items()}
            for code, paths in catalogs.items():
                with suppress(ConfigError):  # a language without a known script
                    if warning := check_script(messages[code], paths, letters_of(code, "data.tgt_lang")):
                        _log.warning("%s: %s", split, warning)
            places = _by_file(messages, _names(catalogs), sizes)
            counts = {}
            for number, (code, own) in enumerate(messages.items()):
                chosen = [[pair for pair, at in zip(own.pairs, places[code], strict=True) if at == n] for n in numbers]
                own.left_out["in training, too"] = places[code].count(_NOWHERE)
                counts[code] = {"catalogs": len(catalogs[code])} | dict(zip(names, map(len, chosen), strict=True))
                counts[code] |= {f"left out: {reason}": count for reason, count in own.left_out.items()}
                for name, pairs in zip(names, chosen, strict=True):
                    if not pairs:
                        raise CorpusError(f"data.{name} has no messages; give it more catalogs\n{_table(counts)}")
                    for side, file in enumerate(_files(folder, f"{name}-{number}")):
                        write_lines(file, (str(pair[side]) for pair in pairs))
            _log.info("%s: messages by language\n%s", split, _table(counts))

        contents = {
            code: digests_of((each for path in paths for each in files_of(path, self.src_lang)), cache_dir)
            for code, paths in catalogs.items()
        }
        identity = repr((_FORMAT, self.src_lang, sizes, contents, _names(catalogs) if sizes else ()))
        folder = made_folder(cache_dir, "catalogs", identity, write)
        return {code: {name: _files(folder, f"{name}-{at}") for name in names} for at, code in enumerate(catalogs)}


def _table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """A table with a column for each language, and a row for what is counted, if it is there."""
    rows = dict.fromkeys(name for own in counts.values() for name, count in own.items() if count)
    width = max(map(len, rows))
    shown = [["", *counts], *([name, *(f"{own.get(name, 0):,}" for own in counts.values())] for name in rows)]
    return "\n".join(f"  {name:{width}}" + "".join(f"{cell:>9}" for cell in cells) for name, *cells in shown)


def _names(catalogs: _ByLanguage) -> dict[str, list[str]]:
    """Returns the catalogs' names within their common folder, which are the same in all languages."""
    every = [path.resolve() for paths in catalogs.values() for path in paths]
    common = os.path.commonpath([path.parent for path in every])
    names = dict[str, list[str]]()
    for code, paths in catalogs.items():
        named = re.compile(rf"(?<![^\W_]){'[-_]'.join(map(re.escape, code.split('-')))}(?![^\W_])")
        names[code] = [named.sub("*", os.path.relpath(path.resolve(), common)) for path in paths]
    return names


def _by_file(
    messages: Mapping[str, Messages], names: Mapping[str, Sequence[str]], sizes: Mapping[str, int | float]
) -> dict[str, list[int]]:
    """Returns where each pair of each language belongs: 0 in training, then a number for each of ``sizes``.

    Catalogs are drawn by a hash of their names until there are enough pairs. Held-out pairs whose source or target is
    in training, or in the split before, belong nowhere.

    Raises:
        CorpusError: nothing is left to train on.
    """
    counts = Counter(names[code][number] for code, own in messages.items() for *_, number in own.pairs)
    order, of_catalog = sorted(counts, key=lambda name: sha256(name.encode()).digest()), dict[str, int]()
    for place, (split, size) in enumerate(sizes.items(), start=1):
        wanted = size * len(messages) if isinstance(size, int) else max(1, round(size * counts.total()))
        while wanted > 0 and order:
            of_catalog[name := order.pop(0)] = place
            wanted -= counts[name]
        if not order:
            raise CorpusError(
                f"data.{split}={size} with data.split_by=file leaves no catalog of {len(counts)} to train on; set a "
                "lower number, or data.split_by=message"
            )
    places = {
        code: [of_catalog.get(names[code][number], 0) for *_, number in own.pairs] for code, own in messages.items()
    }
    if sizes:
        seen = dict[bytes, int]()
        hashes = {code: [(hash_of(src), hash_of(tgt)) for src, tgt, _ in own.pairs] for code, own in messages.items()}
        for place in range(len(sizes) + 1):
            for code, pairs in hashes.items():
                for index, own_hashes in enumerate(pairs):
                    if places[code][index] == place and any(seen.setdefault(h, place) != place for h in own_hashes):
                        places[code][index] = _NOWHERE
    return places


def _files(folder: Path, name: str) -> FilePair:
    return folder / f"{name}.src", folder / f"{name}.tgt"
