"""Multilingual training: several corpora, with a tag for the target language (Johnson et al. 2017)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from softsearch.data.corpora.base import FilePair, ParallelSource, TextForm
from softsearch.data.corpora.held_out import Whole, divide
from softsearch.data.corpora.weighted import WeightedSource
from softsearch.data.preparation.cache_folder import made_folder
from softsearch.data.preparation.digests import digests_of
from softsearch.errors import ConfigError
from softsearch.text.filters import NO_FILTERS, CorpusStream
from softsearch.text.vocabulary import LANGUAGE_TAG, language_tag, source_tag

_FORMAT = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Multilingual(WeightedSource):
    """Several corpora whose source lines begin with their target language's tag: ``<2de> a man``.

    A tag is one piece of the vocabulary, and lines to translate begin with one too (arXiv:1611.04558, section 3).
    ``src_lang`` and ``tgt_lang`` name all languages, such as ``de+fr``. Each pair is a separate training corpus, with
    the weight at its position; validation and test contain the lines of all pairs. Pairs with a number as ``val`` or
    ``test`` are divided together, so that no sentence is held out in one pair and trained on in another.

    Args:
        pairs: the corpora by name.
        source_tags: a second tag names the source's language, as imported models of many languages read it:
            ``<2de> <from:en> a man`` (arXiv:2010.11125).

    Raises:
        ConfigError: there is no corpus, or the corpora do not match.
    """

    pairs: Mapping[str, ParallelSource]
    source_tags: bool = False

    def __post_init__(self) -> None:
        """Checks the options."""
        if not self.pairs:
            raise ConfigError("data.pairs is empty, expected pairs of files, such as data.pairs.fr='[a.en,a.fr]'")
        check_parts("data.pairs", self.pairs, reads_source=self.source_tags)
        self._check_weights("data.pairs", len(self.pairs))
        pairs = self.pairs.values()
        self._fill_in_languages((pair.src_lang for pair in pairs), (pair.tgt_lang for pair in pairs))

    @property
    def text_form(self) -> TextForm:
        return next(iter(self.pairs.values())).text_form

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tag for source in self.pairs.values() for tag in self._tags(source)))

    def _tags(self, source: ParallelSource) -> list[str]:
        """Returns the tags of a pair's source lines."""
        return [language_tag(source.tgt_lang), *([source_tag(source.src_lang)] if self.source_tags else [])]

    def files(self, cache_dir: Path) -> dict[str, FilePair]:
        """Returns files in ``cache_dir``, written if necessary; validation and test join the pairs that have them.

        Raises:
            CorpusError: a pair's file cannot be read, or ``cache_dir`` cannot be written.
        """
        written = self._written(cache_dir)
        return {name.partition("-")[0]: files for name, files in reversed(written.items())}

    def train_files(self, cache_dir: Path) -> list[FilePair]:
        """Returns the training corpus of each pair; raises as ``files``."""
        return [files for name, files in self._written(cache_dir).items() if name.startswith("train")]

    def _written(self, cache_dir: Path) -> dict[str, FilePair]:
        """The files by name: train-1, train-2, ..., val and test."""
        undivided = [source.undivided(cache_dir) for source in self.pairs.values()]
        wholes = [
            Whole(source, [files["train"]], f"data.pairs.{name}")
            for (name, source), files in zip(self.pairs.items(), undivided, strict=True)
        ]
        parts = [
            (" ".join(self._tags(whole.source)), {**files, "train": division.train[0], **division.held_out})
            for whole, files, division in zip(wholes, undivided, divide(wholes, cache_dir), strict=True)
        ]
        texts = {f"train-{number}": [part] for number, part in enumerate(parts, 1)} | {
            split: having for split in ("val", "test") if (having := [part for part in parts if split in part[1]])
        }
        identity = str(_FORMAT)
        for tag, files in parts:
            contents = [(split, *digests_of(pair, cache_dir)) for split, pair in sorted(files.items())]
            identity += repr((tag, contents))

        def write(folder: Path) -> None:
            for name, chosen in texts.items():
                split = name.partition("-")[0]
                _join(_files(folder, name), split, [(tag, files[split]) for tag, files in chosen])

        folder = made_folder(cache_dir, "multilingual", identity, write)
        return {name: _files(folder, name) for name in texts}


def _files(folder: Path, name: str) -> FilePair:
    return folder / f"{name}.src", folder / f"{name}.tgt"


def check_parts(
    key: str, parts: Mapping[str, ParallelSource], tags: tuple[str, ...] = (), *, reads_source: bool = False
) -> None:
    """Checks sources to be joined; ``tags`` are those that they may have, ``reads_source`` asks for both languages.

    Raises:
        ConfigError: a source is not a single corpus in one language pair, or their text forms differ.
    """
    for name, source in parts.items():
        _check(f"{key}.{name}", source, key, tags, reads_source=reads_source)
    forms = {name: source.text_form for name, source in parts.items()}
    if len(set(forms.values())) > 1:
        raise ConfigError(f"{key} have different text forms, {forms}; choose one form for all")


def _check(key: str, source: object, parent: str, tags: tuple[str, ...], *, reads_source: bool) -> None:
    if not isinstance(source, ParallelSource) or source.tags not in ((), tags):
        raise ConfigError(f"{key} is {source!r}, expected a source of one language pair; change {key}")
    if source.filters != NO_FILTERS or not source.has_one_pair:
        raise ConfigError(
            f"{key} has several training corpora, wildcards or filters, expected a single unfiltered corpus of two "
            f"files; give each corpus its own name in {parent}, and filter it beforehand"
        )
    for name, inner in vars(source).items():
        if isinstance(inner, ParallelSource) and (sizes := Whole(inner, []).sizes):
            split, size = next(iter(sizes.items()))
            raise ConfigError(
                f"{key}.{name}.{split} is {size}, but all of {parent} are divided together, and {name} would be "
                "divided by itself; name files"
            )
    if any(source.reversed_sides):
        raise ConfigError(
            f"{key} has reverse_source or target_direction, expected them in data, for all sources; move them there"
        )
    for side, code in {"tgt_lang": source.tgt_lang, **({"src_lang": source.src_lang} if reads_source else {})}.items():
        if not LANGUAGE_TAG.fullmatch(language_tag(code)) or "," in code:
            raise ConfigError(f"{key}.{side} is {code!r}, expected a language's code; change {key}.{side}")


def _join(files: FilePair, split: str, parts: list[tuple[str, FilePair]]) -> None:
    """Writes files of a split; training drops pairs with an empty side."""
    with files[0].open("wb") as src, files[1].open("wb") as tgt:
        for tag, pair in parts:
            corpus = CorpusStream(*pair, keep_empty=split != "train")
            for chunk in corpus:
                src.writelines(f"{tag} {line}\n".encode() for line in chunk.src)
                tgt.writelines(f"{line}\n".encode() for line in chunk.tgt)
            _log.info("%s of %s: %s", split, tag, corpus.report.summary())
